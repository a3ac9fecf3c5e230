// cautious::torch::Optimizer as a program on libtorch uses it: beside libtorch's own optimizers, with groups, schedulers,
// views, closures, and saved and continued.
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <ATen/Parallel.h>

#include "torch_fixture.h"

namespace torch_optimizer_test {

using cautious::recipe;
using cautious::Recipe;
using cautious::torch::Optimizer;
using torch_fixture::leaf;
using torch_fixture::leaf_like;
using torch_fixture::options;
using torch_fixture::options_of;
using torch_fixture::random_gradient;
using torch_fixture::same_bits;
using torch_fixture::set_gradient;

Recipe made(std::string_view name, double weight_decay, std::string_view decay = "decoupled") {
  Recipe recipe = cautious::recipe(name);
  recipe.weight_decay = weight_decay;
  recipe.decay = cautious::decay(decay);
  return recipe;
}

void expect_like_libtorch(torch::optim::Optimizer& theirs, const at::Tensor& y, Optimizer& ours, const at::Tensor& x) {
  for (std::uint64_t t = 1; t <= 20; ++t) {
    random_gradient(x, t);
    random_gradient(y, t);
    theirs.step();
    ours.step();
    ASSERT_LE(torch_fixture::distance(x, y), 1e-12 * x.abs().max().item<double>()) << "step " << t;
  }
}

TEST(TorchOptimizer, IsAdamWWithDecoupledDecay) {
  for (const bool generic : {false, true}) {
    const at::Tensor x = leaf({7, 9}, at::kDouble, 1), y = leaf_like(x);
    torch::optim::AdamW theirs({y}, torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).eps(1e-6).weight_decay(0.3));
    Recipe recipe = made("adamw", 0.3);
    cautious::set(recipe, "beta2", "0.95");
    cautious::set(recipe, "eps", "1e-6");
    Optimizer ours({x}, options(1e-2, recipe), {.generic = generic});
    expect_like_libtorch(theirs, y, ours, x);
  }
}

TEST(TorchOptimizer, IsSgd) {
  for (const bool generic : {false, true}) {
    const at::Tensor x = leaf({7, 9}, at::kDouble, 1), y = leaf_like(x);
    torch::optim::SGD theirs({y}, torch::optim::SGDOptions(1e-2).weight_decay(0.3));
    Optimizer ours({x}, options(1e-2, made("sgd", 0.3)), {.generic = generic});
    expect_like_libtorch(theirs, y, ours, x);
    const at::Tensor a = leaf({7, 9}, at::kDouble, 1), b = leaf_like(a);
    torch::optim::SGD with_momentum({b}, torch::optim::SGDOptions(1e-2).momentum(0.9));
    Optimizer averaged({a}, options(1e-2 / (1 - 0.9), made("sgdm", 0)), {.generic = generic});
    expect_like_libtorch(with_momentum, b, averaged, a);
  }
}

// What a scheduler does to libtorch's own optimizer, it does to ours.
TEST(TorchOptimizer, SchedulersSetTheLearningRate) {
  const at::Tensor x = leaf({50}, at::kDouble, 1), y = leaf_like(x);
  Optimizer ours({x}, options(0.1, made("adamw", 0.1)));
  torch::optim::AdamW theirs({y}, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
  torch::optim::StepLR of_ours(ours, 2, 0.5), of_theirs(theirs, 2, 0.5);
  for (std::uint64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(options_of(ours).lr, theirs.param_groups()[0].options().get_lr());
    random_gradient(x, t), random_gradient(y, t);
    ours.step(), theirs.step();
    of_ours.step(), of_theirs.step();
  }
  EXPECT_LT(options_of(ours).lr, 0.05);
  EXPECT_LE(torch_fixture::distance(x, y), 1e-12);
}

// Routing through libtorch's groups is the core's routing, to the bit; so are names, which random decay depends on.
TEST(TorchOptimizer, RoutesAsTheCore) {
  Recipe rest = made("adamw", 0.2, "random");
  cautious::Routing routing = cautious::matrices_and_rest(made("muon", 0.1, "cautious"), rest);
  for (cautious::Group& group : routing.groups) group.lr_multiplier = group.name == routing.groups[0].name ? 0.5 : 2;
  routing.groups.back().decay = cautious::DecaySwitch::on;
  const auto parameters = torch_fixture::named({{"bias", leaf({300}, at::kFloat, 1)},
                                                {"weight", leaf({12, 20}, at::kFloat, 2)},
                                                {"kernel", leaf({4, 3, 2, 2}, at::kFloat, 3)},
                                                {"scale", leaf({}, at::kFloat, 4)}});
  std::vector<at::Tensor> copies;
  cautious::Optimizer core(routing, {.seed = 5, .threads = at::get_num_threads()});
  for (const auto& item : parameters) {
    copies.push_back(item.value().detach().clone());
    core.add<float>(item.key(), item.value().sizes().vec(), copies.back().data_ptr<float>(), nullptr);
  }
  Optimizer optimizer(parameters, routing, 0.1, {.seed = 5});
  for (std::uint64_t t = 0; t < 4; ++t) {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      random_gradient(parameters[i].value(), 10 * t + i);
      core.bind(i, copies[i].data_ptr(), parameters[i].value().grad().data_ptr());
    }
    const cautious::StepReport& of_core = core.step({.lr = 0.1, .lr_max = 0.1});
    optimizer.step();
    for (std::size_t i = 0; i < copies.size(); ++i) {
      EXPECT_TRUE(same_bits(parameters[i].value(), copies[i])) << parameters[i].key();
    }
    EXPECT_EQ(optimizer.report().total.decayed, of_core.total.decayed);
    EXPECT_EQ(optimizer.report().total.count, of_core.total.count);
    EXPECT_EQ(optimizer.report().step, of_core.step);
  }
  ASSERT_EQ(optimizer.names().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(optimizer.report().tensors[i].count, parameters[optimizer.names()[i]].numel());
  }
}

