// What carries the bytes of a World: libtorch's process groups, and the board that knows who is alive. For this room only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#ifdef CAUTIOUS_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "ranks/board.h"
#include "ranks/world.h"

namespace cautious::ranks {

using Work = c10::intrusive_ptr<c10d::Work>;

// A transfer in flight. Its tensors live as long.
class World::Transfer {
 public:
  Transfer(Work work, std::vector<at::Tensor> tensors) : work_(std::move(work)), tensors_(std::move(tensors)) {}

  Work work_;
  std::vector<at::Tensor> tensors_;
  bool ended_ = false;
};

struct World::Parts {
  Parts(const Place& place, std::chrono::seconds timeout);
  ~Parts();

  // start(group) on the group that carries tensors of the device.
  template <class Start>
  Work on([[maybe_unused]] at::Device device, const Start& start) {
#ifdef CAUTIOUS_NCCL
    if (device.is_cuda()) return start(*device_group);
#endif
    return start(*group);
  }
  bool carries(at::Device device);
  std::shared_ptr<Transfer> watched(Work work, std::vector<at::Tensor> tensors, std::int64_t bytes);
  void wait(const Transfer& transfer);
  [[noreturn]] void give_up(const std::string& otherwise);

  Place place;
  std::shared_ptr<Board> shared_board;
  Board& board;
  std::int64_t step = 0;
  mutable std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool troubled = false;
  int on_the_way = 0;
  std::chrono::steady_clock::time_point since = {};  // when the first of them began
  Traffic traffic;

  // Destroyed first: their threads use the rest.
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
#ifdef CAUTIOUS_NCCL
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> device_group;  // made when it is asked for
#endif
};

}  // namespace cautious::ranks
