// Reading a header: length, JSON events, then the checks that make the offsets safe to use. Writing: the same checks on the
// caller's side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include <cautious/error.h>
#include "base/safetensors.h"
#include "base/text.h"

namespace cautious::base {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr std::uint64_t kLengthBytes = 8;

struct Type {
  std::string_view name;
  std::size_t bits;
};
constexpr std::array kTypes =
    std::to_array<Type>({{"BOOL", 8},        {"U8", 8},      {"I8", 8},      {"U16", 16},    {"I16", 16},    {"U32", 32},
                         {"I32", 32},        {"U64", 64},    {"I64", 64},    {"F16", 16},    {"BF16", 16},   {"F32", 32},
                         {"F64", 64},        {"C64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
                         {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}});

std::string shown_shape(const std::vector<std::int64_t>& shape) {
  const auto some = std::span(shape).first(std::min<std::size_t>(shape.size(), 16));
  return fmt::format("[{}{}]", fmt::join(some, ", "),
                     some.size() < shape.size() ? fmt::format(", ... {} in all", shape.size()) : "");
}

// What is wrong with type and shape for that many bytes; nothing if they fit. A zero does not excuse an overflow beside it:
// whoever multiplies the shape up must be safe in any order.
std::optional<std::string> misfit(std::string_view type, const std::vector<std::int64_t>& shape, std::uint64_t bytes) {
  const std::size_t bits = bits_of_type(type);
  if (bits == 0) {
    std::string names;
    for (const Type& known : kTypes) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    return fmt::format("unknown dtype {}; dtypes: {}", in_quotes(type), names);
  }
  auto total = static_cast<std::int64_t>(bits);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return fmt::format("shape {} has the negative size {}", shown_shape(shape), size);
    empty |= size == 0;
    if (size != 0 && total > std::numeric_limits<std::int64_t>::max() / size)
      return fmt::format("shape {} of {} overflows", shown_shape(shape), type);
    if (size != 0) total *= size;
  }
  if (empty) total = 0;
  if (total % 8 != 0) return fmt::format("shape {} of {} has {} bits, not whole bytes", shown_shape(shape), type, total);
  const auto expected = static_cast<std::uint64_t>(total) / 8;
  if (bytes != expected) return fmt::format("shape {} of {} takes {} bytes, not {}", shown_shape(shape), type, expected, bytes);
  return std::nullopt;
}

[[noreturn]] void refuse_header(const std::string& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", file, what));
}

// The header's JSON as a stream of events. Unlike a document, a stream shows keys that occur twice, stops at the first value
// that does not belong where it is, and needs no memory or stack for nesting. What the values mean is checked afterwards.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { misplaced("null"); }
  bool boolean(bool value) override { misplaced(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { misplaced(value == 0 ? "-0" : std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { misplaced(in_quotes(text)); }
  bool binary(binary_t&) override { misplaced("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    const bool small = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (at_ == At::shape && small) {
      tensor_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (at_ == At::offsets && small && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
    } else {
      misplaced(std::to_string(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (at_ == At::metadata) {
      header_.metadata[key_] = value;
    } else if (at_ == At::tensor && field_ == kType) {
      tensor_.type = value;
    } else {
      misplaced("the string " + in_quotes(value));
    }
    return true;
  }

  bool key(string_t& name) override {
    if (at_ == At::tensor) {
      field_ = static_cast<std::size_t>(std::find(kFields.begin(), kFields.end(), name) - kFields.begin());
      if (field_ == kFields.size())
        refuse(fmt::format("tensor {} has the unknown key {}; keys: {}", in_quotes(tensor_.name), in_quotes(name),
                           fmt::join(kFields, ", ")));
      if (std::exchange(seen_[field_], true)) refuse(fmt::format("tensor {} has '{}' twice", in_quotes(tensor_.name), name));
    } else {
      const bool fresh = at_ == At::metadata ? !header_.metadata.contains(name) : names_.insert(name).second;
      if (!fresh) refuse(fmt::format("{} {} occurs twice", at_ == At::metadata ? "metadata key" : "tensor", in_quotes(name)));
      key_ = name;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (at_ == At::outside) {
      at_ = At::header;
    } else if (at_ == At::header && key_ == "__metadata__") {
      at_ = At::metadata;
    } else if (at_ == At::header) {
      at_ = At::tensor;
      tensor_ = {};
      tensor_.name = key_;
      seen_ = {};
      offsets_ = 0;
    } else {
      misplaced("an object");
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::tensor) {
      const auto missing = std::find(seen_.begin(), seen_.end(), false) - seen_.begin();
      if (missing < 3)
        refuse(fmt::format("tensor {} has no '{}'", in_quotes(tensor_.name), kFields[static_cast<std::size_t>(missing)]));
      header_.tensors.push_back(std::move(tensor_));
    }
    at_ = at_ == At::header ? At::outside : At::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (at_ != At::tensor || field_ == kType) misplaced("an array");
    at_ = field_ == kShape ? At::shape : At::offsets;
    return true;
  }

  bool end_array() override {
    if (at_ == At::offsets && offsets_ != 2)
      refuse(fmt::format("tensor {}: data_offsets has {} numbers; expected 2", in_quotes(tensor_.name), offsets_));
    at_ = At::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: <reason>; last read: '<any bytes>'", or
    // "[json.exception.out_of_range.406] <reason>".
    std::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    for (const std::string_view mark : {"] ", ": "})
      if (const auto at = what.find(mark); at != what.npos) what.remove_prefix(at + 2);
    refuse(fmt::format("the header is not JSON: at byte {}: {}", position, what.substr(0, 200)));
  }

 private:
  enum class At { outside, header, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
  static constexpr std::size_t kType = 0, kShape = 1;

  [[noreturn]] void refuse(const std::string& what) const { throw Error(Fault::data, file_ + ": " + what); }

  [[noreturn]] void misplaced(const std::string& value) const {
    const std::string name = in_quotes(at_ == At::header || at_ == At::metadata ? key_ : tensor_.name);
    switch (at_) {
      case At::outside:
        refuse(fmt::format("the header is {}; expected an object", value));
      case At::header:
        refuse(fmt::format("{} is {}; expected an object", key_ == "__metadata__" ? key_ : "tensor " + name, value));
      case At::metadata:
        refuse(fmt::format("metadata {} is {}; expected a string", name, value));
      case At::tensor:
        refuse(fmt::format("tensor {}: {} is {}; expected {}", name, kFields[field_], value,
                           field_ == kType ? "a string" : "an array of integers"));
      case At::shape:
        refuse(fmt::format("tensor {}: shape has {}; expected integers from 0 to 2^63-1", name, value));
      case At::offsets:
        refuse(fmt::format("tensor {}: data_offsets has {}; expected 2 integers from 0 to 2^63-1", name, value));
    }
    refuse("the header is malformed");
  }

  const std::string& file_;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  At at_ = At::outside;
  std::string key_;                // of the header or the metadata, the last one read
  TensorInfo tensor_;              // the one being read, with
  std::size_t field_ = 0;          // the last key of its three,
  std::array<bool, 3> seen_ = {};  // those it has had
  int offsets_ = 0;                // and how many numbers data_offsets has had
};

// Sorts the tensors by their bytes and proves that they tile [0, size).
void check_tiling(std::vector<TensorInfo>& tensors, std::uint64_t size, const std::string& file) {
  for (const TensorInfo& t : tensors) {
    const auto offsets = [&] { return fmt::format("tensor {}: data_offsets [{}, {}]", in_quotes(t.name), t.begin, t.end); };
    if (t.begin > t.end) refuse_header(file, offsets() + " end before they begin");
    if (t.end > size) refuse_header(file, fmt::format("{} reach beyond the {} bytes of data; truncated?", offsets(), size));
    if (const auto what = misfit(t.type, t.shape, t.end - t.begin))
      refuse_header(file, fmt::format("tensor {}: {}", in_quotes(t.name), *what));
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t reached = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != reached)
      refuse_header(file, fmt::format("tensor {} begins at {} {} the bytes before it, which end at {}", in_quotes(t.name),
                                      t.begin, t.begin < reached ? "and overlaps" : "and leaves a hole after", reached));
    reached = t.end;
  }
  if (reached != size) refuse_header(file, fmt::format("{} bytes follow the last tensor", size - reached));
}

// The length of the JSON, which the first bytes of a file of `size` bytes say; `start` has these bytes, or all of a shorter
// file.
std::uint64_t header_length(std::span<const std::byte> start, std::uint64_t size, const std::string& file) {
  if (size < kLengthBytes)
    refuse_header(file, fmt::format("{} bytes are too short for a safetensors file; its length alone takes 8", size));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(start[i]) << (8 * i);
  if (length > kMostHeader) refuse_header(file, "not a safetensors file");
  if (length > size - kLengthBytes)
    refuse_header(file,
                  fmt::format("the header's length is {}, but only {} bytes follow; truncated?", length, size - kLengthBytes));
  return length;
}

[[noreturn]] void refuse_call(const std::string& what) { throw Error(Fault::usage, "cannot write as safetensors: " + what); }

void check_header_size(std::size_t bytes) {
  if (bytes > kMostHeader) refuse_call(fmt::format("the header takes {} bytes; at most {}", bytes, kMostHeader));
}

std::string json_of(const std::string& text) try {
  check_header_size(text.size());  // before it is copied several times
  return nlohmann::json(text).dump();
} catch (const nlohmann::json::type_error&) {
  std::string bytes;
  for (const char c : text.substr(0, 40)) bytes += fmt::format("{:02x}", static_cast<unsigned char>(c));
  refuse_call(fmt::format("a name or metadata text is not UTF-8; its bytes in hexadecimal: {}", bytes));
}

}  // namespace

std::size_t bits_of_type(std::string_view type) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& known) { return known.name == type; });
  return found == kTypes.end() ? 0 : found->bits;
}

std::int64_t TensorInfo::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

SafetensorsHeader Safetensors::parse(std::span<const std::byte> start, std::uint64_t size, const std::string& file) {
  const std::uint64_t length = header_length(start, size, file);
  const std::string_view json(reinterpret_cast<const char*>(start.data()) + kLengthBytes, length);
  if (!json.starts_with('{'))
    refuse_header(file, fmt::format("the header begins with {}, not with '{{'", in_quotes(json.substr(0, 1))));
  // To the JSON parser a NUL is the end of the text, whatever follows.
  if (const auto nul = json.find('\0'); nul != json.npos)
    refuse_header(file, fmt::format("the header has a NUL at byte {}", nul));
  HeaderEvents events(file);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  SafetensorsHeader header = events.take();
  header.data = kLengthBytes + length;
  check_tiling(header.tensors, size - header.data, file);
  return header;
}

std::string safetensors_header_of(const std::vector<TensorInfo>& tensors, const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += R"("__metadata__":{)";
    for (const auto& [key, value] : metadata) json += fmt::format("{}:{},", json_of(key), json_of(value));
    json.back() = '}';
    json += ',';
  }
  std::set<std::string_view> names = {"__metadata__"};
  std::uint64_t begin = 0;
  for (const TensorInfo& t : tensors) {
    const std::uint64_t bytes = t.end - t.begin, end = begin + bytes;
    if (!names.insert(t.name).second)
      refuse_call(
          fmt::format("tensor {} {}", in_quotes(t.name), t.name == "__metadata__" ? "has a reserved name" : "occurs twice"));
    if (const auto what = misfit(t.type, t.shape, bytes)) refuse_call(fmt::format("tensor {}: {}", in_quotes(t.name), *what));
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", json_of(t.name), t.type,
                        fmt::join(t.shape, ","), begin, end);
    begin = end;
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  check_header_size(json.size());
  std::string length;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return length + json;
}

std::string safetensors_header(const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const TensorToWrite& t : tensors) infos.push_back({t.name, t.type, t.shape, 0, t.data.size()});
  return safetensors_header_of(infos, metadata);
}

}  // namespace cautious::base
