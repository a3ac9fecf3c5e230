// A file that is read, not mapped: memory holds what is asked for, and one that another process cuts short is an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/gzip.h"

namespace cautious::base {

class InputFile {
 public:
  // A regular file; or standard input, of which only next() is asked. One that cannot be opened is an Error(Fault::data) with
  // the path and the system's reason, as is one that cannot be read.
  explicit InputFile(const std::filesystem::path& path);
  // `waiting` is called now and then while there is nothing to read, and may throw.
  static InputFile standard_input(std::function<void()> waiting);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // These bytes; fewer in the file are an Error(Fault::data).
  void read(std::uint64_t at, std::span<char> to) const;
  // Those that follow the ones before: as many as fit, fewer only at the end.
  std::size_t next(std::span<std::byte> to) const;

 private:
  InputFile() = default;
  void wait() const;

  std::string name_;
  int file_ = -1;
  std::uint64_t size_ = 0;
  std::function<void()> waiting_;
};

// Such a file's content, in order, decompressed if its first bytes are those of gzip or Zstandard.
class InputStream {
 public:
  enum class Format { plain, gzip, zstd };

  explicit InputStream(InputFile file);
  InputStream(const InputStream&) = delete;  // what decompresses refers to it
  InputStream& operator=(const InputStream&) = delete;

  Format format() const { return format_; }
  const std::string& name() const { return file_.name(); }
  std::size_t next(std::span<char> to);  // as InputFile

 private:
  std::size_t next_packed(std::span<std::byte> to);

  InputFile file_;
  std::string start_;  // bytes that were looked at
  Format format_ = Format::plain;
  std::unique_ptr<Unpacking> unpacking_;
};

}  // namespace cautious::base
