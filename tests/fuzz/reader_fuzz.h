// What every reader promises about any bytes: an Error is one short line about the file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <cautious/error.h>

namespace cautious {

inline void demand(bool holds) {
  if (!holds) std::abort();
}

// What the reader returns; nothing if it refuses with a message that begins like this.
template <class Read>
auto read_or_refuse(const Read& read, const std::string& beginning, Fault fault) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    demand(error.fault() == fault && message.starts_with(beginning));
    demand(message.size() < 2000 && message.find('\n') == message.npos);
    return std::nullopt;
  }
}

template <class Read>
auto read_or_refuse(const Read& read, const std::string& file = "file") {
  return read_or_refuse(read, file + ": ", Fault::data);
}

inline void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// A file in memory, for readers that take a path and do not look at its name.
inline const std::string& memory_file() {
  static const std::string path = "/proc/self/fd/" + std::to_string(::memfd_create("file", 0));
  return path;
}

// A folder in memory, for readers that do. It goes when the process ends.
inline const std::filesystem::path& memory_folder() {
  struct Folder {
    std::filesystem::path path = "/dev/shm/cautious_fuzz_" + std::to_string(::getpid());
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace cautious
