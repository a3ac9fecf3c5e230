// What the C interface offers besides plain steps: state in and out, groups, anchors, densities, factors, orthogonal factors.
// usage: c_use FILE (written and removed)
#include <math.h>

#include "c/check.h"

enum { kCount = 6, kSteps = 5 };
static const int64_t kLength[1] = {kCount};
static const float kStart[kCount] = {1, -2, 3, -4, 5, -6};
static const char kRecipe[] = "adamw decay=random density=0.5 weight_decay=0.1";
static const char kOptions[] = "seed=3 moments=bf16";

// Steps from..to of a run whose gradients depend on the step alone.
static void steps(cautious_optimizer* o, float* x, int from, int to) {
  float g[kCount] = {0};
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  input.lr = 0.05;
  OK(cautious_bind(o, 0, x, g));
  for (int t = from; t <= to; ++t) {
    for (int i = 0; i < kCount; ++i) g[i] = (float)((7 * t + 3 * i) % 5 - 2);
    OK(cautious_step(o, &input, NULL));
  }
}

static void save_and_load(const char* file) {
  float x[kCount], continued[kCount], other[kCount];
  cautious_optimizer *o, *p;
  memcpy(x, kStart, sizeof x);
  o = optimizer_of(kRecipe, kOptions, kLength, x, NULL);
  steps(o, x, 1, kSteps);
  OK(cautious_save(o, file));
  memcpy(continued, x, sizeof x);
  p = optimizer_of(kRecipe, kOptions, kLength, continued, NULL);
  OK(cautious_load(p, file));
  steps(o, x, kSteps + 1, 2 * kSteps);
  steps(p, continued, kSteps + 1, 2 * kSteps);
  CHECK(memcmp(x, continued, sizeof x) == 0);
  cautious_destroy(p);
  p = optimizer_of("lion", kOptions, kLength, other, NULL);
  FAILS(cautious_load(p, file), CAUTIOUS_DATA, "the recipe of 'x' differs");
  cautious_destroy(p);
  cautious_destroy(o);
  remove(file);
}

static void state_by_hand(void) {
  float x[kCount], continued[kCount];
  const char* const names[2] = {"m", "v"};
  cautious_state_tensor from = CAUTIOUS_STATE_TENSOR, to = CAUTIOUS_STATE_TENSOR;
  cautious_optimizer *o, *p;
  size_t count;
  int64_t t;
  memcpy(x, kStart, sizeof x);
  o = optimizer_of(kRecipe, kOptions, kLength, x, NULL);
  steps(o, x, 1, kSteps);
  memcpy(continued, x, sizeof x);
  p = optimizer_of(kRecipe, kOptions, kLength, continued, NULL);
  OK(cautious_state_count(o, 0, &count));
  CHECK(count == 2);
  for (size_t i = 0; i < count; ++i) {
    OK(cautious_state(o, 0, i, &from));
    OK(cautious_state(p, 0, i, &to));
    CHECK(strcmp(from.name, names[i]) == 0 && strcmp(from.type, "BF16") == 0 && from.bytes == 2 * kCount);
    memcpy(to.data, from.data, from.bytes);
  }
  OK(cautious_steps_of(o, 0, &t));
  CHECK(t == kSteps);
  OK(cautious_set_steps(p, 0, t));
  steps(o, x, kSteps + 1, 2 * kSteps);
  steps(p, continued, kSteps + 1, 2 * kSteps);
  CHECK(memcmp(x, continued, sizeof x) == 0);
  cautious_destroy(p);
  cautious_destroy(o);
}

