// One step of the rule that was just added, by name and under cautious weight decay, against arithmetic by hand.
#include <cautious/cautious.h>

#include <cstdio>

int main() {
  cautious::Recipe recipe = cautious::recipe("signum");
  cautious::set(recipe, "beta", "0.5");
  cautious::set(recipe, "decay", "cautious");
  cautious::set(recipe, "weight_decay", "1");
  cautious::Optimizer optimizer(recipe);

  // u = sign(g) in the first step. The second coordinate moves away from zero, so it does not decay:
  // 2 - 0.25 (1 + 2) = 1.25   and   2 - 0.25 (-1) = 2.25.
  double x[2] = {2, 2};
  const double g[2] = {3, -3};
  optimizer.add("x", {2}, x, g);
  const double ratio = optimizer.step({.lr = 0.25}).total.ratio();

  std::printf("%s: x = %g %g, decayed %g\n", cautious::to_string(recipe).c_str(), x[0], x[1], ratio);
  return x[0] == 1.25 && x[1] == 2.25 && ratio == 0.5 ? 0 : 1;
}
