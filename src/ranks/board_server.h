// The board's keeper: a thread of the first rank. For this room only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ranks/wire.h"

namespace cautious::ranks {

class BoardServer {
 public:
  // Takes the listening socket.
  BoardServer(int listening, int ranks, std::chrono::seconds timeout);
  // Returns when every rank has left or is lost.
  ~BoardServer();
  BoardServer(const BoardServer&) = delete;
  BoardServer& operator=(const BoardServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    explicit Rank(Line connected) : line(std::move(connected)) {}
    Line line;
    bool greeted = false, left = false, gone = false;
    int number = -1;  // -1: has not said yet
    std::string host;
    Clock::time_point heard = Clock::now(), acted = heard;
    bool working = false;
    std::string acts;
    std::string name() const;
  };

  void serve(const std::stop_token& stop);
  void accept_one();
  void read(Rank& rank);
  void take(Rank& rank, const Frame& frame);
  void greet(Rank& rank, const Frame& frame);
  void look_around();
  void fail(const std::string& what);

  Line listening_;
  const int ranks_;
  const std::chrono::seconds timeout_;
  const Clock::time_point start_ = Clock::now();
  std::list<Rank> all_;
  int known_ = 0;  // ranks that have come
  std::map<std::string, std::string> texts_;
  std::string failure_;
  std::jthread thread_;
};

}  // namespace cautious::ranks
