// The ranks of a run: one process each, with the same model, that exchange bytes. On libtorch's process groups: Gloo for what
// is in memory, NCCL for what is on GPUs; alone, it does nothing and needs nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/optimizer.h>

#include "ranks/place.h"

namespace cautious::ranks {

// What went over the wire: bytes that this rank sent, seconds in which something was on its way, and seconds in which this rank
// had nothing to do but wait for it.
struct Traffic {
  std::int64_t bytes = 0;
  double seconds = 0, waited = 0;

  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes, seconds += other.seconds, waited += other.waited;
    return *this;
  }
  Traffic operator-(const Traffic& other) const {
    return {bytes - other.bytes, seconds - other.seconds, waited - other.waited};
  }
  Traffic operator/(std::int64_t steps) const {
    const auto count = static_cast<double>(steps);
    return {bytes / steps, seconds / count, waited / count};
  }
};

class World {
 public:
  World();  // alone
  // Meets the others within `timeout`; one that is not heard of for so long, or does nothing, is an Error in all others.
  World(const Place& place, std::chrono::seconds timeout);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }
  bool first() const { return place_.rank == 0; }
  int local_rank() const { return place_.local_rank; }
  bool first_here() const { return place_.local_rank == 0; }  // on its machine
  Traffic traffic() const;                                    // since the beginning

  // For an optimizer, or whoever shares work. The world must outlive it.
  Share share();
  void exchange(std::span<const Piece> pieces, const Share::Prepare& prepare = {});

  // Where tensors of a device travel: there, or, if nothing can carry them from there, in memory. All ranks must ask.
  at::Device travels_on(at::Device device);
  // Makes every tensor what its owner has. Contiguous, and where they travel.
  void exchange(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners);

  // One value of every rank.
  template <class T>
  std::vector<T> gather(const T& own) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(ranks()), own);
    std::vector<Piece> pieces;
    for (int r = 0; r < ranks(); ++r) pieces.push_back({r, &all[static_cast<std::size_t>(r)], sizeof(T)});
    exchange(pieces);
    return all;
  }

  // Sends `from`, cut into parts for each rank, and receives a part of each into `to`: both flat f32, with the parts' lengths.
  class Transfer;
  std::shared_ptr<Transfer> start(const at::Tensor& from, const std::vector<std::int64_t>& from_lengths, const at::Tensor& to,
                                  const std::vector<std::int64_t>& to_lengths);
  void finish(Transfer& transfer);

  // An Error in every rank unless all have the same text; it shows the first line that differs.
  void agree(const std::string& what, const std::string& text);
  // Does the work: on every machine its first rank, then the others, which find what that one has prepared.
  void in_turn(const std::string& what, const std::function<void()>& work);

  // The work is at this step, for messages and for those who watch over it.
  void at_step(std::int64_t step);
  // Tells the others why this rank gives up.
  void fail(const std::string& why);

 private:
  struct Parts;
  Place place_;
  std::unique_ptr<Parts> parts_;  // null: alone
};

}  // namespace cautious::ranks
