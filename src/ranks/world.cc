#include "ranks/world.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include <ATen/ops/empty.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cautious/error.h>

#include "base/text.h"
#include "ranks/board.h"
#include "ranks/wire.h"

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

using Work = c10::intrusive_ptr<c10d::Work>;
using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

}  // namespace

// A transfer in flight. Its tensors live as long.
class World::Transfer {
 public:
  Transfer(Work work, std::vector<at::Tensor> tensors) : work_(std::move(work)), tensors_(std::move(tensors)) {}

  Work work_;
  std::vector<at::Tensor> tensors_;
  bool ended_ = false;
};

struct World::Parts {
  Parts(const Place& place, std::chrono::seconds timeout)
      : shared_board(std::make_shared<Board>(place, timeout)), board(*shared_board) {
    std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to ranks that may be gone
    board.working(0);               // Gloo connects everyone with everyone
    // Whoever is lost is found by the board; Gloo itself waits as long as it takes.
    const auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::hours(24 * 365));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(board.own_address()));
    FLAGS_caffe2_log_level = 3;  // libtorch 2 would print what it throws as well
    // Gloo would wait for a rank that has left meanwhile; the thread is then left behind, with what it needs.
    std::promise<Group> made;
    std::future<Group> ready = made.get_future();
    std::thread([place, options, store = c10::make_intrusive<BoardStore>(shared_board), promise = std::move(made)]() mutable {
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
      const std::lock_guard lock(mutex);
      troubled = true;
      changed.notify_all();
    });
    if (!board.trouble().empty()) throw Error(Fault::failure, board.trouble());  // before it could be called
  }
  ~Parts() {
    board.on_trouble({});
    if (board.trouble().empty()) return;
    group.release();  // its threads may wait for those who are gone
  }

  std::shared_ptr<Board> shared_board;
  Board& board;
  std::int64_t step = 0;
  mutable std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool troubled = false;
  int on_the_way = 0;
  Clock::time_point since = {};  // when the first of them began
  Traffic traffic;

  Group group;  // destroyed first: its threads use the rest

  std::shared_ptr<Transfer> watched(Work work, std::vector<at::Tensor> tensors, std::int64_t bytes) {
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
  [[noreturn]] void give_up(const std::string& otherwise) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(3), [this] { return troubled; });
    lock.unlock();
    const std::string trouble = board.trouble();
    throw Error(Fault::failure, trouble.empty() ? otherwise : trouble);
  }

  void wait(const Transfer& transfer) {
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
    board.working(step);
  }
};

World::World() = default;
World::World(const Place& place, std::chrono::seconds timeout) : place_(place) {
  if (place.ranks > 1) parts_ = std::make_unique<Parts>(place, timeout);
}
World::~World() = default;

Traffic World::traffic() const {
  if (!parts_) return {};
  const std::lock_guard lock(parts_->mutex);
  return parts_->traffic;
}

Share World::share() {
  return {rank(), ranks(), [this](std::span<const Piece> pieces, const Share::Prepare& prepare) { exchange(pieces, prepare); }};
}

namespace {

// Pieces, or parts of them, that travel together: in a buffer of each owner.
class Window {
 public:
  explicit Window(int ranks) : buffers_(static_cast<std::size_t>(ranks)), sizes_(static_cast<std::size_t>(ranks)) {}

  void add(const Piece& part) {
    parts_.push_back(part);
    sizes_[static_cast<std::size_t>(part.owner)] += static_cast<std::int64_t>(part.bytes);
  }
  bool empty() const { return parts_.empty(); }

  void pack(int rank) {
    for (std::size_t r = 0; r < buffers_.size(); ++r) {
      if (sizes_[r] > 0) buffers_[r] = at::empty({sizes_[r]}, at::kByte);
    }
    each([&](const Piece& part, std::uint8_t* at) {
      if (part.owner == rank) std::memcpy(at, part.data, part.bytes);
    });
  }
  void unpack(int rank) {
    each([&](const Piece& part, const std::uint8_t* at) {
      if (part.owner != rank) std::memcpy(part.data, at, part.bytes);
    });
  }

  std::vector<at::Tensor>& buffers() { return buffers_; }
  std::int64_t size(int owner) const { return sizes_[static_cast<std::size_t>(owner)]; }
  std::vector<std::shared_ptr<World::Transfer>> transfers = {};

