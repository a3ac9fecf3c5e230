// Gradients of all ranks, added up in the order of the ranks, while the backward pass still runs. Each rank gets the sums of
// its slices alone; the rest of a gradient is its own.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/optimizer.h>

#include "ranks/world.h"

namespace torch::autograd {
struct Node;
}

namespace cautious::ranks {

class Gradients {
 public:
  // Parameters in the order in which the forward pass uses them, more or less; slices of each, for every rank.
  Gradients(World& world, std::vector<at::Tensor> parameters, std::vector<std::vector<Slice>> slices);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // A step of so many backward passes begins: gradients travel in the last.
  void begin(std::int64_t passes);
  // After the last pass: the sums, f32 on the parameters' device, when all are there. Undefined for a parameter
  // that has a gradient in no rank.
  std::vector<at::Tensor> finish();

 private:
  struct Bucket {
    std::vector<std::size_t> parameters;
    std::size_t missing = 0;  // passes of all its parameters that are still to come
  };
  struct Travelling {
    std::size_t bucket;
    at::Tensor to;
    std::shared_ptr<World::Transfer> transfer;
  };

  void arrived(std::size_t parameter);
  void send(std::size_t bucket);
  void add_up_first();
  std::int64_t length(std::size_t parameter, int rank) const;
  at::Tensor slice_of(std::size_t parameter, int rank) const;

  World& world_;
  std::vector<at::Tensor> parameters_;
  at::TensorOptions place_;  // where gradients travel
  std::vector<std::vector<Slice>> slices_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;
  std::vector<char> had_none_;    // no gradient in this rank
  std::vector<at::Tensor> sums_;  // f32, where they travel; own slices of them in the end
  std::size_t sent_ = 0;          // buckets, always in the same order
  std::deque<Travelling> travelling_;
  std::vector<std::shared_ptr<::torch::autograd::Node>> accumulators_;  // they hold the hooks
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cautious::ranks
