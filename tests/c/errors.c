// Every way to fail through the C interface: a status, one line of text per thread, no crash, and nothing changed.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "c/check.h"

static const int64_t kLength[2] = {4, 1};
static const char kRecipe[] = "adamw decay=cautious weight_decay=0.1";

static void versions(void) {
  char version[64];
  snprintf(version, sizeof version, "%d.%d.%d", CAUTIOUS_VERSION_MAJOR, CAUTIOUS_VERSION_MINOR, CAUTIOUS_VERSION_PATCH);
  CHECK(strcmp(cautious_last_error(), "") == 0);
  CHECK(strcmp(cautious_version(), version) == 0);
  OK(cautious_check_abi(CAUTIOUS_ABI));
  FAILS(cautious_check_abi(CAUTIOUS_ABI + 1), CAUTIOUS_USAGE, "wants ABI 2");
  OK(cautious_check_abi(CAUTIOUS_ABI));
  CHECK(strstr(cautious_last_error(), "wants ABI 2") != NULL);  // success does not clear it
}

static void recipes_and_options(void) {
  cautious_optimizer* made = (cautious_optimizer*)&made;
  FAILS(cautious_create("adamv", NULL, &made), CAUTIOUS_USAGE, "did you mean 'adam");
  CHECK(made == NULL);
  FAILS(cautious_create("", NULL, &made), CAUTIOUS_USAGE, "the recipe is empty");
  FAILS(cautious_create("adamw beta3=1", NULL, &made), CAUTIOUS_USAGE, "recipe 'adamw beta3=1', character 7: ");
  FAILS(cautious_create("adamw beta1=2", NULL, &made), CAUTIOUS_USAGE, "[0, 1)");
  FAILS(cautious_create("adamw beta1", NULL, &made), CAUTIOUS_USAGE, "expected FIELD=VALUE, found 'beta1'");
  FAILS(cautious_create(NULL, NULL, &made), CAUTIOUS_USAGE, "recipe is null");
  FAILS(cautious_create(kRecipe, NULL, NULL), CAUTIOUS_USAGE, "made is null");
  FAILS(cautious_create(kRecipe, "momnts=bf16", &made), CAUTIOUS_USAGE, "did you mean 'moments'?");
  FAILS(cautious_create(kRecipe, "seed=1 moments=f64", &made), CAUTIOUS_USAGE, "options 'seed=1 moments=f64', character 8: ");
  FAILS(cautious_create(kRecipe, "seed=-1", &made), CAUTIOUS_USAGE, "seed is '-1'");
  FAILS(cautious_create(kRecipe, "seed=1 seed=2", &made), CAUTIOUS_USAGE, "seed is given twice");
  FAILS(cautious_create(kRecipe, "isa=sse9", &made), CAUTIOUS_USAGE, "choices: best, portable");
  FAILS(cautious_create_matrices_and_rest("muon", "adamv", 0, NULL, &made), CAUTIOUS_USAGE, "did you mean 'adam");
  FAILS(cautious_create_matrices_and_rest(NULL, "adamw", 0, NULL, &made), CAUTIOUS_USAGE, "matrices is null");
  FAILS(cautious_create_matrices_and_rest("muon", NULL, 0, NULL, &made), CAUTIOUS_USAGE, "rest is null");
  FAILS(cautious_create_matrices_and_rest("muon", "adamw", -1, NULL, &made), CAUTIOUS_USAGE, "max_side is -1");
  FAILS(cautious_create_matrices_and_rest("muon", "adamw", 0, NULL, NULL), CAUTIOUS_USAGE, "made is null");
  CHECK(made == NULL);
}

