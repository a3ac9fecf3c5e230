// Gzip files (RFC 1952), also dictzip's, whose index sits in the gzip header's extra field.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace cautious::base {

bool is_gzip(std::span<const std::byte> bytes);

// The content of all members, one after the other. Damaged or cut short: an Error(Fault::data) that names `file`; no memory for
// the content: an Error(Fault::failure).
std::string gunzip(std::span<const std::byte> bytes, const std::string& file);

}  // namespace cautious::base
