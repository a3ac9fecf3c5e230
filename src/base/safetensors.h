// The safetensors format: 8 bytes N (little-endian), N bytes of JSON, then the tensors' bytes without gaps.
//   {"__metadata__": {"key": "text", ...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
// A reader that trusts nothing in the file, and a writer. Values are not looked at or converted: bytes in, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace cautious::base {

// Bits per element of a type of the format ("F32" has 32); 0 if there is no such type.
std::size_t bits_of_type(std::string_view type);

struct TensorInfo {
  std::string name;
  std::string type;                 // "F64", "F32", "BF16", "I16", "BOOL", ...
  std::vector<std::int64_t> shape;  // row-major; empty for a scalar
  std::uint64_t begin = 0;          // of its bytes, counted from the first byte after the header
  std::uint64_t end = 0;

  std::int64_t elements() const;
  bool operator==(const TensorInfo&) const = default;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // by the position of their bytes
  Metadata metadata;
  std::uint64_t data = 0;  // where the tensors' bytes begin in the file
};

// A file, mapped: bytes are read when they are looked at, and the system may forget them again. Everything malformed is one
// line of Error(Fault::data), beginning with the file's name; so is a file that is not there.
class Safetensors {
 public:
  static Safetensors read(const std::filesystem::path& path);

  // The header alone. `start` is the beginning of a file of `size` bytes and reaches at least to the header's end; `file` is
  // for messages. What it returns has been checked completely: the tensors tile the rest of the file.
  static SafetensorsHeader parse(std::span<const std::byte> start, std::uint64_t size, const std::string& file);

  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  const TensorInfo* find(std::string_view name) const;     // nullptr if there is none
  const TensorInfo& require(std::string_view name) const;  // an Error naming what is there instead

  // Bytes of one of tensors(). They may lie at any address: copy them before they are numbers.
  std::span<const std::byte> data(const TensorInfo& tensor) const;

 private:
  std::string file_;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::unique_ptr<const MappedFile> mapped_;
};

struct TensorToWrite {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

// Length and JSON as they are in front of the tensors' bytes, padded with spaces so that those begin at a multiple of 8. Of a
// TensorInfo, the distance from begin to end counts. Names that occur twice, unknown types, and bytes that do not fit type and
// shape are Error(Fault::usage).
std::string safetensors_header_of(const std::vector<TensorInfo>& tensors, const Metadata& metadata);
std::string safetensors_header(const std::vector<TensorToWrite>& tensors, const Metadata& metadata);

// Tensors in the order given. The file appears complete or not at all (atomic_file.h).
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata);
// The same for weights that are not in memory: asks `fill` for the bytes of each tensor in turn.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorInfo>& tensors, const Metadata& metadata,
                       const std::function<void(std::size_t tensor, std::span<std::byte> bytes)>& fill);

}  // namespace cautious::base
