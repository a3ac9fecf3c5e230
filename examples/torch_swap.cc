// A training loop on libtorch in which torch::optim::AdamW became AdamW with cautious weight decay: three lines.
#include <cstdio>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cautious/torch.h>

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  const torch::Tensor x = torch::randn({256, 8}), y = x.prod(1, true).tanh();

  // torch::optim::AdamWOptions options(1e-2);
  // options.weight_decay(0.1);
  // torch::optim::AdamW optimizer(model->parameters(), options);
  cautious::torch::Options options(1e-2);
  options.recipe = {.rule = cautious::Adam{}, .decay = cautious::Cautious{}, .weight_decay = 0.1};
  cautious::torch::Optimizer optimizer(model->named_parameters(), options);

  for (int step = 1; step <= 200; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer.step();
    if (step % 50 == 0) {
      std::printf("step %3d  loss %.5f  decayed %.2f of the weights\n", step, loss.item<double>(),
                  optimizer.report().total.ratio());
    }
  }
}
