// Gzip files (RFC 1952), also dictzip's, whose index sits in the gzip header's extra field; and Zstandard's (RFC 8878).
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace cautious::base {

bool is_gzip(std::span<const std::byte> bytes);
bool is_zstd(std::span<const std::byte> bytes);

// The most that a byte can become: what claims more is refused before anything is decompressed.
inline constexpr std::size_t kMostInflation = 1032;

// Fills `to` with the bytes that follow: as many as fit, fewer only at their end.
using ReadOn = std::function<std::size_t(std::span<std::byte> to)>;

// Compressed bytes as they come, decompressed as they are asked for, in memory that does not depend on either size. All members
// or frames, one after the other. Damaged or cut short: an Error(Fault::data) that names `file`.
class Unpacking {
 public:
  static std::unique_ptr<Unpacking> gzip(ReadOn packed, std::string file);
  static std::unique_ptr<Unpacking> zstd(ReadOn packed, std::string file);

  virtual ~Unpacking() = default;
  virtual std::size_t read(std::span<std::byte> to) = 0;  // as ReadOn
};

// The content, or its first `most` bytes where there are more; what follows these is not looked at. Damaged or cut short: an
// Error(Fault::data) that names `file`; no memory for the content: an Error(Fault::failure).
std::string gunzip(std::span<const std::byte> bytes, const std::string& file,
                   std::size_t most = std::numeric_limits<std::size_t>::max());
std::string unzstd(std::span<const std::byte> bytes, const std::string& file, std::size_t most);

}  // namespace cautious::base