static void null_handles(void) {
  float x[4] = {1, 2, 3, 4};
  const cautious_parameter parameter = vector_of("x", kLength, x, x);
  const cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_state_tensor state = CAUTIOUS_STATE_TENSOR;
  size_t number = 7;
  int64_t t = 7;
  const char* text = NULL;
  cautious_destroy(NULL);
  FAILS(cautious_add(NULL, &parameter, &number), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_bind(NULL, 0, x, x), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_set_anchor(NULL, 0, x), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_set_density(NULL, 0, 0.5), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_step(NULL, &input, &report), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_report_of(NULL, 0, &report), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_size(NULL, &number), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_group_of(NULL, 0, &text), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_save(NULL, "file"), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_load(NULL, "file"), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_state_count(NULL, 0, &number), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_state(NULL, 0, 0, &state), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_steps_of(NULL, 0, &t), CAUTIOUS_USAGE, "optimizer is null");
  FAILS(cautious_set_steps(NULL, 0, 1), CAUTIOUS_USAGE, "optimizer is null");
  CHECK(number == 7 && t == 7 && text == NULL);
}

static void arguments(void) {
  float x[4] = {1, 2, 3, 4};
  const float g[4] = {1, 1, 1, 1};
  const double wrong[1] = {-1};
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_state_tensor state = CAUTIOUS_STATE_TENSOR;
  cautious_optimizer* o = optimizer_of(kRecipe, NULL, kLength, x, g);
  FAILS(cautious_add(o, NULL, NULL), CAUTIOUS_USAGE, "parameter is null");
  FAILS(cautious_step(o, NULL, NULL), CAUTIOUS_USAGE, "step_input is null");
  FAILS(cautious_report_of(o, 0, NULL), CAUTIOUS_USAGE, "report is null");
  FAILS(cautious_report_of(o, 0, &report), CAUTIOUS_USAGE, "no step was taken");
  FAILS(cautious_size(o, NULL), CAUTIOUS_USAGE, "tensors is null");
  FAILS(cautious_group_of(o, 0, NULL), CAUTIOUS_USAGE, "group is null");
  FAILS(cautious_save(o, NULL), CAUTIOUS_USAGE, "path is null");
  FAILS(cautious_load(o, NULL), CAUTIOUS_USAGE, "path is null");
  FAILS(cautious_state_count(o, 0, NULL), CAUTIOUS_USAGE, "count is null");
  FAILS(cautious_state(o, 0, 0, NULL), CAUTIOUS_USAGE, "state_tensor is null");
  FAILS(cautious_state(o, 0, 2, &state), CAUTIOUS_USAGE, "it has 2");
  FAILS(cautious_state(o, 1, 0, &state), CAUTIOUS_USAGE, "tensor 1 does not exist");
  FAILS(cautious_steps_of(o, 0, NULL), CAUTIOUS_USAGE, "t is null");
  FAILS(cautious_set_steps(o, 0, -1), CAUTIOUS_USAGE, "t is -1");
  FAILS(cautious_set_steps(o, 0, INT64_MAX), CAUTIOUS_USAGE, "t is 9");
  FAILS(cautious_bind(o, 0, NULL, g), CAUTIOUS_USAGE, "x is null");
  FAILS(cautious_bind(o, 1, x, g), CAUTIOUS_USAGE, "tensor 1 does not exist");
  FAILS(cautious_set_anchor(o, 0, x), CAUTIOUS_USAGE, "has no anchor");
  FAILS(cautious_set_density(o, 0, 0.5), CAUTIOUS_USAGE, "has no density");
  input.lr = -1;
  FAILS(cautious_step(o, &input, &report), CAUTIOUS_USAGE, "lr is -1");
  input.lr = 0.1;
  input.tensor_factors = wrong;
  FAILS(cautious_step(o, &input, &report), CAUTIOUS_USAGE, "tensor_factors[0] is -1");
  CHECK(report.step == 0 && x[0] == 1 && x[3] == 4);
  cautious_destroy(o);
}

