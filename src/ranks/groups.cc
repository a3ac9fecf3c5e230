#include "ranks/groups.h"

#include <csignal>
#include <cstdlib>
#include <future>
#include <thread>

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::ranks {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The board as the store through which Gloo finds its peers.
class BoardStore : public c10d::Store {
 public:
  explicit BoardStore(std::shared_ptr<Board> board) : board_(std::move(board)) {}

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    board_->set(key, std::string(value.begin(), value.end()));
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const std::string text = board_->get(key);
    return {text.begin(), text.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) board_->get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }
  bool check(const std::vector<std::string>& keys) override {
    wait(keys);
    return true;
  }
  std::int64_t add(const std::string&, std::int64_t) override { return unused(); }
  bool deleteKey(const std::string&) override { return unused() != 0; }
  std::int64_t getNumKeys() override { return unused(); }

 private:
  [[noreturn]] static std::int64_t unused() { throw Error(Fault::failure, "the board has no such operation"); }
  std::shared_ptr<Board> board_;
};

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

}  // namespace

World::Parts::Parts(const Place& where, std::chrono::seconds timeout)
    : place(where), shared_board(std::make_shared<Board>(place, timeout)), board(*shared_board) {
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to ranks that may be gone
  board.working(0);               // Gloo connects everyone with everyone
  // Whoever is lost is found by the board; Gloo itself waits as long as it takes.
  const auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::hours(24 * 365));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(board.own_address()));
  FLAGS_caffe2_log_level = 3;  // libtorch 2 would print what it throws as well
  // Gloo would wait for a rank that has left meanwhile; the thread is then left behind, with what it needs.
  std::promise<Group> made;
  std::future<Group> ready = made.get_future();
  std::thread([place = where, options, store = c10::make_intrusive<BoardStore>(shared_board),
               promise = std::move(made)]() mutable {
    try {
      promise.set_value(c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.ranks, options));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  while (ready.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout) {
    if (const std::string trouble = board.trouble(); !trouble.empty()) throw Error(Fault::failure, trouble);
  }
  try {
    group = ready.get();
  } catch (const c10::Error& error) {  // libtorch 2 wraps what the board throws
    const std::string trouble = board.trouble();
    throw Error(Fault::failure, trouble.empty() ? base::in_one_line(error.what_without_backtrace()) : trouble);
  }
  board.waiting();
  board.on_trouble([this] {
    std::unique_lock lock(mutex);
    troubled = true;
    changed.notify_all();
#ifdef CAUTIOUS_NCCL
    const auto waiting = device_group;
    lock.unlock();
    if (waiting) waiting->abort();  // kernels wait on the GPU, and whoever asks for their results with them
#endif
  });
  if (!board.trouble().empty()) throw Error(Fault::failure, board.trouble());  // before it could be called
}

World::Parts::~Parts() {
  board.on_trouble({});
  if (board.trouble().empty()) return;
  group.release();  // its threads may wait for those who are gone
#ifdef CAUTIOUS_NCCL
  device_group.release();
#endif
}

bool World::Parts::carries(at::Device device) {
#ifdef CAUTIOUS_NCCL
  if (device.is_cuda() && !device_group) {
    // Whoever is lost is found by the board, which then ends what waits for them; NCCL itself is to end nothing.
    setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 0);
    setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::hours(24 * 365);
    const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", c10::make_intrusive<BoardStore>(shared_board));
    auto made = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, place.rank, place.ranks, options);
    const std::lock_guard lock(mutex);
    device_group = std::move(made);
  }
  if (device.is_cuda()) return true;
#endif
  return device.is_cpu();
}

std::shared_ptr<World::Transfer> World::Parts::watched(Work work, std::vector<at::Tensor> tensors, std::int64_t bytes) {
  auto transfer = std::make_shared<Transfer>(work, std::move(tensors));
  {
    const std::lock_guard lock(mutex);
    traffic.bytes += bytes;
    if (on_the_way++ == 0) since = Clock::now();
  }
  work->getFuture()->addCallback([this, transfer](c10::ivalue::Future&) {
    const std::lock_guard lock(mutex);
    if (--on_the_way == 0) traffic.seconds += seconds_since(since);
    transfer->ended_ = true;
    changed.notify_all();
  });
  return transfer;
}

// Gloo says which connection broke, the board a moment later which rank.
void World::Parts::give_up(const std::string& otherwise) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::seconds(3), [this] { return troubled; });
  lock.unlock();
  const std::string trouble = board.trouble();
  throw Error(Fault::failure, trouble.empty() ? otherwise : trouble);
}

void World::Parts::wait(const Transfer& transfer) {
  const Clock::time_point before = Clock::now();
  board.waiting();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return transfer.ended_ || troubled; });
  const bool ended = transfer.ended_;
  traffic.waited += seconds_since(before);
  lock.unlock();
  if (!ended) give_up("");
  const auto future = transfer.work_->getFuture();
  if (future->hasError())
    give_up("the connection to another rank broke: " + base::in_one_line(future->tryRetrieveErrorMessage()));
  transfer.work_->wait();  // on a GPU it has begun, and what comes next waits for it there
  board.working(step);
}

}  // namespace cautious::ranks
