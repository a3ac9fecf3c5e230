// Opening a token file proves that every later access stays inside it. Nothing a header says is believed without the file's
// size.
#include "data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include <cautious/error.h>
#include "base/files.h"
#include "data/token_layout.h"

namespace cautious::data {

struct Tokens::Parts {
  explicit Parts(const std::filesystem::path& file) : path(file), mapped(file) {}
  std::filesystem::path path;
  base::MappedFile mapped;
  const std::byte* first = nullptr;  // token, at a multiple of width
  std::size_t width = 0;
  std::int64_t size = 0;
  std::optional<std::uint64_t> promised;  // the largest token, as the file says
  Token largest = 0;
  std::span<const std::int64_t> documents;
  std::string tokenizer;
};

namespace {

constexpr std::uint64_t kScanned = std::uint64_t{1} << 31;  // tokens; above, the promise counts and copy() holds it to it
constexpr std::array<std::int64_t, 1> kOneDocument = {0};

// llm.c
constexpr std::uint64_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kMagic = 20240520, kLlamaMagic = 20240801, kEvalMagic = 20240522;

template <class T>
T read_at(std::span<const std::byte> bytes, std::uint64_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof(T));
  return value;
}

template <class Element, class Parts>
std::span<const Element> elements(const Parts& parts) {
  return {reinterpret_cast<const Element*>(parts.first), static_cast<std::size_t>(parts.size)};
}

template <class Parts, class Call>
void with_elements(const Parts& parts, const Call& call) {
  if (parts.width == 1) {
    call(elements<std::uint8_t>(parts));
  } else if (parts.width == 2) {
    call(elements<std::uint16_t>(parts));
  } else {
    call(elements<std::uint32_t>(parts));
  }
}

// A loop that compilers vectorize.
template <class Element>
Element largest_of(std::span<const Element> tokens) {
  Element largest = 0;
  for (const Element token : tokens) largest = token > largest ? token : largest;
  return largest;
}

bool is_ours(std::span<const std::byte> bytes) {
  const auto magic = TokenFileStart{}.magic;
  return bytes.size() >= magic.size() && read_at<decltype(TokenFileStart::magic)>(bytes, 0) == magic;
}

void check_documents(std::span<const std::int64_t> starts, std::int64_t tokens, const std::filesystem::path& path) {
  if (starts[0] != 0)
    base::refuse_content(path.string(), fmt::format("damaged token file: document 1 begins at token {}, not 0", starts[0]));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] <= starts[i - 1] || starts[i] >= tokens)
      base::refuse_content(path.string(),
                           fmt::format("damaged token file: document {} begins at token {}, after {}, of {} tokens", i + 1,
                                       starts[i], starts[i - 1], tokens));
  }
}

TokenFileStart checked_start(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  constexpr std::uint64_t kLeast = sizeof(TokenFileStart) + sizeof(TokenFileEnd);
  if (bytes.size() < kLeast)
    base::refuse_content(path.string(),
                         fmt::format("damaged token file: {} bytes, at least {} expected", bytes.size(), kLeast));
  const auto start = read_at<TokenFileStart>(bytes, 0);
  if (start.version != 1)
    base::refuse_content(
        path.string(),
        fmt::format("token file of version {}; this program reads version 1: tokenize the text again", start.version));
  if (start.width != 1 && start.width != 2 && start.width != 4)
    base::refuse_content(path.string(), fmt::format("damaged token file: {} bytes per token; 1, 2 or 4 expected", start.width));
  if (start.vocab == 0 || start.vocab > std::uint64_t{1} << (8 * start.width))
    base::refuse_content(path.string(),
                         fmt::format("damaged token file: a vocabulary of {} in {} bytes per token", start.vocab, start.width));
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::all_of(start.tokenizer.begin(), start.tokenizer.end(), digit))
    base::refuse_content(path.string(), "damaged token file: its tokenizer's fingerprint is not 64 hexadecimal digits");
  return start;
}

TokenFileEnd checked_end(std::span<const std::byte> bytes, std::uint64_t width, const std::filesystem::path& path) {
  const auto end = read_at<TokenFileEnd>(bytes, bytes.size() - sizeof(TokenFileEnd));
  if (end.magic != TokenFileEnd{}.magic)
    base::refuse_content(path.string(), "damaged token file: its end is missing; cut short?");
  const std::uint64_t room = bytes.size() - sizeof(TokenFileStart) - sizeof(TokenFileEnd);
  // Both bounds first: after them no product overflows.
  const bool possible = end.tokens <= room / width && end.documents <= room / sizeof(std::int64_t);
  if (!possible || padded(end.tokens * width) + end.documents * sizeof(std::int64_t) != room)
    base::refuse_content(
        path.string(), fmt::format("damaged token file: {} tokens of {} bytes and {} documents do not fit {} bytes", end.tokens,
                                   width, end.documents, room));
  if (end.tokens == 0 || end.documents == 0) base::refuse_content(path.string(), "has no tokens");
  return end;
}

template <class Parts>
void read_ours(Parts& parts) {
  const auto bytes = parts.mapped.bytes();
  const TokenFileStart start = checked_start(bytes, parts.path);
  const TokenFileEnd end = checked_end(bytes, start.width, parts.path);
  parts.first = bytes.data() + sizeof(TokenFileStart);
  parts.width = start.width;
  parts.size = static_cast<std::int64_t>(end.tokens);
  const auto* starts = reinterpret_cast<const std::int64_t*>(parts.first + padded(end.tokens * start.width));
  parts.documents = {starts, static_cast<std::size_t>(end.documents)};
  check_documents(parts.documents, parts.size, parts.path);
  if (end.largest >= start.vocab)
    base::refuse_content(parts.path.string(),
                         fmt::format("damaged token file: token {} in a vocabulary of {}", end.largest, start.vocab));
  parts.promised = end.largest;
  parts.tokenizer.assign(start.tokenizer.begin(), start.tokenizer.end());
}