// However the values lie in memory, they move as if they lay row after row, and nothing beside them moves.
TEST(TorchOptimizer, AnyLayoutMovesTheSame) {
  for (const bool generic : {false, true}) {
    const at::Tensor start = torch_fixture::values({4, 3, 2, 6}, at::kFloat, 1);
    const at::Tensor flat = at::full({1000}, 7.0f), wide = at::full({4, 3, 2, 12}, 7.0f);
    const std::vector<at::Tensor> layouts{start.clone(),
                                          start.clone(at::MemoryFormat::ChannelsLast),
                                          start.permute({3, 2, 0, 1}).contiguous().permute({2, 3, 1, 0}),
                                          flat.slice(0, 100, 244).view({4, 3, 2, 6}).copy_(start),
                                          flat.slice(0, 244, 388).view({4, 3, 2, 6}).copy_(start),
                                          wide.slice(3, 1, 12, 2).copy_(start)};
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& layout : layouts) parameters.push_back(layout.detach().set_requires_grad(true));
    // Each in an optimizer of its own (the random decay goes by name), and two slices of one buffer in one.
    for (const at::Tensor& parameter : parameters) {
      Optimizer optimizer({parameter}, options(0.1, made("adamw", 0.5, "random")), {.generic = generic});
      for (std::uint64_t t = 0; t < 3; ++t) {
        const at::Tensor g = torch_fixture::values({4, 3, 2, 6}, at::kFloat, 50 + t);
        set_gradient(parameter, t % 2 == 0 ? g : g.transpose(0, 3).contiguous().transpose(0, 3));
        optimizer.step();
      }
    }
    for (const at::Tensor& parameter : parameters) EXPECT_TRUE(same_bits(parameter, parameters[0]));
    EXPECT_TRUE(flat.slice(0, 0, 100).eq(7).all().item<bool>() && flat.slice(0, 388).eq(7).all().item<bool>());
    EXPECT_TRUE(wide.slice(3, 0, 12, 2).eq(7).all().item<bool>());
    Optimizer both({parameters[3], parameters[4]}, options(0.1, made("sgd", 0.5)), {.generic = generic});
    both.step();
    EXPECT_TRUE(same_bits(parameters[3], parameters[4]));
  }
}

TEST(TorchOptimizer, ClosureRunsWithGradientsAndItsValueComesBack) {
  for (const bool generic : {false, true}) {
    const at::Tensor x = leaf({4}, at::kDouble, 1);
    const at::Tensor before = x.detach().clone();
    Optimizer optimizer({x}, options(0.25, made("sgd", 0)), {.generic = generic});
    const at::NoGradGuard off;
    const at::Tensor loss = optimizer.step([&] {
      optimizer.zero_grad();
      at::Tensor value = (x * x).sum();
      value.backward();
      return value;
    });
    EXPECT_DOUBLE_EQ(loss.item<double>(), before.square().sum().item<double>());
    EXPECT_LE(torch_fixture::distance(x, before / 2), 1e-15);
    optimizer.zero_grad();
    EXPECT_TRUE(!x.grad().defined() || x.grad().eq(0).all().item<bool>());
  }
}

// Autograd must notice that a step changed what a graph has saved.
TEST(TorchOptimizer, BumpsTheVersion) {
  for (const bool generic : {false, true}) {
    const at::Tensor x = leaf({4}, at::kFloat, 1);
    Optimizer optimizer({x}, options(0.1, made("sgd", 0)), {.generic = generic});
    random_gradient(x, 2);
    const at::Tensor stale = (x * x).sum();
    optimizer.step();
    EXPECT_THROW(stale.backward(), c10::Error);
  }
}