static void groups(void) {
  float x[4][12], g[12];
  const int64_t shapes[4][2] = {{3, 4}, {12, 1}, {2, 6}, {6, 2}};
  const char* const names[4] = {"weight", "gain", "table", "other"};
  const char* const expected[4] = {"matrices", "vectors", "rest", "rest"};
  const char* group;
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report total = CAUTIOUS_REPORT, report = CAUTIOUS_REPORT;
  cautious_optimizer* o;
  int64_t decayed = 0, count = 0;
  OK(cautious_create_matrices_and_rest("muon weight_decay=0.1", "adamw weight_decay=0.1", 4, NULL, &o));
  for (int i = 0; i < 12; ++i) g[i] = (float)(i % 5 - 2);
  for (size_t i = 0; i < 4; ++i) {
    cautious_parameter parameter = vector_of(names[i], shapes[i], x[i], g);
    size_t tensor;
    for (int j = 0; j < 12; ++j) x[i][j] = (float)(j - 6);
    parameter.rank = 2;
    OK(cautious_add(o, &parameter, &tensor));
    CHECK(tensor == i);
    OK(cautious_group_of(o, tensor, &group));
    CHECK(strcmp(group, expected[i]) == 0);
  }
  input.lr = 0.1;
  OK(cautious_step(o, &input, &total));
  for (size_t i = 0; i < 4; ++i) {
    OK(cautious_report_of(o, i, &report));
    CHECK(report.count == 12 && report.step == 1 && report.clip_scale == 1 && !report.skipped);
    CHECK(report.decayed == (i == 1 ? 0 : 12) && report.ratio == (i == 1 ? 0 : 1));
    CHECK(report.rms_g == sqrt(report.g2 / 12) && report.g2 > 0 && (report.budget > 0) == (i != 1));
    decayed += report.decayed;
    count += report.count;
  }
  CHECK(total.decayed == decayed && total.count == count);
  cautious_destroy(o);
  OK(cautious_create_matrices_and_rest("muon", "adamw", 0, NULL, &o));
  for (size_t i = 0; i < 4; ++i) {
    cautious_parameter parameter = vector_of(names[i], shapes[i], x[i], g);
    parameter.rank = 2;
    OK(cautious_add(o, &parameter, NULL));
    OK(cautious_group_of(o, i, &group));
    CHECK(strcmp(group, i == 1 ? "vectors" : "matrices") == 0);
  }
  cautious_destroy(o);
}

// sgd without gradient: x' = x - lr wd (x - x0) under anchored, x' = x (1 - lr wd) elsewhere, in powers of two.
static void anchors_densities_factors(void) {
  float x[kCount], g[kCount] = {0}, anchor[kCount] = {0};
  const double factors[1] = {0.5};
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_optimizer* o;
  input.lr = 0.5;
  memcpy(x, kStart, sizeof x);
  o = optimizer_of("sgd decay=anchored weight_decay=0.5", NULL, kLength, x, g);
  OK(cautious_step(o, &input, &report));
  CHECK(x[0] == 1);  // the start is the anchor
  OK(cautious_set_anchor(o, 0, anchor));
  OK(cautious_step(o, &input, &report));
  CHECK(x[0] == 0.75f && x[5] == -4.5f && report.decayed == kCount && report.budget == 0.25 * 21);
  cautious_destroy(o);

  memcpy(x, kStart, sizeof x);
  o = optimizer_of("sgd decay=random density=1 weight_decay=0.5", NULL, kLength, x, g);
  input.tensor_factors = factors;
  OK(cautious_step(o, &input, &report));
  CHECK(x[0] == 0.875f && report.decayed == kCount);
  OK(cautious_set_density(o, 0, 0));
  OK(cautious_step(o, &input, &report));
  CHECK(x[0] == 0.875f && report.decayed == 0 && report.step == 2);
  FAILS(cautious_set_density(o, 0, 2), CAUTIOUS_USAGE, "density");
  cautious_destroy(o);
}

static void skipped(void) {
  float x[kCount], g[kCount] = {NAN};
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_optimizer* o;
  memcpy(x, kStart, sizeof x);
  o = optimizer_of("sgd", "nonfinite=skip", kLength, x, g);
  input.lr = 1;
  OK(cautious_step(o, &input, &report));
  CHECK(report.skipped == 1 && report.nonfinite == 1 && report.step == 0 && memcmp(x, kStart, sizeof x) == 0);
  OK(cautious_bind(o, 0, x, NULL));  // no gradient: left out
  OK(cautious_step(o, &input, &report));
  CHECK(report.skipped == 0 && report.count == 0 && isnan(report.ratio) && memcmp(x, kStart, sizeof x) == 0);
  cautious_destroy(o);
}

// The rows of a wide factor are orthonormal.
static void polar(void) {
  double m[6] = {3, 1, -2, 0.5, 4, 1};
  float n[6] = {3, 1, -2, 0.5f, 4, 1};
  OK(cautious_polar(CAUTIOUS_F64, m, 2, 3, "schedule=exact", 1));
  CHECK(fabs(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] - 1) < 1e-12);
  CHECK(fabs(m[0] * m[3] + m[1] * m[4] + m[2] * m[5]) < 1e-12);
  OK(cautious_polar(CAUTIOUS_F32, n, 2, 3, "schedule=polar-express-8", 0));
  for (int i = 0; i < 6; ++i) CHECK(fabs(n[i] - m[i]) < 0.02);
  OK(cautious_polar(CAUTIOUS_F32, NULL, 0, 3, NULL, 0));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  save_and_load(argv[1]);
  state_by_hand();
  groups();
  anchors_densities_factors();
  skipped();
  polar();
  return finish();
}
