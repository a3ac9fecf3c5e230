#include <cautious/cautious.h>

#include <cstdio>

int main() {
  float x[4] = {4, 3, -2, -1}, g[4];
  cautious::Recipe recipe = cautious::recipe("adamw");
  recipe.decay = cautious::Cautious{};  // the one line: decay only where update and weight agree in sign
  recipe.weight_decay = 0.1;
  cautious::Optimizer optimizer(recipe);
  optimizer.add("x", {4}, x, g);
  for (int t = 1; t <= 300; ++t) {
    for (int i = 0; i < 4; ++i) g[i] = x[i] - 1;  // gradient of |x - 1|^2 / 2
    const cautious::StepReport& report = optimizer.step({.lr = 0.05});
    if (t % 60 == 0) std::printf("step %3d  x0 %.4f  decayed %.2f\n", t, double{x[0]}, report.total.ratio());
  }
}
