// Wrong use of cautious::torch::Optimizer: one clear line that names the parameter, and nothing has changed.
#include <torch/optim/adamw.h>

#include "torch_fixture.h"

namespace torch_errors_test {

using cautious::recipe;
using cautious::torch::Optimizer;
using torch_fixture::expect_error;
using torch_fixture::leaf;
using torch_fixture::named;
using torch_fixture::options;
using torch_fixture::options_of;
using torch_fixture::random_gradient;
using torch_fixture::same_bits;
using torch_fixture::set_gradient;

cautious::torch::Options adamw() { return options(0.1, recipe("adamw")); }

void expect_refused(const at::Tensor& parameter, std::initializer_list<std::string_view> fragments) {
  for (const bool generic : {false, true}) {
    expect_error(
        [&] {
          Optimizer(named({{"fine", leaf({2}, at::kFloat, 1)}, {"odd", parameter}}), adamw(), {.generic = generic});
        },
        fragments);
  }
}

TEST(TorchErrors, Parameters) {
  expect_refused(at::ones({3}, at::kInt), {"'odd'", "Int", "Float, Double, BFloat16"});
  expect_refused(at::ones({3}, at::kComplexFloat), {"'odd'", "ComplexFloat", "Float, Double, BFloat16"});
  expect_refused(at::ones({3}, at::kHalf), {"'odd'", "Half", "Float, Double, BFloat16"});
  expect_refused({}, {"'odd'", "undefined"});
  expect_refused(leaf({3}, at::kFloat, 1) * 2, {"'odd'", "leaf"});
  expect_refused(at::ones({1}).expand({3}), {"'odd'", "share memory"});
  expect_refused(at::ones({9}).as_strided({3, 3}, {1, 1}), {"'odd'", "share memory"});
  expect_refused(at::ones({3, 3}).to_sparse(), {"'odd'", "sparse"});
  expect_error([] { Optimizer(std::vector<at::Tensor>{}, adamw()); }, {"no parameters"});
  expect_error([] { Optimizer(named({}), adamw()); }, {"no parameters"});
}

TEST(TorchErrors, TheSameMemoryTwice) {
  const at::Tensor x = leaf({4}, at::kFloat, 1);
  expect_error([&] { Optimizer(named({{"a", x}, {"b", x}}), adamw()); }, {"'a'", "'b'", "twice"});
  expect_error(
      [&] {
        Optimizer({torch::optim::OptimizerParamGroup({x}), torch::optim::OptimizerParamGroup({x})}, adamw());
      },
      {"'0'", "'1'", "twice"});
  const at::Tensor view = x.detach().slice(0, 2).set_requires_grad(true);
  expect_error([&] { Optimizer(named({{"a", x}, {"b", view}}), adamw()); }, {"'a'", "'b'", "share memory"});
  Optimizer optimizer({x}, adamw());
  random_gradient(x, 1);
  optimizer.step();
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({x}));
  expect_error([&] { optimizer.step(); }, {"'0'", "'1'", "twice"});
}

TEST(TorchErrors, Gradients) {
  for (const bool generic : {false, true}) {
    const at::Tensor a = leaf({4}, at::kFloat, 1), x = leaf({4, 2}, at::kFloat, 2);
    const at::Tensor before = a.detach().clone();
    Optimizer optimizer(named({{"a", a}, {"x", x}}), adamw(), {.generic = generic});
    expect_error([&] { optimizer.step(); }, {"no parameter has a gradient", "backward()"});
    random_gradient(a, 1);
    set_gradient(x, at::ones({4, 2}).to_sparse());
    expect_error([&] { optimizer.step(); }, {"'x'", "sparse"});
    set_gradient(x, at::ones({2, 4}));
    expect_error([&] { optimizer.step(); }, {"'x'", "[4, 2]", "[2, 4]"});
    set_gradient(x, at::ones({4, 2}, at::kDouble));
    expect_error([&] { optimizer.step(); }, {"'x'", "Float", "Double"});
    set_gradient(x, at::ones({4, 2}, at::TensorOptions().device(at::kMeta)));
    expect_error([&] { optimizer.step(); }, {"'x'", "cpu", "meta"});
    EXPECT_TRUE(same_bits(a, before));
    EXPECT_EQ(optimizer.report().step, 0);
  }
  const at::Tensor x = leaf({3}, at::kFloat, 1);
  Optimizer strict(named({{"x", x}}), adamw(), {.nonfinite = cautious::Nonfinite::error});
  set_gradient(x, at::full({3}, std::numeric_limits<float>::infinity()));
  expect_error([&] { strict.step(); }, {"'x'", "3 non-finite entries of 3", "nothing was changed"});
}

