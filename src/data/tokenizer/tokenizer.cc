// Encoding, decoding and the byte tokenizer. Long texts are cut where no token reaches over (split_pattern.h,
// sentence_pieces.h), so any number of threads gives the same ids.
#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <cautious/error.h>

#include "base/parallel.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

constexpr std::size_t kChunk = 256 * 1024;  // bytes of text that a thread takes at a time
constexpr std::size_t kSlots = 1 << 15;

}  // namespace

std::size_t PieceCache::slot_of(std::string_view piece) { return std::hash<std::string_view>{}(piece) & (kSlots - 1); }

PieceCache::PieceCache() : entries_(kSlots) {}

std::span<const Token> PieceCache::find(std::string_view piece) const {
  const Entry& entry = entries_[slot_of(piece)];
  if (entry.bytes != piece.size() || !std::equal(piece.begin(), piece.end(), entry.piece.begin())) return {};
  return {entry.token.data(), entry.tokens};
}

void PieceCache::keep(std::string_view piece, std::span<const Token> tokens) {
  if (piece.size() > kLongest || tokens.size() > kMostTokens) return;
  Entry& entry = entries_[slot_of(piece)];
  entry.bytes = static_cast<std::uint8_t>(piece.size());
  entry.tokens = static_cast<std::uint8_t>(tokens.size());
  std::copy(piece.begin(), piece.end(), entry.piece.begin());
  std::copy(tokens.begin(), tokens.end(), entry.token.begin());
}

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Tokenizer Tokenizer::bytes() {
  TokenizerBuilder builder{""};
  for (int byte = 0; byte < 256; ++byte) builder.add_token(byte, std::string(1, static_cast<char>(byte)));
  builder.find_bytes();
  return builder.build();
}

Tokenizer Tokenizer::named(const std::string& name) { return name == "bytes" ? bytes() : read(name); }

std::int64_t Tokenizer::vocab() const { return static_cast<std::int64_t>(parts_->tokens.size()); }
Token Tokenizer::document_end() const { return parts_->document_end; }
std::optional<Token> Tokenizer::beginning() const { return parts_->beginning; }

std::optional<Token> Tokenizer::special(std::string_view name) const {
  for (const AddedToken& token : parts_->added) {
    if (token.name == name) return token.id;
  }
  return std::nullopt;
}

const std::vector<std::uint16_t>& Tokenizer::lengths() const { return parts_->lengths; }
const std::string& Tokenizer::fingerprint() const { return parts_->fingerprint; }

std::unique_ptr<Workplace> Tokenizer::Parts::take_workplace() const {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) return std::make_unique<Workplace>();
  auto workplace = std::move(free_.back());
  free_.pop_back();
  return workplace;
}

void Tokenizer::Parts::put_back(std::unique_ptr<Workplace> workplace) const {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(workplace));
}

void Marks::add(const AddedToken& token) {
  if (token.name.empty()) return;
  auto& names = by_first_byte_[static_cast<unsigned char>(token.name[0])];
  const auto shorter = [&](const auto& other) { return other.first.size() < token.name.size(); };
  names.insert(std::find_if(names.begin(), names.end(), shorter), {token.name, token.id});
  empty_ = false;
  longest_ = std::max(longest_, token.name.size());
}

std::optional<Marks::Found> Marks::find(std::string_view text) const {
  for (std::size_t at = 0; !empty_ && at < text.size(); ++at) {
    for (const auto& [name, id] : by_first_byte_[static_cast<unsigned char>(text[at])]) {
      if (text.substr(at).starts_with(name)) return Found{at, name.size(), id};
    }
  }
  return std::nullopt;
}

// Where the first part of at least `size` bytes ends (split_pattern.h, sentence_pieces.h); the text's end if there is one only.
std::size_t Tokenizer::Parts::part_end(std::string_view text, std::size_t size) const {
  return pieces ? pieces->part_end(text, size) : pattern.part_end(text, size);
}

// Text in stretches of about `size` bytes.
std::vector<Stretch> Tokenizer::Parts::stretches(std::string_view text, const Marks& marks, std::size_t size,
                                                 bool continued) const {
  std::vector<Stretch> out;
  for (std::string_view rest = text; !rest.empty();) {
    const auto found = marks.find(rest);
    const std::string_view before = rest.substr(0, found ? found->at : rest.size());
    if (!before.empty()) {
      const bool first = before.data() == text.data();
      bool prefixed = pieces && !(first && continued) && pieces->prefixes(before, first);
      for (const std::string_view part : pieces ? pieces->parts(before, size) : pattern.parts(before, size))
        out.push_back({part, std::nullopt, std::exchange(prefixed, false)});
    }
    rest.remove_prefix(before.size());
    if (!found) break;
    out.push_back({rest.substr(0, found->size), found->id});
    rest.remove_prefix(found->size);
  }
  return out;
}

