// What a verb prints for others to read: all of it, at once, or an Error.
#pragma once

#include <cstdio>
#include <string_view>

#include <cautious/error.h>

namespace cautious::cli {

inline bool try_print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

inline void print(std::string_view text) {
  if (!try_print(text)) throw Error(Fault::failure, "cannot write to standard output");
}

}  // namespace cautious::cli