static void sizes(void) {
  float x[4] = {1, 2, 3, 4};
  const float g[4] = {1, 1, 1, 1};
  struct {
    cautious_step_input known;
    double unknown;
  } later = {CAUTIOUS_STEP_INPUT, 0};
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_parameter parameter = vector_of("y", kLength, x, g);
  cautious_report report = CAUTIOUS_REPORT;
  cautious_state_tensor state = CAUTIOUS_STATE_TENSOR;
  cautious_optimizer* o = optimizer_of(kRecipe, NULL, kLength, x, g);
  parameter.size = 0;
  FAILS(cautious_add(o, &parameter, NULL), CAUTIOUS_USAGE, "set it to sizeof(cautious_parameter)");
  report.size -= 1;
  FAILS(cautious_step(o, &input, &report), CAUTIOUS_USAGE, "set it to sizeof(cautious_report)");
  state.size = (size_t)-1;
  FAILS(cautious_state(o, 0, 0, &state), CAUTIOUS_USAGE, "set it to sizeof(cautious_state_tensor)");
  later.known.size = sizeof later;
  later.unknown = 1;
  FAILS(cautious_step(o, &later.known, NULL), CAUTIOUS_USAGE, "step_input has fields that this library");
  CHECK(x[0] == 1);
  later.unknown = 0;
  OK(cautious_step(o, &later.known, NULL));
  cautious_destroy(o);
}

static void tensors(void) {
  double x[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[3] = {2, 1, 3}, negative[1] = {-1}, huge[3] = {2, INT64_MAX, 4}, empty[2] = {0, 3};
  const int64_t dense[3] = {3, 3, 1}, loose[3] = {3, -99, 1}, columns[3] = {1, 2, 2}, spaced[3] = {6, 6, 2};
  cautious_parameter p = CAUTIOUS_PARAMETER;
  cautious_optimizer* o;
  size_t count, tensor = 99;
  OK(cautious_create(kRecipe, NULL, &o));
  p.rank = 3;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "parameter.name is null");
  p.name = "";
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "parameter.shape is null");
  p.rank = (size_t)1 << 61;
  p.shape = shape;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "parameter.rank is 2305843009213693952; valid: 0 to 64");
  p.rank = 3;
  p.shape = shape;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "a tensor needs a name");
  p.name = "x";
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "x is null");
  p.x = x;
  p.element = 3;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "f32, f64, bf16");
  p.element = -1;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "f32, f64, bf16");
  p.element = CAUTIOUS_F64;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "f64 with a gradient of f32");
  p.gradient = 17;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "gradient type of 'x'");
  p.gradient = CAUTIOUS_F64;
  p.strides = columns;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "strides [1, 2, 2]; only dense ones are taken, [3, 3, 1]");
  p.strides = spaced;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "strides [6, 6, 2]");
  p.shape = huge;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "2^48");
  p.strides = NULL;
  p.shape = negative;
  p.rank = 1;
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "side of length -1");
  OK(cautious_size(o, &count));
  CHECK(count == 0 && tensor == 99);
  p.shape = shape;
  p.rank = 3;
  p.strides = dense;
  OK(cautious_add(o, &p, &tensor));
  CHECK(tensor == 0);
  FAILS(cautious_add(o, &p, &tensor), CAUTIOUS_USAGE, "named 'x' already");
  p.name = "strides of sides of length 1 mean nothing";
  p.strides = loose;
  OK(cautious_add(o, &p, &tensor));
  p.name = "nor do those of an empty tensor";
  p.shape = empty;
  p.rank = 2;
  p.strides = spaced;
  OK(cautious_add(o, &p, &tensor));
  p.name = "scalar";
  p.shape = p.strides = NULL;
  p.rank = 0;
  OK(cautious_add(o, &p, &tensor));
  OK(cautious_size(o, &count));
  CHECK(count == 4 && tensor == 3);
  cautious_destroy(o);
}

