// Gzip files (RFC 1952), also dictzip's, whose index sits in the gzip header's extra field.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace cautious::base {

bool is_gzip(std::span<const std::byte> bytes);

// The most that a byte can become: what claims more is refused before anything is decompressed.
inline constexpr std::size_t kMostInflation = 1032;

// The content of all members, one after the other, or its first `most` bytes where there are more; what follows these is not
// looked at. Damaged or cut short: an Error(Fault::data) that names `file`; no memory for the content: an
// Error(Fault::failure).
std::string gunzip(std::span<const std::byte> bytes, const std::string& file,
                   std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace cautious::base
