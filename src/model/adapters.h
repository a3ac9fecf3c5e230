// The adapters of lora.h as a libtorch module, beside the Transformer whose matrices they change.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <torch/nn/module.h>

#include "model/lora.h"

namespace cautious::model {

class Adapters : public ::torch::nn::Module {
 public:
  // B is zero, A uniform as PEFT's, from the seed alone: at first nothing is changed.
  // Made in `type`, f32 or f64, and then moved to a device or another type, where `place` has one.
  Adapters(const ModelConfig& config, const LoraConfig& lora, std::uint64_t seed, at::ScalarType type = at::kFloat,
           const at::TensorOptions& place = {});

  struct Pair {
    at::Tensor a, b;
    std::uint64_t key;  // of its dropout
  };
  // Of a matrix of the model by its name; null if it has none.
  const Pair* find(const std::string& weight) const;

  // rows + scale B A x of rows x [N, in]; in training, entries of x are left out at random, as a function of the last draw().
  at::Tensor add_to(const at::Tensor& rows, const at::Tensor& x, const Pair& pair) const;
  void draw(std::uint64_t number) { number_ = number; }

  const LoraConfig& lora() const { return lora_; }

 private:
  at::Tensor thinned(const at::Tensor& x, std::uint64_t key) const;

  LoraConfig lora_;
  std::map<std::string, Pair> pairs_;
  std::uint64_t number_ = 0;
};

}  // namespace cautious::model
