// What a tokenizer consists of: its merges, the cache of pieces; and putting one together, whatever file it comes from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/sentence_pieces.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

inline constexpr std::string_view kDocumentEnd = "<|endoftext|>";
// Beyond any published vocabulary; an id is an index into tables of this size.
inline constexpr std::int64_t kMostTokens = 10'000'000;

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

// A token that is not made by merges: it stands for its name, whole.
struct AddedToken {
  Token id;
  std::string name;
  bool special;  // stands for nothing in a text; others are cut out of it before anything else
};

// Names to look for in a text.
class Marks {
 public:
  struct Found {
    std::size_t at, size;
    Token id;
  };
  void add(const AddedToken& token);
  // The leftmost, the longest of those that begin there.
  std::optional<Found> find(std::string_view text) const;
  std::size_t longest() const { return longest_; }  // bytes of a name

 private:
  std::array<std::vector<std::pair<std::string, Token>>, 256> by_first_byte_;  // longest first
  bool empty_ = true;
  std::size_t longest_ = 0;
};

// What one thread needs while it encodes.
struct Workplace {
  MergeBuffer buffer;
  PieceCache cache;
};

// What lies between two added tokens, or some of it; or an added token.
struct Stretch {
  std::string_view text;
  std::optional<Token> added = std::nullopt;
  bool prefixed = false;  // a space belongs before it
};

struct Tokenizer::Parts {
  explicit Parts(std::string pattern_text) : pattern(std::move(pattern_text)) {}

  SplitPattern pattern;                  // of a byte-level BPE
  std::optional<SentencePieces> pieces;  // otherwise
  bool composed = false;                 // text is brought into Unicode's form NFC first
  std::vector<std::string> tokens;       // what each id stands for in a text: nothing for special and unused ids
  std::vector<AddedToken> added;         // by id
  Marks cut, marked;                     // those of `added` that are not special; all of them
  std::array<Token, 256> bytes{};        // id of each byte
  Merges merges;
  std::unordered_map<std::string, Token> whole;  // pieces that are a token although the merges do not make it
  std::optional<Token> unknown;                  // by name; nothing becomes it
  bool plain_bytes = false;                      // id = byte and nothing else
  Token document_end = 0;
  std::optional<Token> beginning;
  std::vector<std::uint16_t> lengths;
  std::string fingerprint;

  std::vector<Token> encode(std::string_view text, const Marks& marks, int threads, bool continued) const;
  std::size_t part_end(std::string_view text, std::size_t size) const;
  // The tokens of a piece before any merge.
  void begin(std::string_view piece, MergeBuffer& buffer) const;
  // tables(), but for the scores.
  TokenizerTables written() const;

 private:
  std::vector<Stretch> stretches(std::string_view text, const Marks& marks, std::size_t size, bool continued) const;
  void encode(const Stretch& stretch, std::vector<Token>& out) const;
  void encode(std::string_view piece, Workplace& workplace, std::vector<Token>& out) const;
  std::unique_ptr<Workplace> take_workplace() const;
  void put_back(std::unique_ptr<Workplace> workplace) const;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> free_;
};

// The adding functions return what is wrong with what they were given, for a message that says where it is. A token is given
// as its bytes or, of sentence pieces, as they are written: with U+2581 for a space, and bytes as <0x0A>.
class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(std::string pattern);
  explicit TokenizerBuilder(SpacePrefix prefix);

  // How many tokens a file lists: ids far beyond are refused, or a small file could ask for much memory.
  void expect(std::size_t tokens);
  std::optional<std::string> add_token(std::int64_t id, std::string text);
  std::optional<std::string> add_special(std::int64_t id, std::string name);
  // An added token that is not special; cut_out() makes one of a token that merges may make too.
  std::optional<std::string> add_cut(std::int64_t id, std::string name);
  void cut_out(Token id, std::string name);
  std::optional<std::string> add_merge(std::string_view left, std::string_view right);
  // The merge that the ones before imply for a token: those leave exactly two parts of it.
  std::optional<std::string> add_merge_for(Token id);
  // All that make the token of this text out of two others.
  std::vector<Merge> merges_for(std::string_view text) const;
  void add_merge(const Merge& merge) { parts_->merges.add(merge); }
  // All that make one of these, by its score, then by ids, as transformers writes such a tokenizer.
  struct Scored {
    std::string text;
    float score;
  };
  void add_merges_by_score(std::span<const Scored> tokens);
  // Before any merge is applied, and after all tokens: a byte, or the space, without a token.
  std::optional<std::string> find_bytes();
  // Pieces that are a token become it, also where the merges do not make it (ignore_merges).
  void keep_whole();
  // A token of sentence pieces that merges make and that has a space behind something else.
  std::optional<std::string> find_inner_space() const;

  void compose() { parts_->composed = true; }
  void name_unknown(std::string_view name);
  std::optional<std::string> begin_with(std::string_view name);
  std::optional<std::string> end_with(std::string_view name);
  // No token ends a text: none was named, and no added token has a name that is known for it.
  std::optional<std::string> find_no_end() const;

  Tokenizer build();

 private:
  std::optional<std::string> claim(std::int64_t id, const std::string& token);
  std::optional<Token> find(std::string_view text) const;
  std::optional<Token> find_added(std::string_view name) const;
  std::vector<Token> merged(std::string_view bytes);
  std::string fingerprint() const;

  std::shared_ptr<Tokenizer::Parts> parts_;
  std::unordered_map<std::string, Token> ids_;
  std::vector<bool> used_;
  std::int64_t most_ = kMostTokens;
  std::optional<Token> end_;
  MergeBuffer buffer_;
};

// The added token whose name is known to end documents: <|endoftext|>, </s> and the like; nullptr if none has.
const AddedToken* known_end(const std::vector<AddedToken>& added);

// GPT-2's way to write bytes as printable characters: tokenizer.json, encoder.json and vocab.bpe hold tokens like this.
std::string to_letters(std::string_view bytes);
// Nothing if a character stands for no byte.
std::optional<std::string> from_letters(std::string_view letters);

// Unicode's form NFC of what is UTF-8, the rest as it is (normal_form.cc).
std::string to_nfc(std::string_view text);

// An Error(Fault::data) at a position of a file, such as "gpt2/vocab.bpe:17", if something is wrong.
inline void check_content(const std::string& where, const std::optional<std::string>& wrong) {
  if (wrong) base::refuse_content(where, *wrong);
}
void each_line(std::string_view text, const std::function<void(std::size_t number, std::string_view line)>& each);

// The files that hold a tokenizer; Errors name the file and, where there are lines, the line.
Tokenizer read_tokenizer_json(const std::filesystem::path& path);  // with the tokenizer_config.json beside a tokenizer.json
Tokenizer read_gpt2_files(const std::filesystem::path& encoder, const std::filesystem::path& merges);
Tokenizer read_llama2c_file(const std::filesystem::path& path);
Tokenizer read_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace cautious::data
