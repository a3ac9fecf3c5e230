// Files that are either the old one or the complete new one, never a fragment: written aside in the same directory, synced,
// renamed. A process killed in between leaves the old file and a stray ".cautious-*.tmp" next to it, which the next one that
// writes there removes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace cautious::base {

// Until commit() returns, nothing at `path` has changed; without commit() nothing ever does. Every failure is an
// Error(Fault::failure) with the path and the system's reason, and removes what was written aside.
// A symbolic link is followed and stays; only regular files are replaced, so /dev/null or a directory is refused.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  [[noreturn]] void fail(std::string_view step, int error);
  void discard() noexcept;

  std::filesystem::path path_;    // as the caller wrote it, for messages
  std::filesystem::path target_;  // path_ with links resolved
  std::filesystem::path aside_;   // empty when there is nothing to remove
  int file_ = -1;
};

// Whether a file of this name is one that is being written aside, or was left by a killed process.
bool is_written_aside(std::string_view name);

void write_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace cautious::base
