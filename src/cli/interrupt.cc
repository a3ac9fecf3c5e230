#include "cli/interrupt.h"

#include <csignal>

namespace cautious::cli {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interruptible::Interruptible() {
  noted = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

Interruptible::~Interruptible() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void Interruptible::check() const {
  if (noted != 0) throw Interrupted{static_cast<int>(noted)};
}

}  // namespace cautious::cli