TEST(TorchErrors, ParametersThatChanged) {
  at::Tensor x = leaf({4}, at::kFloat, 1);
  Optimizer optimizer(named({{"x", x}}), adamw());
  x.set_data(at::ones({5}));
  set_gradient(x, at::ones({5}));
  expect_error([&] { optimizer.step(); }, {"shape", "'x'", "[4]", "[5]"});
  x.mutable_grad().reset();
  x.set_data(at::ones({4}, at::kDouble));
  set_gradient(x, at::ones({4}, at::kDouble));
  expect_error([&] { optimizer.step(); }, {"type", "'x'", "Float", "Double"});
  x.mutable_grad().reset();
  x.set_data(at::ones({4}));
  set_gradient(x, at::ones({4}));
  optimizer.step();
  optimizer.param_groups()[0].params()[0] = leaf({4}, at::kFloat, 2);
  expect_error([&] { optimizer.step(); }, {"'x'", "another tensor"});
  optimizer.param_groups()[0].params().clear();
  expect_error([&] { optimizer.step(); }, {"1 parameters", "0 now"});
}

TEST(TorchErrors, Options) {
  const at::Tensor x = leaf({4, 4}, at::kFloat, 1);
  random_gradient(x, 1);
  Optimizer optimizer(named({{"x", x}}), adamw());
  const auto with = [&](auto change, std::initializer_list<std::string_view> fragments) {
    const cautious::torch::Options good = options_of(optimizer);
    change(options_of(optimizer));
    expect_error([&] { optimizer.step(); }, fragments);
    options_of(optimizer) = good;
  };
  with([](auto& o) { o.recipe.rule = cautious::Lion{}; }, {"group 0", "adam", "lion", "new optimizer"});
  with([](auto& o) { o.recipe.rule = cautious::Adam{.beta1 = 0.5}; }, {"group 0", "beta1=0.5"});
  with([](auto& o) { o.recipe.decay = cautious::Cautious{}; }, {"group 0", "decoupled", "cautious"});
  with([](auto& o) { o.recipe.weight_decay = -1; }, {"weight_decay", "-1"});
  with([](auto& o) { o.decay = cautious::DecaySwitch::off; }, {"group 0", "switch"});
  with([](auto& o) { o.lr = -1; }, {"group 0", "lr is -1"});
  with([](auto& o) { o.lr_max = std::nan(""); }, {"group 0", "lr_max is nan"});
  with([](auto& o) { o.decay_factor = -0.5; }, {"group 0", "decay_factor is -0.5"});
  optimizer.step();
  for (const bool generic : {false, true}) {
    expect_error([&] { Optimizer({x}, adamw(), {.update_rms_clip = -1, .generic = generic}); }, {"update_rms_clip", "-1"});
    expect_error([&] { Optimizer({x}, adamw(), {.moments = cautious::Element::f64, .generic = generic}); }, {"moments", "f64"});
    const at::Tensor vector = leaf({4}, at::kFloat, 1);
    expect_error(
        [&] {
          Optimizer(named({{"bias", vector}}), options(0.1, recipe("muon")), {.generic = generic});
        },
        {"'bias'", "no matrix"});
  }
  std::vector<torch::optim::OptimizerParamGroup> theirs;
  theirs.emplace_back(std::vector<at::Tensor>{x}, std::make_unique<torch::optim::AdamWOptions>(0.1));
  expect_error([&] { Optimizer(theirs, adamw()); }, {"group 0", "cautious::torch::Options"});
  cautious::Routing nowhere{.groups = {{.name = "all", .recipe = recipe("adamw")}},
                            .routes = {{.group = "all", .pattern = "y"}}};
  expect_error([&] { Optimizer(named({{"x", x}}), nowhere, 0.1); }, {"'x'"});
}

