// GGUF, the file format of llama.cpp, versions 2 and 3: typed metadata, a list of tensors, then their bytes, each at a multiple
// of the alignment. A reader that trusts nothing in the file, and a writer that holds one tensor at a time. Values are not
// looked at or converted: bytes in, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cautious::base {

// In both lists the position of a type is its number in the file.
struct GgufArray {
  std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>, std::vector<std::int16_t>,
               std::vector<std::uint32_t>, std::vector<std::int32_t>, std::vector<float>, std::vector<bool>,
               std::vector<std::string>, std::vector<GgufArray>, std::vector<std::uint64_t>, std::vector<std::int64_t>,
               std::vector<double>>
      items;
};
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, bool,
                               std::string, GgufArray, std::uint64_t, std::int64_t, double>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

// How a tensor's numbers are stored: `block` of them, along the innermost side, take `bytes` bytes.
struct GgmlType {
  std::uint32_t number;
  std::string_view name;  // "F32", "Q8_0"
  std::uint64_t block, bytes;
};
const GgmlType& ggml_type(std::string_view name);  // one of the format's

struct GgufTensor {
  std::string name;
  const GgmlType* type;
  std::vector<std::int64_t> sides;   // row-major, the innermost last (the file has them the other way round)
  std::uint64_t begin = 0, end = 0;  // of its bytes, counted from GgufHeader::data
};

struct GgufHeader {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::uint64_t data = 0;  // where the tensors' bytes begin in the file

  const GgufValue* find(std::string_view key) const;  // nullptr if there is none
};

// The header of a file, all of whose bytes are given. Everything malformed is one line of Error(Fault::data) that begins with
// `file`; what is returned has been checked completely: keys and names occur once, tensors lie behind each other in the file.
GgufHeader parse_gguf(std::span<const std::byte> bytes, const std::string& file);

// Asks `fill` for the bytes of each tensor in turn; begin and end are of no account. The file appears complete or not at all
// (atomic_file.h). Sides that do not divide into the type's blocks are an Error(Fault::usage).
void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors,
                const std::function<void(std::size_t tensor, std::span<std::byte> bytes)>& fill);

}  // namespace cautious::base
