// Reading: length, JSON events, then the checks that make the offsets safe to use. Writing: the same checks on the caller's
// side.
#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/safetensors_events.h"
#include "base/shown.h"

namespace cautious::base {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit

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
    return fmt::format("unknown dtype {}; dtypes: {}", shown(type), names);
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

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", file, what));
}

std::uint64_t header_length(std::span<const std::byte> start, std::uint64_t size, const std::string& file) {
  if (size < kLengthBytes)
    refuse(file, fmt::format("{} bytes are too short for a safetensors file; its length alone takes 8", size));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(start[i]) << (8 * i);
  if (length > kMostHeader) refuse(file, fmt::format("the header's length is {}; at most {} is allowed", length, kMostHeader));
  if (length > size - kLengthBytes)
    refuse(file, fmt::format("the header's length is {}, but only {} bytes follow; truncated?", length, size - kLengthBytes));
  return length;
}

// Sorts the tensors by their bytes and proves that they tile [0, size).
void check_tiling(std::vector<TensorInfo>& tensors, std::uint64_t size, const std::string& file) {
  for (const TensorInfo& t : tensors) {
    const auto offsets = [&] { return fmt::format("tensor {}: data_offsets [{}, {}]", shown(t.name), t.begin, t.end); };
    if (t.begin > t.end) refuse(file, offsets() + " end before they begin");
    if (t.end > size) refuse(file, fmt::format("{} reach beyond the {} bytes of data; truncated?", offsets(), size));
    if (const auto what = misfit(t.type, t.shape, t.end - t.begin))
      refuse(file, fmt::format("tensor {}: {}", shown(t.name), *what));
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t reached = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != reached)
      refuse(file, fmt::format("tensor {} begins at {} {} the bytes before it, which end at {}", shown(t.name), t.begin,
                               t.begin < reached ? "and overlaps" : "and leaves a hole after", reached));
    reached = t.end;
  }
  if (reached != size) refuse(file, fmt::format("{} bytes follow the last tensor", size - reached));
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

void load(std::ifstream& in, std::span<std::byte> bytes, const std::string& file) {
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (in.gcount() != static_cast<std::streamsize>(bytes.size()))
    throw Error(Fault::failure, fmt::format("{}: only {} of {} bytes could be read", file, in.gcount(), bytes.size()));
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
  if (!json.starts_with('{')) refuse(file, fmt::format("the header begins with {}, not with '{{'", shown(json.substr(0, 1))));
  // To the JSON parser a NUL is the end of the text, whatever follows.
  if (const auto nul = json.find('\0'); nul != json.npos) refuse(file, fmt::format("the header has a NUL at byte {}", nul));
  HeaderEvents events(file);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  SafetensorsHeader header = events.take();
  header.data = kLengthBytes + length;
  check_tiling(header.tensors, size - header.data, file);
  return header;
}

Safetensors Safetensors::read(const std::filesystem::path& path) {
  Safetensors out;
  out.file_ = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(out.file_, "cannot open: " + error.message());
  if (!std::filesystem::is_regular_file(status)) refuse(out.file_, "cannot open: not a regular file");
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) refuse(out.file_, "cannot open: " + std::generic_category().message(errno));

  const auto size = static_cast<std::uint64_t>(in.tellg());
  in.seekg(0);
  try {
    std::vector<std::byte> start(std::min(size, kLengthBytes));
    load(in, start, out.file_);
    start.resize(kLengthBytes + header_length(start, size, out.file_));
    load(in, std::span(start).subspan(kLengthBytes), out.file_);
    out.header_ = parse(start, size, out.file_);
    const std::uint64_t bytes = size - out.header_.data;
    out.data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    load(in, std::span(out.data_.get(), bytes), out.file_);
    for (std::size_t i = 0; i < out.tensors().size(); ++i) out.index_.emplace(out.tensors()[i].name, i);
  } catch (const std::bad_alloc&) {
    throw Error(Fault::failure, fmt::format("{}: {} bytes do not fit into memory", out.file_, size));
  }
  return out;
}

const TensorInfo* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors()[found->second];
}

const TensorInfo& Safetensors::require(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  constexpr std::size_t limit = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(tensors().size(), limit); ++i) names += (i == 0 ? "" : ", ") + shown(tensors()[i].name);
  if (tensors().size() > limit) names += fmt::format(", ... {} in all", tensors().size());
  refuse(file_, fmt::format("no tensor {}; tensors: {}", shown(name), names.empty() ? "none" : names));
}

std::span<const std::byte> Safetensors::data(const TensorInfo& tensor) const {
  return {data_.get() + tensor.begin, tensor.end - tensor.begin};
}

std::string safetensors_header(const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += R"("__metadata__":{)";
    for (const auto& [key, value] : metadata) json += fmt::format("{}:{},", json_of(key), json_of(value));
    json.back() = '}';
    json += ',';
  }
  std::set<std::string_view> names = {"__metadata__"};
  std::uint64_t begin = 0;
  for (const TensorToWrite& t : tensors) {
    if (!names.insert(t.name).second)
      refuse_call(
          fmt::format("tensor {} {}", shown(t.name), t.name == "__metadata__" ? "has a reserved name" : "occurs twice"));
    if (const auto what = misfit(t.type, t.shape, t.data.size()))
      refuse_call(fmt::format("tensor {}: {}", shown(t.name), *what));
    const std::uint64_t end = begin + t.data.size();
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

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  AtomicFile file(path);
  file.write(header);
  for (const TensorToWrite& t : tensors) file.write(t.data);
  file.commit();
}

}  // namespace cautious::base
