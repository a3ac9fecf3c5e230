// Where to cut: between a word and the space behind it, if no merge makes a token that has a space behind something else. Then
// the words of a text are merged one by one, which is faster than the whole and gives the same.
#include "data/tokenizer/sentence_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8_stream.h"

namespace cautious::data {
namespace {

std::uint32_t as_number(std::string_view character) {
  std::uint32_t number = 0;
  for (const char c : character) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

std::string with_replaced(std::string_view text, std::string_view old, std::string_view replacement) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(old);
    out += text.substr(0, at);
    if (at == text.npos) return out;
    out += replacement;
    text.remove_prefix(at + old.size());
  }
}

}  // namespace

std::string name_of_byte(unsigned byte) { return fmt::format("<0x{:02X}>", byte); }
std::string with_spaces(std::string_view piece) { return with_replaced(piece, kSpaceMark, " "); }
std::string with_marks(std::string_view bytes) { return with_replaced(bytes, " ", kSpaceMark); }

void SentencePieces::add(std::string_view character, Token id) {
  characters_[as_number(character)] = id;
  if (character == kSpaceMark) characters_[as_number(" ")] = id;
}

bool SentencePieces::prefixes(std::string_view stretch, bool first) const {
  if (prefix_ == SpacePrefix::none || stretch.empty()) return false;
  if (prefix_ == SpacePrefix::all) return true;
  return (first || prefix_ == SpacePrefix::missing) && !stretch.starts_with(' ') && !stretch.starts_with(kSpaceMark);
}

void SentencePieces::begin(std::string_view piece, const std::array<Token, 256>& bytes, MergeBuffer& buffer) const {
  while (!piece.empty()) {
    const std::size_t size = std::max<std::size_t>(1, base::utf8_character(piece));
    const auto found = characters_.find(as_number(piece.substr(0, size)));
    if (found != characters_.end()) {
      buffer.add(found->second);
    } else {
      for (const char c : piece.substr(0, size)) buffer.add(bytes[static_cast<unsigned char>(c)]);
    }
    piece.remove_prefix(size);
  }
}

// The next position where words meet; the size of the text if there is none.
std::size_t SentencePieces::cut(std::string_view text, std::size_t from) const {
  std::size_t at = cuts_ ? text.find(' ', std::max<std::size_t>(from, 1)) : text.npos;
  while (at != text.npos && (text[at - 1] == ' ' || text.substr(0, at).ends_with(kSpaceMark))) at = text.find(' ', at + 1);
  return std::min(at, text.size());
}

void SentencePieces::each_piece(std::string_view text, bool prefixed,
                                const std::function<void(std::string_view piece)>& each) const {
  if (prefixed) {
    const std::size_t end = cut(text, 1);
    each(" " + std::string(text.substr(0, end)));
    text.remove_prefix(end);
  }
  while (!text.empty()) {
    const std::size_t end = cut(text, 1);
    each(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> SentencePieces::parts(std::string_view text, std::size_t size) const {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, part_end(text, size)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

std::size_t SentencePieces::part_end(std::string_view text, std::size_t size) const {
  return size < text.size() ? cut(text, size) : text.size();
}

}  // namespace cautious::data
