// Putting a tokenizer together, whatever file it comes from, and what it then consists of.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/bpe_merge.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

inline constexpr std::string_view kDocumentEnd = "<|endoftext|>";
// Beyond any published vocabulary; an id is an index into tables of this size.
inline constexpr std::int64_t kMostTokens = 10'000'000;

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

// The adding functions return what is wrong with what they were given, for a message that says where it stood.
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

}  // namespace cautious::data
