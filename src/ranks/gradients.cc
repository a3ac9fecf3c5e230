#include "ranks/gradients.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace cautious::ranks {
namespace {

constexpr std::int64_t kBucket = std::int64_t{1} << 20;  // entries; a larger tensor travels alone
constexpr std::size_t kTravelling = 4;                   // buckets whose buffers are in memory

}  // namespace

Gradients::Gradients(World& world, std::vector<at::Tensor> parameters, std::vector<std::vector<Slice>> slices)
    : world_(world),
      parameters_(std::move(parameters)),
      place_(at::TensorOptions(world.travels_on(parameters_.front().device())).dtype(at::kFloat)),
      slices_(std::move(slices)),
      bucket_of_(parameters_.size()),
      had_none_(parameters_.size()),
      sums_(parameters_.size()) {
  // Gradients come from the last parameter to the first.
  std::int64_t filled = kBucket;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    if (filled + parameters_[i].numel() > kBucket) {
      buckets_.emplace_back();
      filled = 0;
    }
    filled += parameters_[i].numel();
    buckets_.back().parameters.push_back(i);
    bucket_of_[i] = buckets_.size() - 1;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::shared_ptr<::torch::autograd::Node> node = ::torch::autograd::impl::grad_accumulator(parameters_[i]);
    if (!node) continue;
    using List = ::torch::autograd::variable_list;
    node->add_post_hook(std::make_unique<::torch::autograd::utils::LambdaPostHook>(
        [this, i, alive = std::weak_ptr(alive_)](const List& outputs, const List&) {
          if (alive.lock()) arrived(i);
          return outputs;
        }));
    accumulators_.push_back(std::move(node));
  }
}

Gradients::~Gradients() = default;

std::int64_t Gradients::length(std::size_t parameter, int rank) const {
  const Slice& slice = slices_[parameter][static_cast<std::size_t>(rank)];
  return static_cast<std::int64_t>(slice.last - slice.first);
}

// Of the sums.
at::Tensor Gradients::slice_of(std::size_t parameter, int rank) const {
  const Slice& slice = slices_[parameter][static_cast<std::size_t>(rank)];
  return sums_[parameter].view({-1}).narrow(0, static_cast<std::int64_t>(slice.first), length(parameter, rank));
}

void Gradients::begin(std::int64_t passes) {
  sent_ = 0;
  for (at::Tensor& sum : sums_) sum.reset();
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size() * static_cast<std::size_t>(passes);
}

void Gradients::arrived(std::size_t parameter) {
  if (--buckets_[bucket_of_[parameter]].missing > 0) return;
  while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) send(sent_++);
}

void Gradients::send(std::size_t bucket) {
  const std::vector<std::size_t>& members = buckets_[bucket].parameters;
  if (travelling_.size() == kTravelling) add_up_first();
  std::vector<std::int64_t> from_lengths, to_lengths;
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    const auto sum = [&](int of) {
      return std::accumulate(members.begin(), members.end(), std::int64_t{0},
                             [&](std::int64_t total, std::size_t parameter) { return total + length(parameter, of); });
    };
    from_lengths.push_back(sum(rank));
    to_lengths.push_back(sum(world_.rank()));
  }
  const auto total = [](const std::vector<std::int64_t>& of) { return std::accumulate(of.begin(), of.end(), std::int64_t{0}); };
  const at::Tensor from = at::empty({total(from_lengths)}, place_), to = at::empty({total(to_lengths)}, place_);
  for (const std::size_t parameter : members) {
    const at::Tensor& gradient = parameters_[parameter].grad();
    had_none_[parameter] = !gradient.defined();
    sums_[parameter] = gradient.defined() ? gradient.detach().to(place_.device(), at::kFloat).contiguous()
                                          : at::zeros(parameters_[parameter].sizes(), place_);
  }
  std::int64_t at = 0;
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    for (const std::size_t parameter : members) {
      const at::Tensor part = slice_of(parameter, rank);
      from.narrow(0, at, part.numel()).copy_(part);
      at += part.numel();
    }
  }
  travelling_.push_back({bucket, to, world_.start(from, from_lengths, to, to_lengths)});
}

void Gradients::add_up_first() {
  const Travelling first = std::move(travelling_.front());
  travelling_.pop_front();
  world_.finish(*first.transfer);
  const std::int64_t own = first.to.numel() / world_.ranks();
  at::Tensor sum = first.to.narrow(0, 0, own);
  for (int rank = 1; rank < world_.ranks(); ++rank) sum.add_(first.to.narrow(0, rank * own, own));
  std::int64_t at = 0;
  for (const std::size_t parameter : buckets_[first.bucket].parameters) {
    const at::Tensor part = slice_of(parameter, world_.rank());
    part.copy_(sum.narrow(0, at, part.numel()));
    at += part.numel();
  }
}

std::vector<at::Tensor> Gradients::finish() {
  while (sent_ < buckets_.size()) send(sent_++);
  while (!travelling_.empty()) add_up_first();
  // One byte for each parameter and rank.
  const std::size_t count = parameters_.size();
  std::vector<char> none(count * static_cast<std::size_t>(world_.ranks()));
  std::vector<Piece> pieces;
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    char* const begin = none.data() + static_cast<std::size_t>(rank) * count;
    if (rank == world_.rank()) std::ranges::copy(had_none_, begin);
    pieces.push_back({rank, begin, count});
  }
  world_.exchange(pieces);
  for (std::size_t i = 0; i < count; ++i) {
    bool everywhere = true;
    for (std::size_t at = i; at < none.size(); at += count) everywhere = everywhere && none[at] != 0;
    if (everywhere) sums_[i].reset();
    if (sums_[i].defined()) sums_[i] = sums_[i].to(parameters_[i].device());
  }
  return sums_;
}

}  // namespace cautious::ranks
