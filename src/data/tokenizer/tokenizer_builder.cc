// Tokens and merges as they are added and checked, the fingerprint, and GPT-2's letters for bytes.
#include "data/tokenizer/tokenizer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"

namespace cautious::data {
namespace {

constexpr std::size_t kLongestToken = std::numeric_limits<std::uint16_t>::max();

std::string in_hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 40)) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out + (bytes.size() > 40 ? "..." : "");
}

// Bytes of a token need not be UTF-8.
std::string shown_bytes(std::string_view bytes) {
  return valid_utf8(bytes) == bytes.size() ? base::in_quotes(bytes) : "of bytes " + in_hexadecimal(bytes);
}

// Bytes 33..126, 161..172 and 174..255 are their own code points; the others, in order, are 256 and up.
constexpr std::size_t kLetters = 256 + 68;

constexpr bool is_own_letter(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr auto kLetterOf = [] {
  std::array<std::uint16_t, 256> letters{};
  std::uint16_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) letters[byte] = is_own_letter(byte) ? static_cast<std::uint16_t>(byte) : next++;
  return letters;
}();

constexpr auto kByteOf = [] {
  std::array<std::int16_t, kLetters> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kLetterOf[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

}  // namespace

TokenizerBuilder::TokenizerBuilder(std::string pattern) : parts_(std::make_shared<Tokenizer::Parts>(std::move(pattern))) {}

std::optional<std::string> TokenizerBuilder::claim(std::int64_t id, const std::string& token) {
  if (id < 0 || id >= kMostTokens) return fmt::format("token {} has id {}; valid: [0, {})", token, id, kMostTokens);
  const auto index = static_cast<std::size_t>(id);
  if (index >= used_.size()) used_.resize(index + 1);
  if (used_[index]) return fmt::format("token {} has id {}, which another token has", token, id);
  used_[index] = true;
  parts_->tokens.resize(used_.size());
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_token(std::int64_t id, std::string bytes) {
  if (bytes.empty()) return fmt::format("the token of id {} is empty", id);
  if (bytes.size() > kLongestToken) return fmt::format("token {} is longer than {} bytes", shown_bytes(bytes), kLongestToken);
  if (ids_.contains(bytes))
    return fmt::format("token {} occurs twice, with ids {} and {}", shown_bytes(bytes), ids_[bytes], id);
  if (auto what = claim(id, shown_bytes(bytes))) return what;
  ids_.emplace(bytes, static_cast<Token>(id));
  parts_->tokens[static_cast<std::size_t>(id)] = std::move(bytes);
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_special(std::int64_t id, std::string name) {
  if (auto what = claim(id, base::in_quotes(name))) return what;
  parts_->special.push_back({static_cast<Token>(id), std::move(name)});
  return std::nullopt;
}

std::optional<Token> TokenizerBuilder::find(std::string_view bytes) const {
  const auto found = ids_.find(std::string(bytes));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> TokenizerBuilder::add_merge(std::string_view left, std::string_view right) {
  const auto a = find(left), b = find(right), made = find(std::string(left) + std::string(right));
  for (const auto& [part, id] : {std::pair(left, a), std::pair(right, b)}) {
    if (!id) return fmt::format("it merges {}, which is not in the vocabulary", shown_bytes(part));
  }
  if (!made) {
    return fmt::format("it merges {} and {}, but what they make is not in the vocabulary", shown_bytes(left),
                       shown_bytes(right));
  }
  if (!parts_->merges.add({*a, *b, *made}))
    return fmt::format("it merges {} and {}, which an earlier merge does", shown_bytes(left), shown_bytes(right));
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_merge_for(Token id) {
  const std::string& token = parts_->tokens[id];
  if (token.size() == 1) return std::nullopt;
  const std::vector<Token> two = merged(token);
  if (two.size() != 2)
    return fmt::format("token {} of rank {} is not made of two tokens of lower ranks", shown_bytes(token), id);
  parts_->merges.add({two[0], two[1], id});
  return std::nullopt;
}

std::vector<Token> TokenizerBuilder::merged(std::string_view bytes) {
  std::vector<Token> out;
  parts_->merges.apply(bytes, parts_->bytes, buffer_, out);
  return out;
}

std::optional<std::string> TokenizerBuilder::find_bytes() {
  for (std::size_t byte = 0; byte < parts_->bytes.size(); ++byte) {
    const auto id = find(std::string(1, static_cast<char>(byte)));
    if (!id) return fmt::format("byte {0} (0x{0:02x}) has no token; a byte-level BPE has one for each of the 256", byte);
    parts_->bytes[byte] = *id;
  }
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::find_unmade() {
  for (Token id = 0; id < parts_->tokens.size(); ++id) {
    const std::string& token = parts_->tokens[id];
    if (!token.empty() && merged(token) != std::vector{id})
      return fmt::format("the merges do not make token {} of id {}", shown_bytes(token), id);
  }
  return std::nullopt;
}

// Lengths before bytes: no two tokenizers give the same text.
std::string TokenizerBuilder::fingerprint() const {
  const Tokenizer::Parts& parts = *parts_;
  base::Sha256 sum;
  sum.add(fmt::format("byte-level BPE\npattern {}\n{}\nend {}\ntokens {}\n", parts.pattern.text().size(), parts.pattern.text(),
                      parts.document_end, parts.tokens.size()));
  for (const std::string& token : parts.tokens) sum.add(fmt::format("{} ", token.size()) + token);
  for (const Merge& merge : parts.merges.in_order()) sum.add(fmt::format("{} {}\n", merge.left, merge.right));
  return sum.hex();
}

Tokenizer TokenizerBuilder::build() {
  Tokenizer::Parts& parts = *parts_;
  std::sort(parts.special.begin(), parts.special.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto end =
      std::find_if(parts.special.begin(), parts.special.end(), [](const auto& s) { return s.name == kDocumentEnd; });
  parts.document_end = end == parts.special.end() ? parts.bytes[0] : end->id;
  parts.plain_bytes = parts.tokens.size() == parts.bytes.size() && parts.merges.in_order().empty();
  for (std::size_t byte = 0; byte < parts.bytes.size(); ++byte) parts.plain_bytes &= parts.bytes[byte] == byte;
  for (const std::string& token : parts.tokens) parts.lengths.push_back(static_cast<std::uint16_t>(token.size()));
  parts.lengths[parts.document_end] = 0;
  parts.fingerprint = fingerprint();
  return Tokenizer(std::move(parts_));
}

std::string to_letters(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const unsigned letter = kLetterOf[static_cast<unsigned char>(c)];
    if (letter >= 0x80) out += static_cast<char>(0xc0 | letter >> 6);
    out += static_cast<char>(letter < 0x80 ? letter : 0x80 | (letter & 0x3f));
  }
  return out;
}

std::optional<std::string> from_letters(std::string_view letters) {
  std::string out;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    unsigned letter = static_cast<unsigned char>(letters[i]);
    if (letter >= 0x80) {
      const unsigned low = i + 1 < letters.size() ? static_cast<unsigned char>(letters[++i]) : 0;
      if ((letter & 0xe0) != 0xc0 || (low & 0xc0) != 0x80) return std::nullopt;
      letter = (letter & 0x1f) << 6 | (low & 0x3f);
      if (letter < 0x80) return std::nullopt;
    }
    if (letter >= kLetters || kByteOf[letter] < 0) return std::nullopt;
    out += static_cast<char>(kByteOf[letter]);
  }
  return out;
}

}  // namespace cautious::data