 private:
  template <class Body>
  void each(Body body) {
    std::vector<std::size_t> used(buffers_.size());
    for (const Piece& part : parts_) {
      const auto owner = static_cast<std::size_t>(part.owner);
      body(part, buffers_[owner].data_ptr<std::uint8_t>() + used[owner]);
      used[owner] += part.bytes;
    }
  }

  std::vector<Piece> parts_;
  std::vector<at::Tensor> buffers_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

void World::exchange(std::span<const Piece> pieces, const Share::Prepare& prepare) {
  if (!parts_) return;
  constexpr std::size_t kWindow = std::size_t{8} << 20;
  std::vector<Window> windows;  // two at most: one is packed while the other travels
  const auto finish_first = [&] {
    for (const auto& transfer : windows.front().transfers) parts_->wait(*transfer);
    windows.front().unpack(rank());
    windows.erase(windows.begin());
  };
  const auto send = [&](Window window, std::size_t end) {  // of the pieces before that
    if (prepare) prepare(end);
    if (window.empty()) return;
    window.pack(rank());
    for (int owner = 0; owner < ranks(); ++owner) {
      if (window.size(owner) == 0) continue;
      std::vector<at::Tensor> tensors{window.buffers()[static_cast<std::size_t>(owner)]};
      c10d::BroadcastOptions options;
      options.rootRank = owner;
      const std::int64_t sent = owner == rank() ? window.size(owner) * (ranks() - 1) : 0;
      window.transfers.push_back(parts_->watched(parts_->group->broadcast(tensors, options), tensors, sent));
    }
    windows.push_back(std::move(window));
    if (windows.size() > 1) finish_first();
  };
  Window window(ranks());
  std::size_t room = kWindow;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    for (std::size_t done = 0; done < piece.bytes;) {
      const std::size_t bytes = std::min(piece.bytes - done, room);
      window.add({piece.owner, static_cast<std::byte*>(piece.data) + done, bytes});
      done += bytes;
      room -= bytes;
      if (room > 0) continue;
      send(std::exchange(window, Window(ranks())), i + 1);
      room = kWindow;
    }
  }
  send(std::move(window), pieces.size());
  while (!windows.empty()) finish_first();
}

std::shared_ptr<World::Transfer> World::start(const at::Tensor& from, const std::vector<std::int64_t>& from_lengths,
                                              const at::Tensor& to, const std::vector<std::int64_t>& to_lengths) {
  std::vector<std::int64_t> out = to_lengths, in = from_lengths;  // Gloo empties them
  at::Tensor output = to, input = from;
  const std::int64_t sent = (from.numel() - from_lengths[static_cast<std::size_t>(rank())]) * std::int64_t{sizeof(float)};
  return parts_->watched(parts_->group->alltoall_base(output, input, out, in), {from, to}, sent);
}

void World::finish(Transfer& transfer) { parts_->wait(transfer); }

void World::agree(const std::string& what, const std::string& text) {
  if (!parts_) return;
  const std::string key = "agree/" + what;
  if (first()) parts_->board.set(key, text);
  const std::string theirs = parts_->board.get(key);
  if (theirs == text) {
    gather(char{0});  // returns when all do
    return;
  }
  std::string_view a = theirs, b = text;
  const auto line_of = [](std::string_view& rest) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
  };
  std::string_view one, other;
  do {
    one = line_of(a);
    other = line_of(b);
  } while (one == other);
  throw Error(Fault::usage, fmt::format("rank {} has another {} than rank 0: {}, rank 0 has {}", rank(), what,
                                        base::in_quotes(other), base::in_quotes(one)));
}

void World::in_turn(const std::string& what, const std::function<void()>& work) {
  const std::string key = "in turn/" + what + "/" + host_name();
  if (parts_ && !first_here()) parts_->board.get(key);
  work();
  if (parts_ && first_here()) parts_->board.set(key, "");
}

void World::at_step(std::int64_t step) {
  if (!parts_) return;
  parts_->step = step;
  parts_->board.working(step);
}

void World::fail(const std::string& why) {
  if (parts_) parts_->board.fail(why);
}

}  // namespace cautious::ranks
