// Where the ranks of a run meet before they can talk to each other, and hear of each other's end: a table of texts, kept by a
// thread of the first rank. It listens at the address that the user gave and nowhere else. Every rank says each second how far
// it is, so that one that has died, hangs or is cut off is noticed by the others, whatever they are waiting for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ranks/place.h"

namespace cautious::ranks {

class Board {
 public:
  // Meets the others; all of them must come within `timeout`. Whatever goes wrong is an Error: a port in use, an address of
  // another machine, ranks that do not come.
  Board(const Place& place, std::chrono::seconds timeout);
  // Leaves. Whoever is gone by then is not missed; the first rank waits for the others to leave.
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // Texts by name. get() waits for one that nobody has set yet, as long as all ranks are well.
  void set(const std::string& name, const std::string& text);
  std::string get(const std::string& name);

  // Of this rank's main thread: it has done something; it waits for others (and is not expected to do anything meanwhile).
  void working(std::int64_t step);
  void waiting();

  // Tells all others why this rank ends.
  void fail(const std::string& why);
  // Empty while all is well, then what happened first: "in step 12, rank 1 on node02 has died".
  std::string trouble() const;
  // Called once from another thread when trouble() begins.
  void on_trouble(std::function<void()> call);

  const std::string& own_address() const;  // of this machine, as the others reach it

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cautious::ranks
