// The one exception of the library: what is wrong, the value, the valid choices.
#pragma once

#include <stdexcept>
#include <string>

namespace cautious {

// Who has to act: the caller's words (usage), a file or buffer's content (data), or the machine (failure).
enum class Fault { usage, data, failure };

class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  Fault fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

}  // namespace cautious
