// Numbers in the file are little-endian and unaligned; texts and arrays have their length in front. A count is held against the
// bytes that are left before memory is taken for it.
#include "base/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <type_traits>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"

namespace cautious::base {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::uint32_t kGgufVersion = 3;
constexpr std::uint32_t kGgufAlignment = 32;  // unless the metadata says another
constexpr std::uint32_t kMostSides = 4;
constexpr int kDeepestArray = 8;
constexpr const char* kAlignmentKey = "general.alignment";

constexpr std::array kGgmlTypes = std::to_array<GgmlType>(
    {{0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
     {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
     {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
     {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
     {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
     {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
     {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
     {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17}});

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

// The bytes of a tensor; what is wrong with its sides if there is no such number. A zero does not excuse an overflow beside it:
// whoever multiplies the sides up must be safe in any order.
std::variant<std::uint64_t, std::string> bytes_of(const GgmlType& type, const std::vector<std::int64_t>& sides) {
  const auto inner = sides.empty() ? 1 : static_cast<std::uint64_t>(sides.back());
  if (inner % type.block != 0)
    return fmt::format("its rows have {} numbers; {} takes blocks of {}", inner, type.name, type.block);
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::uint64_t total = 8;  // of the largest numbers
  for (const std::int64_t side : sides) {
    const auto size = std::max<std::uint64_t>(static_cast<std::uint64_t>(side), 1);
    if (total > most / size) return std::string("its size overflows");
    total *= size;
  }
  const bool empty = std::find(sides.begin(), sides.end(), 0) != sides.end();
  return empty ? 0 : total / 8 / type.block * type.bytes;
}

template <class Value>
constexpr std::uint64_t kLeastBytes = sizeof(Value);
template <>
constexpr std::uint64_t kLeastBytes<std::string> = 8;
template <>
constexpr std::uint64_t kLeastBytes<GgufArray> = 12;

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::uint64_t position() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(const std::string& what) const { refuse_content(file_, what); }

  template <class Value>
  Value read(int depth = 0) {
    if constexpr (std::is_same_v<Value, std::string>) {
      const auto size = read<std::uint64_t>();
      const auto bytes = take(size, "a text");
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else if constexpr (std::is_same_v<Value, GgufArray>) {
      return read_array(depth + 1);
    } else if constexpr (std::is_same_v<Value, bool>) {
      const auto value = read<std::uint8_t>();
      if (value > 1) refuse(fmt::format("at byte {}: a truth value is {}; valid: 0, 1", at_ - 1, value));
      return value == 1;
    } else {
      Value value;
      std::memcpy(&value, take(sizeof value, "a number").data(), sizeof value);
      return value;
    }
  }

  GgufValue read_value() {
    GgufValue value;
    read_alternative(read<std::uint32_t>(), value, [&]<class Value>(Value&) { return read<Value>(); });
    return value;
  }

 private:
  std::span<const std::byte> take(std::uint64_t size, const char* what) {
    if (size > left())
      refuse(fmt::format("at byte {}: {} of {} bytes, but only {} follow; truncated?", at_, what, size, left()));
    const auto bytes = bytes_.subspan(at_, size);
    at_ += size;
    return bytes;
  }

  // Makes `choice` what read() returns for its alternative of that number.
  template <class Choice, class Read>
  void read_alternative(std::uint32_t number, Choice& choice, const Read& read) {
    const auto fits = [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto one = [&]<std::size_t Index>() {
        std::variant_alternative_t<Index, Choice> value{};
        if (number == Index) choice.template emplace<Index>(read(value));
        return number == Index;
      };
      return (one.template operator()<I>() || ...);
    };
    if (!fits(std::make_index_sequence<std::variant_size_v<Choice>>()))
      refuse(fmt::format("at byte {}: a value has the type {}; valid: 0 to 12", at_ - 4, number));
  }

  GgufArray read_array(int depth) {
    if (depth > kDeepestArray) refuse(fmt::format("at byte {}: arrays are nested deeper than {}", at_, kDeepestArray));
    const auto type = read<std::uint32_t>();
    const auto count = read<std::uint64_t>();
    GgufArray array;
    read_alternative(type, array.items, [&]<class Item>(std::vector<Item>&) {
      if (count > left() / kLeastBytes<Item>)
        refuse(fmt::format("at byte {}: an array of {} values, but only {} bytes follow; truncated?", at_, count, left()));
      std::vector<Item> items;
      items.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) items.push_back(read<Item>(depth));
      return items;
    });
    return array;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  const std::string& file_;
};

void read_start(GgufCursor& cursor) {
  std::array<char, 4> magic{};
  if (cursor.left() >= magic.size()) magic = std::bit_cast<std::array<char, 4>>(cursor.read<std::uint32_t>());
  if (std::string_view(magic.data(), magic.size()) != kGgufMagic) cursor.refuse("not a GGUF file: it does not begin with GGUF");
  const auto version = cursor.read<std::uint32_t>();
  if (version != 2 && version != kGgufVersion)
    cursor.refuse(fmt::format("GGUF version {}; valid: 2, {} (little-endian)", version, kGgufVersion));
}

GgufMetadata read_metadata(GgufCursor& cursor, std::uint64_t count) {
  GgufMetadata metadata;
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = cursor.read<std::string>();
    if (key.empty()) cursor.refuse("a key of the metadata is empty");
    if (!keys.insert(key).second) cursor.refuse(fmt::format("the key {} occurs twice", in_quotes(key)));
    GgufValue value = cursor.read_value();
    metadata.emplace_back(std::move(key), std::move(value));
  }
  return metadata;
}

GgufTensor read_tensor(GgufCursor& cursor) {
  GgufTensor tensor{cursor.read<std::string>(), nullptr, {}};
  const auto refuse = [&](const std::string& what) {
    cursor.refuse(fmt::format("tensor {}: {}", in_quotes(tensor.name), what));
  };
  const auto count = cursor.read<std::uint32_t>();
  if (count > kMostSides) refuse(fmt::format("it has {} sides; at most {}", count, kMostSides));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto side = cursor.read<std::uint64_t>();
    constexpr std::uint64_t most = std::uint64_t{1} << 48;
    if (side > most) refuse(fmt::format("a side is {}; at most {}", side, most));
    tensor.sides.insert(tensor.sides.begin(), static_cast<std::int64_t>(side));
  }
  const auto number = cursor.read<std::uint32_t>();
  const auto type = std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(), [&](const auto& one) { return one.number == number; });
  if (type == kGgmlTypes.end()) refuse(fmt::format("unknown type {}", number));
  tensor.type = &*type;
  tensor.begin = cursor.read<std::uint64_t>();
  const auto bytes = bytes_of(*type, tensor.sides);
  if (const auto* const wrong = std::get_if<std::string>(&bytes)) refuse(*wrong);
  if (tensor.begin > cursor.left() || std::get<std::uint64_t>(bytes) > cursor.left() - tensor.begin)
    refuse(fmt::format("its {} bytes at {} reach beyond the end of the file; truncated?", std::get<std::uint64_t>(bytes),
                       tensor.begin));
  tensor.end = tensor.begin + std::get<std::uint64_t>(bytes);
  return tensor;
}

std::uint64_t alignment_of(const GgufHeader& header, const GgufCursor& cursor) {
  const GgufValue* const found = header.find(kAlignmentKey);
  if (found == nullptr) return kGgufAlignment;
  const auto* const alignment = std::get_if<std::uint32_t>(found);
  if (alignment == nullptr || !std::has_single_bit(*alignment) || *alignment > 65536)
    cursor.refuse(fmt::format("'{}' is not a power of two, from 1 to 65536, as u32", kAlignmentKey));
  return *alignment;
}

void check_order(const GgufHeader& header, std::uint64_t alignment, std::uint64_t size, const GgufCursor& cursor) {
  std::set<std::string_view> names;
  std::uint64_t expected = 0;
  for (const GgufTensor& tensor : header.tensors) {
    const auto refuse = [&](const std::string& what) {
      cursor.refuse(fmt::format("tensor {}: {}", in_quotes(tensor.name), what));
    };
    if (!names.insert(tensor.name).second) refuse("it occurs twice");
    if (tensor.begin != expected) refuse(fmt::format("it begins at {}; expected {}", tensor.begin, expected));
    if (header.data > size || tensor.end > size - header.data) refuse("it reaches beyond the end of the file; truncated?");
    expected = padded(tensor.end, alignment);
  }
  const std::uint64_t end = header.data + expected;
  if (size > end) cursor.refuse(fmt::format("{} bytes follow the last tensor", size - end));
}

void append(std::string& out, const auto& value) {
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (std::is_same_v<Value, std::string>) {
    append(out, static_cast<std::uint64_t>(value.size()));
    out += value;
  } else if constexpr (std::is_same_v<Value, GgufArray>) {
    append(out, static_cast<std::uint32_t>(value.items.index()));
    std::visit(
        [&](const auto& items) {
          append(out, static_cast<std::uint64_t>(items.size()));
          for (const auto& item : items) append(out, typename std::remove_cvref_t<decltype(items)>::value_type(item));
        },
        value.items);
  } else {
    const auto bytes = std::bit_cast<std::array<char, sizeof value>>(value);
    out.append(bytes.data(), bytes.size());
  }
}

// All that is in front of the tensors' bytes; sets their begin and end.
std::string header_text(const GgufMetadata& metadata, std::vector<GgufTensor>& tensors) {
  std::string out(kGgufMagic);
  append(out, kGgufVersion);
  append(out, static_cast<std::uint64_t>(tensors.size()));
  append(out, static_cast<std::uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    append(out, key);
    append(out, static_cast<std::uint32_t>(value.index()));
    std::visit([&](const auto& one) { append(out, one); }, value);
  }
  std::uint64_t begin = 0;
  for (GgufTensor& tensor : tensors) {
    const auto bytes = bytes_of(*tensor.type, tensor.sides);
    if (const auto* const wrong = std::get_if<std::string>(&bytes))
      throw Error(Fault::usage, fmt::format("cannot write tensor {}: {}", in_quotes(tensor.name), *wrong));
    tensor.begin = begin;
    tensor.end = begin + std::get<std::uint64_t>(bytes);
    begin = padded(tensor.end, kGgufAlignment);
    append(out, tensor.name);
    append(out, static_cast<std::uint32_t>(tensor.sides.size()));
    for (auto side = tensor.sides.rbegin(); side != tensor.sides.rend(); ++side) append(out, static_cast<std::uint64_t>(*side));
    append(out, tensor.type->number);
    append(out, tensor.begin);
  }
  out.resize(padded(out.size(), kGgufAlignment), '\0');
  return out;
}

}  // namespace

const GgmlType& ggml_type(std::string_view name) {
  std::vector<std::string_view> names;
  for (const GgmlType& type : kGgmlTypes) names.push_back(type.name);
  return kGgmlTypes[index_of_name("type", name, names)];
}

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto found = std::find_if(metadata.begin(), metadata.end(), [&](const auto& one) { return one.first == key; });
  return found == metadata.end() ? nullptr : &found->second;
}

GgufHeader parse_gguf(std::span<const std::byte> bytes, const std::string& file) {
  GgufCursor cursor(bytes, file);
  read_start(cursor);
  const auto tensors = cursor.read<std::uint64_t>(), keys = cursor.read<std::uint64_t>();
  GgufHeader header;
  header.metadata = read_metadata(cursor, keys);
  for (std::uint64_t i = 0; i < tensors; ++i) header.tensors.push_back(read_tensor(cursor));
  const std::uint64_t alignment = alignment_of(header, cursor);
  header.data = padded(cursor.position(), alignment);
  check_order(header, alignment, bytes.size(), cursor);
  return header;
}

void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors,
                const std::function<void(std::size_t, std::span<std::byte>)>& fill) {
  std::vector<GgufTensor> placed = tensors;
  AtomicFile file(path);
  file.write(header_text(metadata, placed));
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const std::uint64_t size = placed[i].end - placed[i].begin;
    bytes.assign(padded(size, kGgufAlignment), std::byte{0});
    fill(i, std::span(bytes).first(size));
    file.write(bytes);
  }
  file.commit();
}

}  // namespace cautious::base