void Tokenizer::Parts::encode(const Stretch& stretch, std::vector<Token>& out) const {
  if (stretch.added) {
    out.push_back(*stretch.added);
    return;
  }
  auto workplace = take_workplace();
  const auto add = [&](std::string_view piece) { encode(piece, *workplace, out); };
  if (pieces) {
    pieces->each_piece(stretch.text, stretch.prefixed, add);
  } else if (composed) {
    pattern.each_piece(to_nfc(stretch.text), add);
  } else {
    pattern.each_piece(stretch.text, add);
  }
  put_back(std::move(workplace));
}

void Tokenizer::Parts::encode(std::string_view piece, Workplace& workplace, std::vector<Token>& out) const {
  if (const auto known = workplace.cache.find(piece); !known.empty()) {
    out.insert(out.end(), known.begin(), known.end());
    return;
  }
  const std::size_t before = out.size();
  if (const auto found = whole.empty() ? whole.end() : whole.find(std::string(piece)); found != whole.end()) {
    out.push_back(found->second);
  } else {
    begin(piece, workplace.buffer);
    merges.apply(workplace.buffer, out);
  }
  workplace.cache.keep(piece, std::span(out).subspan(before));
}

void Tokenizer::Parts::begin(std::string_view piece, MergeBuffer& buffer) const {
  if (pieces) {
    pieces->begin(piece, bytes, buffer);
  } else {
    for (const char c : piece) buffer.add(bytes[static_cast<unsigned char>(c)]);
  }
}

std::vector<Token> Tokenizer::Parts::encode(std::string_view text, const Marks& marks, int threads, bool continued) const {
  const std::vector<Stretch> all = stretches(text, marks, threads > 1 ? kChunk : text.size(), continued);
  std::vector<Token> out;
  if (threads <= 1 || all.size() <= 1) {
    out.reserve(text.size() / 3);
    for (const Stretch& stretch : all) encode(stretch, out);
    return out;
  }
  std::vector<std::vector<Token>> ids(all.size());
  const int workers = static_cast<int>(std::min(static_cast<std::size_t>(threads), all.size()));
  base::parallel_for(all.size(), workers, [&](std::size_t i) { encode(all[i], ids[i]); });

  std::size_t size = 0;
  for (const auto& some : ids) size += some.size();
  out.reserve(size);
  for (const auto& some : ids) out.insert(out.end(), some.begin(), some.end());
  return out;
}

std::vector<Token> Tokenizer::encode(std::string_view text, int threads, bool continued) const {
  if (parts_->plain_bytes) {
    const auto* const first = reinterpret_cast<const unsigned char*>(text.data());
    return {first, first + text.size()};
  }
  return parts_->encode(text, parts_->cut, threads, continued);
}

// In the last bytes if there is such a place in them.
std::size_t Tokenizer::cut(std::string_view text) const {
  if (parts_->plain_bytes) return text.size();
  const std::size_t longest = parts_->cut.longest(), margin = longest + 2;
  for (const std::size_t from : {text.size() - std::min(text.size(), kChunk), text.size() / 2, std::size_t{1}}) {
    for (std::size_t at = from;; ++at) {
      at = parts_->part_end(text, at);
      if (at + margin > text.size()) break;
      // An added token near by may reach over it, or have a rule of its own for what follows.
      const std::size_t before = std::min(at, longest);
      if (!parts_->cut.find(text.substr(at - before, before + margin))) return at;
    }
  }
  return 0;
}

std::vector<Token> Tokenizer::encode_marked(std::string_view text) const {
  return parts_->encode(text, parts_->marked, 1, false);
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= parts_->tokens.size()) {
      throw Error(Fault::data, fmt::format("token {} of {} is {}; this tokenizer has ids in [0, {})", i + 1, tokens.size(),
                                           tokens[i], parts_->tokens.size()));
    }
    out += parts_->tokens[tokens[i]];
  }
  return out;
}

}  // namespace cautious::data
