#include "ranks/board_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cautious::ranks {

std::string BoardServer::Rank::name() const { return fmt::format("rank {} on {}", number, host); }

BoardServer::BoardServer(int listening, int ranks, std::chrono::seconds timeout)
    : listening_(listening), ranks_(ranks), timeout_(timeout), thread_([this](const std::stop_token& stop) { serve(stop); }) {}

BoardServer::~BoardServer() = default;  // the thread ends by itself, at once if its own rank never came

// The first failure counts; what follows are its consequences.
void BoardServer::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what;
  const auto tell = [this](bool first) {
    for (const Rank& rank : all_) {
      if (!rank.gone && !rank.left && (first ? rank.number == 0 : rank.number > 0)) rank.line.send({Kind::fail, "", failure_});
    }
  };
  tell(false);
  tell(true);  // its process may end at once, and the board with it
}

void BoardServer::accept_one() {
  const int connected = accept4(listening_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
  if (connected >= 0) all_.emplace_back(Line(connected));
}

void BoardServer::greet(Rank& rank, const Frame& frame) {
  int number = -1, ranks = 0;
  std::istringstream(frame.name) >> number;
  std::istringstream text(frame.text);
  text >> ranks >> rank.host;
  const auto refuse = [&](const std::string& why) {
    rank.line.send({Kind::fail, "", why});
    rank.gone = true;
    fail(why);
  };
  if (ranks != ranks_) {
    return refuse(fmt::format("rank {} on {} was told of {} ranks, rank 0 of {}; WORLD_SIZE must be the same everywhere",
                              number, rank.host, ranks, ranks_));
  }
  const auto twin = std::ranges::find(all_, number, &Rank::number);
  if (twin != all_.end()) {
    return refuse(fmt::format("two processes say they are rank {}, on {} and on {}; every RANK must be another", number,
                              twin->host, rank.host));
  }
  if (number < 0 || number >= ranks_) return refuse(fmt::format("there is no rank {} of {} ranks", number, ranks_));
  rank.number = number;
  if (!failure_.empty()) rank.line.send({Kind::fail, "", failure_});  // it comes too late
  if (++known_ < ranks_) return;
  for (const Rank& other : all_) {
    if (other.number >= 0) other.line.send({Kind::value, kEveryone, ""});
  }
}

void BoardServer::take(Rank& rank, const Frame& frame) {
  rank.heard = Clock::now();
  switch (frame.kind) {
    case Kind::hello:
      if (rank.number < 0) greet(rank, frame);
      return;
    case Kind::set:
      texts_[frame.name] = frame.text;
      return;
    case Kind::get: {
      const auto found = texts_.find(frame.name);
      if (found != texts_.end()) rank.line.send({Kind::value, frame.name, found->second});
      return;  // who gets no answer asks again
    }
    case Kind::pulse: {
      std::string acts;
      std::istringstream(frame.text) >> rank.working >> acts;
      if (acts != rank.acts || !rank.working) rank.acted = rank.heard;
      rank.acts = acts;
      rank.line.send({Kind::pulse});
      return;
    }
    case Kind::fail:
      rank.left = true;
      fail(fmt::format("{} stopped: {}", rank.name(), frame.text));
      rank.line.send({Kind::leave});
      return;
    case Kind::leave:
      rank.left = true;
      rank.line.send({Kind::leave});
      return;
    case Kind::value:
      return;
  }
  rank.gone = true;  // it speaks something else
}

void BoardServer::read(Rank& rank) {
  const bool there = rank.line.receive();
  if (!rank.greeted) rank.greeted = rank.line.take(kGreeting) && rank.line.send(kGreeting);
  if (rank.greeted) {
    while (!rank.gone) {
      const std::optional<Frame> frame = rank.line.next();
      if (!frame) break;
      take(rank, *frame);
    }
  }
  if (there && !rank.line.nonsense()) return;
  if (rank.number >= 0 && !rank.left && !rank.gone) {
    rank.gone = true;
    fail(rank.name() + " has died");
  }
  rank.gone = true;
}

void BoardServer::look_around() {
  const Clock::time_point now = Clock::now();
  if (known_ < ranks_ && now - start_ > timeout_) {
    std::vector<std::string> missing;
    for (int number = 0; number < ranks_; ++number) {
      if (std::ranges::find(all_, number, &Rank::number) == all_.end()) missing.push_back(std::to_string(number));
    }
    fail(fmt::format("of {} ranks, rank {} did not come within {} s", ranks_, fmt::join(missing, ", "), timeout_.count()));
  }
  for (Rank& rank : all_) {
    if (rank.number < 0 || rank.left || rank.gone) continue;
    if (now - rank.heard > timeout_) {
      rank.gone = true;
      fail(fmt::format("{} has not been heard of for {} s", rank.name(), timeout_.count()));
    } else if (rank.heard - rank.acted > timeout_) {
      rank.gone = true;
      fail(fmt::format("{} has done nothing for {} s; a longer train.timeout allows it", rank.name(), timeout_.count()));
    }
  }
}

void BoardServer::serve(const std::stop_token& stop) {
  // After a failure it stays for its own process alone: the others have been told.
  const auto ended = [&] {
    const auto waits = [this](const Rank& rank) {
      return rank.number >= 0 && !rank.left && !rank.gone && (failure_.empty() || rank.number == 0);
    };
    const bool first_came = std::ranges::find(all_, 0, &Rank::number) != all_.end();
    if (!first_came && stop.stop_requested()) return true;
    return (known_ == ranks_ || (!failure_.empty() && first_came)) && std::ranges::none_of(all_, waits);
  };
  while (!ended()) {
    std::vector<pollfd> wanted{{listening_.socket(), POLLIN, 0}};
    std::vector<Rank*> readers;
    for (Rank& rank : all_) {
      if (rank.gone) continue;
      wanted.push_back({rank.line.socket(), POLLIN, 0});
      readers.push_back(&rank);
    }
    constexpr int kMilliseconds = 200;
    poll(wanted.data(), wanted.size(), kMilliseconds);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (wanted[i + 1].revents != 0) read(*readers[i]);
    }
    if (wanted[0].revents != 0) accept_one();
    look_around();
  }
}

}  // namespace cautious::ranks