template <class Parts>
void read_llm_c(Parts& parts) {
  const auto bytes = parts.mapped.bytes();
  if (bytes.size() < kHeaderBytes)
    base::refuse_content(parts.path.string(),
                         fmt::format("cut short: {} bytes, but an llm.c header takes {}", bytes.size(), kHeaderBytes));
  const auto magic = read_at<std::int32_t>(bytes, 0), version = read_at<std::int32_t>(bytes, 4),
             count = read_at<std::int32_t>(bytes, 8);
  const bool narrow = version == 1 && magic == kMagic;
  if (!narrow && version != 7)
    base::refuse_content(parts.path.string(),
                         fmt::format("llm.c file {} of version {}; versions 1 (u16) and 7 (u32) are read", magic, version));
  parts.width = narrow ? 2 : 4;
  if (count <= 0)
    base::refuse_content(parts.path.string(), fmt::format("an llm.c header with {} tokens; at least 1 expected", count));
  const std::uint64_t expected = kHeaderBytes + static_cast<std::uint64_t>(count) * parts.width;
  if (bytes.size() != expected)
    base::refuse_content(parts.path.string(), fmt::format("{} bytes, but an llm.c header with {} tokens of {} bytes means {}",
                                                          bytes.size(), count, parts.width, expected));
  parts.first = bytes.data() + kHeaderBytes;
  parts.size = count;
}

template <class Parts>
void read_nano_gpt(Parts& parts) {
  const auto bytes = parts.mapped.bytes();
  if (bytes.size() % 2 != 0)
    base::refuse_content(parts.path.string(),
                         fmt::format("{} bytes; a file of u16 tokens without a header has an even number", bytes.size()));
  parts.first = bytes.data();
  parts.width = 2;
  parts.size = static_cast<std::int64_t>(bytes.size() / 2);
}

template <class Parts>
void read_bin(Parts& parts) {
  const auto bytes = parts.mapped.bytes();
  const std::int32_t magic = bytes.size() >= sizeof(std::int32_t) ? read_at<std::int32_t>(bytes, 0) : 0;
  if (magic == kEvalMagic)
    base::refuse_content(parts.path.string(),
                         fmt::format("an llm.c file of multiple-choice questions ({}), not of tokens ({})", magic, kMagic));
  if (magic == kMagic || magic == kLlamaMagic) {
    read_llm_c(parts);
  } else {
    read_nano_gpt(parts);
  }
}

template <class Parts>
void find_largest(Parts& parts) {
  if (parts.promised && static_cast<std::uint64_t>(parts.size) >= kScanned) {
    parts.largest = static_cast<Token>(*parts.promised);
    return;
  }
  with_elements(parts, [&](auto tokens) { parts.largest = largest_of(tokens); });
  if (parts.promised.value_or(parts.largest) != parts.largest)
    base::refuse_content(parts.path.string(),
                         fmt::format("damaged token file: its largest token is {}, not {}", parts.largest, *parts.promised));
}

}  // namespace

Tokens::Tokens(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokens::~Tokens() = default;

std::shared_ptr<const Tokens> Tokens::open(const std::filesystem::path& path) {
  auto parts = std::make_unique<Parts>(path);
  parts->documents = kOneDocument;
  if (parts->mapped.bytes().empty()) base::refuse_content(path.string(), "has no tokens: the file is empty");
  const auto suffix = path.extension();
  if (is_ours(parts->mapped.bytes())) {
    read_ours(*parts);
  } else if (suffix == ".tokens") {
    base::refuse_content(path.string(), "not a token file of this program, though its name ends in .tokens");
  } else if (suffix == ".bin") {
    read_bin(*parts);
  } else {
    base::refuse_content(path.string(),
                         "not a token file; token files end in .tokens (of `cautious tokenize`) or .bin (of llm.c or nanoGPT)");
  }
  find_largest(*parts);
  return std::shared_ptr<const Tokens>(new Tokens(std::move(parts)));
}

std::int64_t Tokens::size() const { return parts_->size; }
Token Tokens::largest() const { return parts_->largest; }
std::span<const std::int64_t> Tokens::documents() const { return parts_->documents; }
const std::string& Tokens::tokenizer() const { return parts_->tokenizer; }
const std::filesystem::path& Tokens::path() const { return parts_->path; }

void Tokens::copy(std::int64_t first, std::span<std::int64_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (first < 0 || count > parts_->size || first > parts_->size - count)
    throw Error(Fault::usage,
                fmt::format("{}: tokens [{}, {}) wanted of {}", parts_->path.string(), first, first + count, size()));
  std::int64_t largest = 0;
  with_elements(*parts_, [&](auto tokens) {
    const auto* from = tokens.data() + first;
    for (std::size_t i = 0; i < out.size(); ++i) largest = std::max(largest, out[i] = from[i]);
  });
  if (largest > parts_->largest)
    base::refuse_content(
        parts_->path.string(),
        fmt::format("damaged or changed token file: token {} at or after position {}, though the largest is {}", largest, first,
                    parts_->largest));
}

}  // namespace cautious::data
