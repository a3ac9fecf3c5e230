// What a tokenizer consists of: its merges, the cache of pieces; and putting one together, whatever file it comes from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

inline constexpr std::string_view kDocumentEnd = "<|endoftext|>";
// Beyond any published vocabulary; an id is an index into tables of this size.
inline constexpr std::int64_t kMostTokens = 10'000'000;

// The merges of a byte-level BPE: which two neighbours become one token, and which first.
struct Merge {
  Token left, right;
  Token made;
};

// Reused from piece to piece by one thread.
class MergeBuffer {
 private:
  friend class Merges;
  struct Part {
    Token token;
    std::uint32_t rank;            // of the merge with the next part; kNone if there is none, or the part is gone
    std::uint32_t previous, next;  // kNone at the ends
  };
  struct Candidate {
    std::uint32_t rank, part;
  };
  std::vector<Part> parts_;
  std::vector<Candidate> heap_;
};

class Merges {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // Its rank is its position in the order of adding; false if the pair was there already.
  bool add(const Merge& merge);
  const std::vector<Merge>& in_order() const { return merges_; }

  // The tokens of one piece: its bytes as `bytes` names them, then the merge of lowest rank, the leftmost of equal ones, until
  // none is left. Appends to `out`.
  void apply(std::string_view piece, const std::array<Token, 256>& bytes, MergeBuffer& buffer, std::vector<Token>& out) const;

 private:
  std::uint32_t rank(Token left, Token right) const;
  void look_at(MergeBuffer& buffer, std::uint32_t part) const;
  void join(MergeBuffer& buffer, std::uint32_t part) const;
  std::size_t slot(Token left, Token right) const;
  void grow();

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> table_;  // open addressing: positions in merges_, kNone where free; at most half full
};

// What frequent pieces became, of one thread: each slot holds the last short piece whose hash led there.
class PieceCache {
 public:
  PieceCache();
  // Nothing if the piece is not there; no piece has no tokens.
  std::span<const Token> find(std::string_view piece) const;
  void keep(std::string_view piece, std::span<const Token> tokens);

 private:
  static constexpr std::size_t kLongest = 22, kMostTokens = 10;
  struct Entry {
    std::uint8_t bytes = 0, tokens = 0;
    std::array<char, kLongest> piece;
    std::array<Token, kMostTokens> token;
  };
  static std::size_t slot_of(std::string_view piece);
  std::vector<Entry> entries_;
};

struct SpecialToken {
  Token id;
  std::string name;
};

// What one thread needs while it encodes.
struct Workplace {
  MergeBuffer buffer;
  PieceCache cache;
};

struct Tokenizer::Parts {
  explicit Parts(std::string pattern_text) : pattern(std::move(pattern_text)) {}

  SplitPattern pattern;
  std::vector<std::string> tokens;    // bytes of each id; none for special and unused ids
  std::vector<SpecialToken> special;  // by id
  std::array<Token, 256> bytes{};     // id of each byte
  Merges merges;
  bool plain_bytes = false;  // id = byte and nothing else
  Token document_end = 0;
  std::vector<std::uint16_t> lengths;
  std::string fingerprint;

  std::vector<Token> encode(std::string_view text) const;  // on one thread

 private:
  std::unique_ptr<Workplace> take_workplace() const;
  void put_back(std::unique_ptr<Workplace> workplace) const;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> free_;
};

// The adding functions return what is wrong with what they were given, for a message that says where it is.
class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(std::string pattern);

  std::optional<std::string> add_token(std::int64_t id, std::string bytes);
  std::optional<std::string> add_special(std::int64_t id, std::string name);
  std::optional<std::string> add_merge(std::string_view left, std::string_view right);
  // The merge that the ones before imply for a token: those leave exactly two parts of it.
  std::optional<std::string> add_merge_for(Token id);
  // Before any merge is applied, and after all tokens: a byte without a token.
  std::optional<std::string> find_bytes();
  // A token that the merges do not make of its own bytes.
  std::optional<std::string> find_unmade();

  Tokenizer build();

 private:
  std::optional<std::string> claim(std::int64_t id, const std::string& token);
  std::optional<Token> find(std::string_view bytes) const;
  std::vector<Token> merged(std::string_view bytes);
  std::string fingerprint() const;

  std::shared_ptr<Tokenizer::Parts> parts_;
  std::unordered_map<std::string, Token> ids_;
  std::vector<bool> used_;
  MergeBuffer buffer_;
};

// GPT-2's way to write bytes as printable characters: tokenizer.json, encoder.json and vocab.bpe hold tokens like this.
std::string to_letters(std::string_view bytes);
// Nothing if a character stands for no byte.
std::optional<std::string> from_letters(std::string_view letters);

// An Error(Fault::data) at a position of a file, such as "gpt2/vocab.bpe:17", if something is wrong.
inline void check_content(const std::string& where, const std::optional<std::string>& wrong) {
  if (wrong) base::refuse_content(where, *wrong);
}
void each_line(std::string_view text, const std::function<void(std::size_t number, std::string_view line)>& each);

// The files that hold a tokenizer; Errors name the file and, where there are lines, the line (tokenizer_json.cc).
Tokenizer read_tokenizer_json(const std::filesystem::path& path);
Tokenizer read_gpt2_files(const std::filesystem::path& encoder, const std::filesystem::path& merges);

}  // namespace cautious::data
