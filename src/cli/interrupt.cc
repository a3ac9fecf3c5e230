#include "cli/interrupt.h"

#include <csignal>

namespace cautious::cli {
namespace {

volatile std::sig_atomic_t last_signal = 0;

extern "C" void note(int signal) {
  last_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interruptible::Interruptible() {
  last_signal = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

Interruptible::~Interruptible() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int Interruptible::noted() const { return static_cast<int>(last_signal); }

void Interruptible::check() const {
  if (noted() != 0) throw Interrupted{noted()};
}

}  // namespace cautious::cli