TEST(TorchOptimizer, LeavesOutWhatHasNoGradientAndTakesInWhatComesLater) {
  for (const bool generic : {false, true}) {
    const at::Tensor a = leaf({5}, at::kFloat, 1), b = leaf({5}, at::kFloat, 2), c = leaf({5}, at::kFloat, 3),
                     alone = leaf_like(c);
    const at::Tensor before = b.detach().clone();
    Optimizer optimizer({a, b}, options(0.1, made("adamw", 0.1, "cautious")), {.generic = generic});
    random_gradient(a, 1);
    optimizer.step();
    EXPECT_TRUE(same_bits(b, before));
    EXPECT_EQ(optimizer.report().tensors[1].count, 0);
    optimizer.add_param_group(torch::optim::OptimizerParamGroup({c}));
    Optimizer lone({alone}, options(0.1, made("adamw", 0.1, "cautious")), {.generic = generic});
    for (std::uint64_t t = 0; t < 3; ++t) {
      random_gradient(c, t), random_gradient(alone, t);
      optimizer.step(), lone.step();
    }
    EXPECT_TRUE(same_bits(c, alone)) << "bias corrections must count the parameter's own steps";
    EXPECT_EQ(optimizer.names(), (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(optimizer.report().step, 4);
  }
}

TEST(TorchOptimizer, OptionsTakeEffectAtOnce) {
  for (const bool generic : {false, true}) {
    const at::Tensor x = at::ones({3}, at::kDouble).set_requires_grad(true);
    Recipe adamc = made("adamc", 0.5);
    adamc.rule = cautious::Sgd{};
    Optimizer optimizer({x}, options(0.1, adamc), {.generic = generic});
    const auto stepped = [&] {
      const double before = x[0].item<double>();
      set_gradient(x, at::zeros({3}, at::kDouble));
      optimizer.step();
      return 1 - x[0].item<double>() / before;
    };
    EXPECT_NEAR(stepped(), 0.1 * 0.5, 1e-15);  // at the peak so far
    options_of(optimizer).lr = 0.05;
    EXPECT_NEAR(stepped(), 0.05 * 0.5 * 0.5, 1e-15);  // the largest seen is 0.1
    options_of(optimizer).lr_max = 0.5;
    EXPECT_NEAR(stepped(), 0.05 * 0.1 * 0.5, 1e-15);
    options_of(optimizer).decay_factor = 0.5;
    EXPECT_NEAR(stepped(), 0.05 * 0.1 * 0.25, 1e-15);
    options_of(optimizer).recipe.weight_decay = 1;
    EXPECT_NEAR(stepped(), 0.05 * 0.1 * 0.5, 1e-15);
    options_of(optimizer).recipe.coupling = cautious::Coupling::plain;
    EXPECT_NEAR(stepped(), 0.05 * 0.5, 1e-15);
  }
}

TEST(TorchOptimizer, SkipsAcrossGroups) {
  for (const bool generic : {false, true}) {
    const at::Tensor a = leaf({5}, at::kFloat, 1), b = leaf({5}, at::kFloat, 2);
    const at::Tensor before = a.detach().clone();
    Optimizer optimizer({torch::optim::OptimizerParamGroup({a}), torch::optim::OptimizerParamGroup({b})},
                        options(0.1, made("adamw", 0.1)), {.nonfinite = cautious::Nonfinite::skip, .generic = generic});
    random_gradient(a, 1), random_gradient(b, 2);
    b.grad()[3] = std::numeric_limits<float>::infinity();
    optimizer.step();
    EXPECT_TRUE(optimizer.report().skipped);
    EXPECT_EQ(optimizer.report().step, 0);
    EXPECT_EQ(optimizer.report().tensors[1].nonfinite, 1);
    EXPECT_TRUE(same_bits(a, before));
    b.grad()[3] = 1;
    optimizer.step();
    EXPECT_EQ(optimizer.report().step, 1);
    EXPECT_FALSE(same_bits(a, before));
  }
}

// The core is made anew when threads or types of gradients change; nobody may see it.
TEST(TorchOptimizer, ThreadsAndTypesOfGradientsMayChange) {
  const at::Tensor x = leaf({500}, at::kBFloat16, 1), y = leaf_like(x);
  const cautious::torch::Settings settings{.rounding = cautious::Rounding::split};
  Optimizer changing({x}, options(0.1, made("adamw", 0.1, "anchored")), settings),
      steady({y}, options(0.1, made("adamw", 0.1, "anchored")), settings);
  const int threads = at::get_num_threads();
  for (std::uint64_t t = 0; t < 4; ++t) {
    random_gradient(x, t), random_gradient(y, t);
    if (t % 2 == 1) set_gradient(x, x.grad().to(at::kFloat));
    steady.step();
    at::set_num_threads(t == 2 ? 1 : threads);
    changing.step();
    at::set_num_threads(threads);
  }
  EXPECT_TRUE(same_bits(x, y));
}

// Two runs that part at a save and load must not differ in a bit.
void expect_continues(const Recipe& recipe, at::ScalarType type, const cautious::torch::Settings& settings) {
  SCOPED_TRACE(cautious::to_string(recipe) + " " + c10::toString(type) + (settings.generic ? " generic" : " fused"));
  const at::Tensor x = leaf({8, 40}, type, 1), w = leaf({6, 4}, type, 2);
  Optimizer optimizer({x, w}, options(0.1, recipe), settings);
  const auto run = [&](Optimizer& which, const at::Tensor& a, const at::Tensor& b, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t t = from; t < to; ++t) {
      random_gradient(a, t), random_gradient(b, 100 + t);
      if (t % 3 == 1) b.mutable_grad().reset();
      which.step();
      options_of(which).lr *= 0.9;
    }
  };
  run(optimizer, x, w, 0, 3);
  const std::string bytes = torch_fixture::saved(optimizer);
  const at::Tensor y = leaf_like(x), v = leaf_like(w);
  run(optimizer, x, w, 3, 7);
  Optimizer other({leaf_like(y), leaf_like(v)}, options(0.3, recipe), settings);
  Optimizer continued({y, v}, options(0.3, recipe), settings);
  torch_fixture::load(continued, bytes);
  EXPECT_EQ(torch_fixture::saved(continued).size(), bytes.size());
  run(continued, y, v, 3, 7);
  EXPECT_TRUE(same_bits(x, y));
  EXPECT_TRUE(same_bits(w, v));
  EXPECT_EQ(continued.report().step, 7);
  EXPECT_EQ(continued.report().total.decayed, optimizer.report().total.decayed);
}

TEST(TorchState, ContinuesBitwise) {
  for (const bool generic : {false, true}) {
    for (const char* rule : {"sgd", "sgdm", "adamc", "lion", "muon"}) {
      for (const char* decay : {"cautious", "random", "shuffled", "anchored", "selective"}) {
        expect_continues(made(rule, 0.1, decay), at::kFloat, {.seed = 3, .generic = generic});
      }
    }
    expect_continues(made("adamw", 0.1, "cautious"), at::kDouble, {.generic = generic});
    for (const auto rounding : {cautious::Rounding::nearest, cautious::Rounding::stochastic, cautious::Rounding::split}) {
      expect_continues(made("adamw", 0.1, "anchored"), at::kBFloat16,
                       {.moments = cautious::Element::bf16, .rounding = rounding, .seed = 3, .generic = generic});
    }
  }
}

// A state does not depend on the path that wrote it.
TEST(TorchState, GoesFromOnePathToTheOther) {
  const at::Tensor x = leaf({30}, at::kDouble, 1), y = leaf_like(x);
  Optimizer fused({x}, options(0.1, made("adamw", 0.1, "anchored"))),
      generic({y}, options(0.1, made("adamw", 0.1, "anchored")), {.generic = true});
  random_gradient(x, 1);
  fused.step();
  {
    const at::NoGradGuard off;
    y.copy_(x);
  }
  torch_fixture::load(generic, torch_fixture::saved(fused));
  random_gradient(x, 2), random_gradient(y, 2);
  fused.step(), generic.step();
  EXPECT_LE(torch_fixture::distance(x, y), 1e-13);
}

TEST(TorchState, OptionsGoThroughAnArchive) {
  cautious::torch::Options written = options(0.25, made("muon", 0.1, "random"));
  cautious::set(written.recipe, "schedule", "custom");
  cautious::set(written.recipe, "coefficients", "1.5,-0.5,0,2,1,3");
  written.lr_max = 0.5, written.decay_factor = 0.75, written.decay = cautious::DecaySwitch::off;
  torch::serialize::OutputArchive out;
  written.serialize(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  cautious::torch::Options read;
  read.serialize(in);
  EXPECT_EQ(cautious::to_string(read.recipe), cautious::to_string(written.recipe));
  EXPECT_EQ(read.lr, 0.25);
  EXPECT_EQ(read.lr_max, 0.5);
  EXPECT_EQ(read.decay_factor, 0.75);
  EXPECT_EQ(read.decay, cautious::DecaySwitch::off);
}

}  // namespace torch_optimizer_test
