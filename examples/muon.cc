// Muon for the matrices, AdamW for the embedding and the vectors, both with cautious weight decay.
#include <cautious/cautious.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> x = {}, g = {};
};

std::vector<Tensor> small_model() {
  return {{"embedding", {1000, 64}}, {"conv", {32, 3, 5, 5}}, {"attention.qkv", {192, 64}}, {"attention.out", {64, 64}},
          {"mlp.up", {256, 64}},     {"mlp.down", {64, 256}}, {"norm.gain", {64}},          {"mlp.bias", {256}}};
}

}  // namespace

int main() {
  cautious::Recipe muon = cautious::recipe("muon"), adamw = cautious::recipe("adamw");
  cautious::set(muon, "scale", "rms");  // updates of AdamW's size, so that both share one learning rate
  muon.decay = adamw.decay = cautious::Cautious{};
  // An embedding is a table, no linear map: its long side, above 512, sends it to the rest.
  cautious::Optimizer optimizer(cautious::matrices_and_rest(muon, adamw, 512));

  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<Tensor> model = small_model();
  for (Tensor& each : model) {
    std::size_t count = 1;
    for (const std::int64_t side : each.shape) count *= static_cast<std::size_t>(side);
    each.x.resize(count);
    each.g.resize(count);
    for (float& x : each.x) x = 0.1f * normal(engine);
    const cautious::Group& group = optimizer.group_of(optimizer.add(each.name, each.shape, each.x.data(), each.g.data()));
    const std::string rule(cautious::name_of(group.recipe.rule));
    std::printf("%-14s -> %-8s (%s)\n", each.name.c_str(), group.name.c_str(), rule.c_str());
  }

  for (int t = 1; t <= 20; ++t) {
    for (Tensor& each : model) {  // of |x|^2 / 2, with noise
      for (std::size_t i = 0; i < each.x.size(); ++i) each.g[i] = each.x[i] + 0.1f * normal(engine);
    }
    const cautious::StepReport& report = optimizer.step({.lr = 0.01});
    if (t % 5 != 0) continue;
    std::map<std::string, cautious::Tally> groups;
    for (std::size_t i = 0; i < model.size(); ++i) groups[optimizer.group_of(i).name] += report.tensors[i];
    std::printf("step %2d  decayed:", t);
    for (const auto& [name, tally] : groups) std::printf("  %s %.2f", name.c_str(), tally.ratio());
    std::printf("  total %.2f\n", report.total.ratio());
  }
}
