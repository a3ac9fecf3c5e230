// What every reader promises about any bytes: an Error is one short line about the file.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include <cautious/error.h>

namespace cautious {

inline void demand(bool holds) {
  if (!holds) std::abort();
}

// What the reader returns; nothing if it refuses.
template <class Read>
auto read_or_refuse(const Read& read, const std::string& file = "file") -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    demand(error.fault() == Fault::data && message.starts_with(file + ": "));
    demand(message.size() < 2000 && message.find('\n') == message.npos);
    return std::nullopt;
  }
}

}  // namespace cautious
