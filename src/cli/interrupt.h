// Ctrl-C and SIGTERM between steps: nothing half-done is left behind.
#pragma once

namespace cautious::cli {

struct Interrupted {
  int signal;  // the exit code is 128 + this
};

// While one exists, the signals are noted instead of ending the process; a second one ends it.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  int noted() const;   // the signal that has come, 0 if none
  void check() const;  // throws Interrupted if one has
};

}  // namespace cautious::cli
