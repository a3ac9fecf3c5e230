// ten_lines.cc in C.
#include <cautious/c.h>

#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", cautious_last_error());
  return 1;
}

int main(void) {
  float x[4] = {4, 3, -2, -1}, g[4];
  const int64_t shape[1] = {4};
  cautious_parameter parameter = CAUTIOUS_PARAMETER;
  cautious_step_input input = CAUTIOUS_STEP_INPUT;
  cautious_report report = CAUTIOUS_REPORT;
  cautious_optimizer* optimizer;
  if (cautious_create("adamw decay=cautious weight_decay=0.1", NULL, &optimizer) != CAUTIOUS_OK) return failed();
  parameter.name = "x";
  parameter.rank = 1;
  parameter.shape = shape;
  parameter.x = x;
  parameter.g = g;
  if (cautious_add(optimizer, &parameter, NULL) != CAUTIOUS_OK) return failed();
  input.lr = 0.05;
  for (int t = 1; t <= 300; ++t) {
    for (int i = 0; i < 4; ++i) g[i] = x[i] - 1;  // gradient of |x - 1|^2 / 2
    if (cautious_step(optimizer, &input, &report) != CAUTIOUS_OK) return failed();
    if (t % 60 == 0) printf("step %3d  x0 %.4f  decayed %.2f\n", t, (double)x[0], report.ratio);
  }
  cautious_destroy(optimizer);
  return 0;
}
