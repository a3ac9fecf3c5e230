// Tokens and merges as they are added and checked, the fingerprint, and GPT-2's letters for bytes.
#include "data/tokenizer/tokenizer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8_stream.h"

namespace cautious::data {
namespace {

constexpr std::size_t kLongestToken = std::numeric_limits<std::uint16_t>::max();

// In this order: a model for chats has the ends of its messages too.
constexpr std::array<std::string_view, 6> kEnds{kDocumentEnd, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>", "<|eot_id|>"};

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

TokenizerBuilder::TokenizerBuilder(SpacePrefix prefix) : TokenizerBuilder(std::string()) { parts_->pieces.emplace(prefix); }

void TokenizerBuilder::expect(std::size_t tokens) {
  constexpr std::size_t kAlways = 100'000;
  most_ = static_cast<std::int64_t>(std::min<std::size_t>(kMostTokens, kAlways + 2 * tokens));
}

std::optional<std::string> TokenizerBuilder::claim(std::int64_t id, const std::string& token) {
  if (id < 0 || id >= most_) return fmt::format("token {} has id {}; valid: [0, {})", token, id, most_);
  const auto index = static_cast<std::size_t>(id);
  if (index >= used_.size()) used_.resize(index + 1);
  if (used_[index]) return fmt::format("token {} has id {}, which another token has", token, id);
  used_[index] = true;
  parts_->tokens.resize(used_.size());
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_token(std::int64_t id, std::string text) {
  if (text.empty()) return fmt::format("the token of id {} is empty", id);
  if (text.size() > kLongestToken) return fmt::format("token {} is longer than {} bytes", shown_bytes(text), kLongestToken);
  if (parts_->pieces && text.find(' ') != text.npos)
    return fmt::format("token {} has a space; sentence pieces write it {} (U+2581)", shown_bytes(text), kSpaceMark);
  if (ids_.contains(text)) return fmt::format("token {} occurs twice, with ids {} and {}", shown_bytes(text), ids_[text], id);
  if (auto what = claim(id, shown_bytes(text))) return what;
  ids_.emplace(text, static_cast<Token>(id));
  parts_->tokens[static_cast<std::size_t>(id)] = parts_->pieces ? with_spaces(text) : std::move(text);
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_special(std::int64_t id, std::string name) {
  if (auto what = claim(id, base::in_quotes(name))) return what;
  parts_->added.push_back({static_cast<Token>(id), std::move(name), true});
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::add_cut(std::int64_t id, std::string name) {
  if (name.empty()) return fmt::format("the added token of id {} is empty", id);
  if (name.size() > kLongestToken) return fmt::format("token {} is longer than {} bytes", base::in_quotes(name), kLongestToken);
  if (auto what = claim(id, base::in_quotes(name))) return what;
  parts_->tokens[static_cast<std::size_t>(id)] = parts_->pieces ? with_spaces(name) : name;
  cut_out(static_cast<Token>(id), std::move(name));
  return std::nullopt;
}

void TokenizerBuilder::cut_out(Token id, std::string name) { parts_->added.push_back({id, std::move(name), false}); }

std::optional<Token> TokenizerBuilder::find(std::string_view text) const {
  const auto found = ids_.find(std::string(text));
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

std::vector<Merge> TokenizerBuilder::merges_for(std::string_view text) const {
  std::vector<Merge> out;
  const auto made = find(text);
  for (std::size_t cut = 1; made && cut < text.size(); ++cut) {
    const auto left = find(text.substr(0, cut)), right = find(text.substr(cut));
    if (left && right) out.push_back({*left, *right, *made});
  }
  return out;
}

std::vector<Token> TokenizerBuilder::merged(std::string_view bytes) {
  std::vector<Token> out;
  parts_->begin(bytes, buffer_);
  parts_->merges.apply(buffer_, out);
  return out;
}

std::optional<std::string> TokenizerBuilder::find_bytes() {
  for (unsigned byte = 0; byte < parts_->bytes.size(); ++byte) {
    const std::string itself(1, static_cast<char>(byte));
    const auto id = find(parts_->pieces ? name_of_byte(byte) : itself);
    if (!id) {
      return fmt::format("byte {0} (0x{0:02x}) has no token; {1} has one for each of the 256", byte,
                         parts_->pieces ? "a BPE with byte_fallback" : "a byte-level BPE");
    }
    parts_->bytes[byte] = *id;
    parts_->tokens[*id] = itself;
  }
  if (!parts_->pieces) return std::nullopt;
  if (!find(kSpaceMark)) return fmt::format("no token {} (U+2581), which stands for a space", kSpaceMark);
  for (const auto& [text, id] : ids_) {
    if (base::utf8_character(text) == text.size()) parts_->pieces->add(text, id);
  }
  return std::nullopt;
}

void TokenizerBuilder::add_merges_by_score(std::span<const Scored> tokens) {
  std::vector<std::pair<float, Merge>> merges;
  for (const Scored& token : tokens)
    for (const Merge& merge : merges_for(token.text)) merges.emplace_back(token.score, merge);
  const auto order = [](const auto& one) { return std::tuple(-one.first, one.second.made, one.second.left, one.second.right); };
  std::stable_sort(merges.begin(), merges.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  for (const auto& [score, merge] : merges) add_merge(merge);
}

void TokenizerBuilder::keep_whole() {
  for (const auto& [text, id] : ids_) {
    if (merged(text) != std::vector{id}) parts_->whole.emplace(text, id);
  }
}

std::optional<std::string> TokenizerBuilder::find_inner_space() const {
  for (const Merge& merge : parts_->merges.in_order()) {
    const std::string& token = parts_->tokens[merge.made];
    for (std::size_t i = 1; i < token.size(); ++i) {
      if (token[i] == ' ' && token[i - 1] != ' ') return token;
    }
  }
  return std::nullopt;
}

std::optional<Token> TokenizerBuilder::find_added(std::string_view name) const {
  for (const AddedToken& token : parts_->added) {
    if (token.name == name) return token.id;
  }
  return std::nullopt;
}

void TokenizerBuilder::name_unknown(std::string_view name) {
  parts_->unknown = find_added(name);
  if (!parts_->unknown) parts_->unknown = find(name);
}

std::optional<std::string> TokenizerBuilder::begin_with(std::string_view name) {
  parts_->beginning = find_added(name);
  if (!parts_->beginning) return fmt::format("{} begins a text, but is not among the added tokens", base::in_quotes(name));
  return std::nullopt;
}

std::optional<std::string> TokenizerBuilder::end_with(std::string_view name) {
  end_ = find_added(name);
  if (!end_) return fmt::format("{} ends a text, but is not among the added tokens", base::in_quotes(name));
  return std::nullopt;
}

// A byte-level BPE with bytes alone has byte 0.
std::optional<std::string> TokenizerBuilder::find_no_end() const {
  if (end_ || known_end(parts_->added) != nullptr || (parts_->added.empty() && !parts_->pieces)) return std::nullopt;
  return fmt::format("no token ends a text: no eos_token in a tokenizer_config.json beside it, and none of {} is added",
                     base::join(kEnds));
}

// Lengths before bytes: no two tokenizers give the same text.
std::string TokenizerBuilder::fingerprint() const {
  const Tokenizer::Parts& parts = *parts_;
  base::Sha256 sum;
  sum.add(parts.pieces ? fmt::format("sentence pieces\nprefix {}", static_cast<int>(parts.pieces->prefix()))
                       : fmt::format("byte-level BPE\npattern {}\n{}", parts.pattern.text().size(), parts.pattern.text()));
  sum.add(fmt::format("\nend {}\ntokens {}\n", parts.document_end, parts.tokens.size()));
  for (const std::string& token : parts.tokens) sum.add(fmt::format("{} ", token.size()) + token);
  for (const Merge& merge : parts.merges.in_order()) sum.add(fmt::format("{} {}\n", merge.left, merge.right));
  // What older tokenizers do not have adds nothing.
  if (parts.pieces) sum.add(fmt::format("bytes {}\n", fmt::join(parts.bytes, " ")));
  if (parts.composed) sum.add("NFC\n");
  if (!parts.whole.empty()) sum.add("whole\n");
  if (parts.beginning) sum.add(fmt::format("begin {}\n", *parts.beginning));
  for (const AddedToken& token : parts.added) {
    if (!token.special) sum.add(fmt::format("cut {} {} ", token.id, token.name.size()) + token.name);
  }
  return sum.hex();
}

Tokenizer TokenizerBuilder::build() {
  Tokenizer::Parts& parts = *parts_;
  std::sort(parts.added.begin(), parts.added.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const AddedToken& token : parts.added) {
    parts.marked.add(token);
    if (!token.special) parts.cut.add(token);
  }
  const AddedToken* const end = known_end(parts.added);
  parts.document_end = end_ ? *end_ : end == nullptr ? parts.bytes[0] : end->id;
  if (parts.pieces && !find_inner_space()) parts.pieces->cut_before_spaces();
  parts.plain_bytes = parts.tokens.size() == parts.bytes.size() && parts.merges.in_order().empty();
  for (std::size_t byte = 0; byte < parts.bytes.size(); ++byte) parts.plain_bytes &= parts.bytes[byte] == byte;
  for (const std::string& token : parts.tokens) parts.lengths.push_back(static_cast<std::uint16_t>(token.size()));
  parts.lengths[parts.document_end] = 0;
  parts.fingerprint = fingerprint();
  return Tokenizer(std::move(parts_));
}

const AddedToken* known_end(const std::vector<AddedToken>& added) {
  for (const std::string_view name : kEnds) {
    const auto found = std::find_if(added.begin(), added.end(), [&](const auto& token) { return token.name == name; });
    if (found != added.end()) return &*found;
  }
  return nullptr;
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