// Every load that fails leaves the optimizer as it was: the next step is that of one that never tried.
TEST(TorchErrors, StatesThatDoNotFit) {
  for (const bool generic : {false, true}) {
    const auto make = [&](const at::Tensor& x, const char* name = "x", const cautious::torch::Options& with = adamw(),
                          std::uint64_t seed = 0) {
      auto optimizer =
          std::make_unique<Optimizer>(named({{name, x}}), with, cautious::torch::Settings{.seed = seed, .generic = generic});
      random_gradient(x, 5);
      optimizer->step();
      return optimizer;
    };
    const at::Tensor x = leaf({4, 2}, at::kFloat, 1), twin = torch_fixture::leaf_like(x);
    const auto optimizer = make(x), untouched = make(twin);
    const auto refuse = [&](const std::string& bytes, std::initializer_list<std::string_view> fragments) {
      expect_error([&] { torch_fixture::load(*optimizer, bytes); }, fragments);
    };
    refuse(torch_fixture::saved(*make(leaf({4, 3}, at::kFloat, 1))), {"parameter 0", "[4, 3]", "[4, 2]"});
    refuse(torch_fixture::saved(*make(leaf({4, 2}, at::kDouble, 1))), {"parameter 0", "Double", "Float"});
    refuse(torch_fixture::saved(*make(leaf({4, 2}, at::kFloat, 1), "y")), {"parameter 0", "y Float", "x Float"});
    refuse(torch_fixture::saved(*make(leaf({4, 2}, at::kFloat, 1), "x", options(0.1, recipe("lion")))),
           {"group 0", "lion", "adam"});
    refuse(torch_fixture::saved(*make(leaf({4, 2}, at::kFloat, 1), "x", adamw(), 9)), {"settings", "seed=9", "seed=0"});
    Optimizer two(named({{"x", leaf({4, 2}, at::kFloat, 1)}, {"y", leaf({3}, at::kFloat, 1)}}), adamw());
    refuse(torch_fixture::saved(two), {"2 parameters", "1"});
    const at::Tensor y = leaf({4, 2}, at::kFloat, 1);
    torch::optim::AdamW theirs({y}, torch::optim::AdamWOptions(0.1));
    random_gradient(y, 1);
    theirs.step();
    refuse(torch_fixture::saved(theirs), {"no 'format'", "not written by cautious::torch::Optimizer"});

    // libtorch reads the file before it asks us: its error, and still nothing changed.
    const std::string whole = torch_fixture::saved(*optimizer);
    EXPECT_ANY_THROW(torch_fixture::load(*optimizer, whole.substr(0, whole.size() / 2)));
    // A state that stops halfway.
    torch::serialize::OutputArchive partial;
    partial.write("format", c10::IValue("cautious torch optimizer 1"));
    std::stringstream stream;
    partial.save_to(stream);
    refuse(stream.str(), {"no 'parameters'", "incomplete"});

    for (const at::Tensor& each : {x, twin}) random_gradient(each, 6);
    optimizer->step(), untouched->step();
    EXPECT_TRUE(same_bits(x, twin));
  }
}

// A state from before a field of its recipe existed: as if the field had its default.
TEST(TorchOldStates, AFieldThatIsMissingHasItsDefault) {
  const auto with = [](cautious::MaskBy mask) {
    auto made = options(0.1, recipe("lion-k"));
    made.recipe.decay = cautious::Cautious{mask};
    return made;
  };
  const at::Tensor x = leaf({5}, at::kFloat, 1);
  Optimizer optimizer({x}, with(cautious::MaskBy::direction));
  random_gradient(x, 2);
  optimizer.step();
  std::stringstream now(torch_fixture::saved(optimizer)), before;
  torch::serialize::InputArchive in;
  in.load_from(now);
  torch::serialize::OutputArchive out;
  for (const std::string& key : in.keys()) {
    c10::IValue value;
    in.read(key, value);
    if (key == "groups") {
      c10::List<std::string> lines;
      for (std::string line : value.to<std::vector<std::string>>()) {
        lines.push_back(line.erase(line.find(" mask=direction"), 15));
      }
      value = lines;
    }
    value.isTensor() ? out.write(key, value.toTensor(), true) : out.write(key, value);
  }
  out.save_to(before);
  torch_fixture::load(optimizer, before.str());
  Optimizer other({leaf({5}, at::kFloat, 1)}, with(cautious::MaskBy::momentum));
  expect_error([&] { torch_fixture::load(other, before.str()); }, {"group 0", "mask=direction", "mask=momentum"});
}

}  // namespace torch_errors_test