static void contents(void) {
  float x[4] = {1, 2, 3, 4}, g[4] = {1, NAN, 1, INFINITY};
  const int64_t too_many[2] = {INT64_C(1) << 46, 2};
  cautious_parameter vast = vector_of("vast", too_many, x, g);
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_optimizer* o = optimizer_of(kRecipe, "nonfinite=error", kLength, x, g);
  int64_t t;
  input.lr = 0.1;
  FAILS(cautious_step(o, &input, &report), CAUTIOUS_DATA, "the gradient of 'x' has 2 non-finite entries of 4");
  FAILS(cautious_report_of(o, 0, &report), CAUTIOUS_USAGE, "the last one failed");
  OK(cautious_steps_of(o, 0, &t));
  CHECK(t == 0 && report.step == 0 && x[0] == 1 && x[1] == 2);
  g[1] = g[3] = 1;
  OK(cautious_step(o, &input, &report));
  CHECK(report.step == 1 && report.nonfinite == 0);
  FAILS(cautious_report_of(o, 1, &report), CAUTIOUS_USAGE, "the last step knew 1 tensors");
  FAILS(cautious_load(o, "/nonexistent/state"), CAUTIOUS_DATA, "/nonexistent/state");
  FAILS(cautious_save(o, "/nonexistent/state"), CAUTIOUS_FAILURE, "/nonexistent/state");
  vast.rank = 2;
  OK(cautious_add(o, &vast, NULL));
  FAILS(cautious_step(o, &input, &report), CAUTIOUS_FAILURE, "out of memory");  // std::bad_alloc
  CHECK(report.step == 1);
  cautious_destroy(o);
}

static void polar(void) {
  float m[6] = {1, 2, 3, 4, 5, 6};
  FAILS(cautious_polar(CAUTIOUS_F32, NULL, 2, 3, NULL, 0), CAUTIOUS_USAGE, "matrix is null");
  FAILS(cautious_polar(CAUTIOUS_BF16, m, 2, 3, NULL, 0), CAUTIOUS_USAGE, "valid: f32, f64");
  FAILS(cautious_polar(3, m, 2, 3, NULL, 0), CAUTIOUS_USAGE, "f32, f64, bf16");
  FAILS(cautious_polar(CAUTIOUS_F32, m, -2, 3, NULL, 0), CAUTIOUS_USAGE, "-2 x 3");
  FAILS(cautious_polar(CAUTIOUS_F32, m, INT64_MAX, INT64_MAX, NULL, 0), CAUTIOUS_USAGE, "does not have");
  FAILS(cautious_polar(CAUTIOUS_F32, m, 2, 3, "shedule=quintic", 0), CAUTIOUS_USAGE, "did you mean 'schedule'?");
  FAILS(cautious_polar(CAUTIOUS_F32, m, 2, 3, "blocks=4", 0), CAUTIOUS_USAGE, "4 blocks");
  FAILS(cautious_polar(CAUTIOUS_F32, m, 2, 3, NULL, 1000000), CAUTIOUS_USAGE, "threads");
  CHECK(m[0] == 1 && m[5] == 6);
}

static void* fail_elsewhere(void* seen) {
  cautious_optimizer* made;
  strcpy(seen, *cautious_last_error() == 0 ? "" : "not empty at first; ");
  if (cautious_create("lionn", NULL, &made) == CAUTIOUS_USAGE) strcat(seen, cautious_last_error());
  return NULL;
}

static void threads(void) {
  char seen[512] = "nothing";
  pthread_t other;
  cautious_optimizer* made;
  FAILS(cautious_create("adamv", NULL, &made), CAUTIOUS_USAGE, "adamv");
  CHECK(pthread_create(&other, NULL, fail_elsewhere, seen) == 0);
  pthread_join(other, NULL);
  CHECK(strstr(seen, "'lionn'") != NULL);
  CHECK(strstr(seen, "not empty") == NULL);
  CHECK(strstr(cautious_last_error(), "adamv") != NULL);
}

int main(void) {
  versions();
  recipes_and_options();
  null_handles();
  arguments();
  sizes();
  tensors();
  contents();
  polar();
  threads();
  return finish();
}
