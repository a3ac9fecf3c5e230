// The side of every rank: requests by its main thread, and a thread that says each second how far this rank is and listens to
// what became of the others.
#include "ranks/board.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <cautious/error.h>

#include "ranks/board_server.h"
#include "ranks/wire.h"

namespace cautious::ranks {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Line connect_in_time(const Place& place, std::chrono::seconds timeout) {
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    const int connected = connect_to(place.address, place.port);
    if (connected >= 0) return Line(connected);
    if (Clock::now() > end) {
      throw Error(Fault::failure, fmt::format("rank {} cannot reach rank 0 at {}, port {}, for {} s: {}", place.rank,
                                              place.address, place.port, timeout.count(), std::strerror(errno)));
    }
    std::this_thread::sleep_for(100ms);
  }
}

}  // namespace

struct Board::Parts {
  Parts(const Place& at, std::chrono::seconds limit)
      : place(at),
        timeout(limit),
        server(at.rank == 0 ? std::make_unique<BoardServer>(listen_at(at.address, at.port), at.ranks, limit) : nullptr),
        line(connect_in_time(at, limit)),
        address(own_address_of(line.socket())) {}

  const Place place;
  const std::chrono::seconds timeout;
  std::unique_ptr<BoardServer> server;  // of the first rank
  Line line;
  const std::string address;

  std::mutex sending;
  std::atomic<std::int64_t> acts = 0, step = 0;
  std::atomic<bool> at_work = false;

  mutable std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool greeted = false, seen_off = false, leaving = false;
  std::map<std::string, std::string> values;  // that have come
  std::string trouble;
  std::function<void()> on_trouble;

  std::jthread listener;

  bool send(const Frame& frame) {
    const std::lock_guard lock(sending);
    return line.send(frame);
  }

  void raise(const std::string& what) {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex);
      if (!trouble.empty() || leaving) return;
      trouble = step > 0 ? fmt::format("in step {}, {}", step.load(), what) : what;
      call = on_trouble;
    }
    changed.notify_all();
    if (call) call();
  }

  void take(const Frame& frame) {
    if (frame.kind == Kind::fail) return raise(frame.text);
    const std::lock_guard lock(mutex);
    if (frame.kind == Kind::value) values[frame.name] = frame.text;
    if (frame.kind == Kind::leave) seen_off = true;
    changed.notify_all();
  }

  // Whether the first rank is still there.
  bool listen() {
    const bool there = line.receive();
    if (!greeted) {
      const std::lock_guard lock(mutex);
      greeted = line.take(kGreeting);
    }
    while (greeted) {
      const std::optional<Frame> frame = line.next();
      if (!frame) break;
      take(*frame);
    }
    return there && !line.nonsense();
  }

  std::string first_rank() const { return fmt::format("rank 0 at {}", place.address); }

  void live(const std::stop_token& stop) {
    constexpr auto kPulse = 1s;
    Clock::time_point heard = Clock::now(), next = heard;
    while (!stop.stop_requested()) {
      if (Clock::now() >= next) {
        next = Clock::now() + kPulse;
        send({Kind::pulse, "", fmt::format("{} {}", at_work ? 1 : 0, acts.load())});
      }
      constexpr int kMilliseconds = 100;
      pollfd wanted{line.socket(), POLLIN, 0};
      if (poll(&wanted, 1, kMilliseconds) > 0) {
        heard = Clock::now();
        if (!listen()) {
          return raise(line.nonsense()
                           ? fmt::format("{}, port {}, is another program than rank 0 of this run", place.address, place.port)
                           : first_rank() + " has died");
        }
      }
      if (place.rank != 0 && Clock::now() - heard > timeout) {  // the first has the board itself
        return raise(fmt::format("{} has not been heard of for {} s", first_rank(), timeout.count()));
      }
    }
  }

  // Waits until `done`, asking `again` every now and then; an Error if there is trouble.
  template <class Done, class Again>
  void wait(std::unique_lock<std::mutex>& lock, const Done& done, const Again& again) {
    while (!done()) {
      if (!trouble.empty()) throw Error(Fault::failure, trouble);
      if (changed.wait_for(lock, 50ms) == std::cv_status::no_timeout) continue;
      lock.unlock();
      again();
      lock.lock();
    }
  }
};

Board::Board(const Place& place, std::chrono::seconds timeout) : parts_(std::make_unique<Parts>(place, timeout)) {
  Parts& p = *parts_;
  p.line.send(kGreeting);
  p.send({Kind::hello, std::to_string(place.rank), fmt::format("{} {}", place.ranks, host_name())});
  p.listener = std::jthread([&p](const std::stop_token& stop) { p.live(stop); });
  std::unique_lock lock(p.mutex);
  p.wait(
      lock, [&p] { return p.values.contains(kEveryone); }, [] {});
}

Board::~Board() {
  Parts& p = *parts_;
  p.send({Kind::leave});
  {
    std::unique_lock lock(p.mutex);
    p.leaving = true;
    p.changed.wait_for(lock, 2s, [&p] { return p.seen_off || !p.trouble.empty(); });
  }
  p.listener.request_stop();
  p.listener.join();
}

void Board::set(const std::string& name, const std::string& text) { parts_->send({Kind::set, name, text}); }

std::string Board::get(const std::string& name) {
  Parts& p = *parts_;
  const auto ask = [&] { p.send({Kind::get, name}); };
  ask();
  std::unique_lock lock(p.mutex);
  p.wait(
      lock, [&] { return p.values.contains(name); }, ask);
  return p.values[name];
}

void Board::working(std::int64_t step) {
  parts_->step = step;
  ++parts_->acts;
  parts_->at_work = true;
}
void Board::waiting() { parts_->at_work = false; }

void Board::fail(const std::string& why) {
  Parts& p = *parts_;
  p.send({Kind::fail, "", why});
  std::unique_lock lock(p.mutex);  // the process may end next, and with the first rank the board
  p.changed.wait_for(lock, 2s, [&p] { return p.seen_off || !p.trouble.empty(); });
}

std::string Board::trouble() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->trouble;
}

void Board::on_trouble(std::function<void()> call) {
  const std::lock_guard lock(parts_->mutex);
  parts_->on_trouble = std::move(call);
}

const std::string& Board::own_address() const { return parts_->address; }

}  // namespace cautious::ranks
