// llama.cpp has two kinds that are ours: "gpt2", merges of bytes inside pieces that a named pattern cuts, and "llama", merges
// of characters chosen by the score of what they make.
#include "data/tokenizer/tokenizer_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer_builder.h"
#include "data/tokenizer/tokenizer_json.h"

namespace cautious::data {
namespace {

// llama.cpp's numbers for kinds of tokens.
constexpr std::int32_t number_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::normal:
      return 1;
    case TokenKind::unknown:
      return 2;
    case TokenKind::special:
      return 3;
    case TokenKind::added:
      return 4;
    case TokenKind::unused:
      return 5;
    case TokenKind::byte:
      return 6;
  }
  return 0;
}

struct NamedPattern {
  std::string pattern, name;
};

// "dbrx" is cl100k_base but for white space with a line break at the end of a text, which it cuts once more.
const std::vector<NamedPattern>& named_patterns() {
  static const std::vector<NamedPattern> all{
      {std::string(kGpt2Pattern), "gpt-2"},   {std::string(kCl100kPattern), "dbrx"},
      {std::string(kO200kPattern), "gpt-4o"}, {std::string(kLlama3Pattern), "llama-bpe"},
      {std::string(kQwen2Pattern), "qwen2"},  {fmt::format("{}\n{}", kDigitPattern, kGpt2Pattern), "smollm"}};
  return all;
}

std::string pattern_name(const TokenizerTables& tables) {
  if (tables.merges.empty()) return "gpt-2";  // pieces make no difference
  for (const NamedPattern& one : named_patterns())
    if (one.pattern == tables.pattern) return one.name;
  throw Error(Fault::data, fmt::format("the tokenizer cuts texts by {}, for which GGUF has no name; it has those of GPT-2, "
                                       "cl100k_base, o200k_base, Llama 3, Qwen 2 and SmolLM",
                                       base::in_quotes(tables.pattern)));
}

// llama.cpp refuses vocabularies in which a text occurs twice.
std::vector<TokenizerTables::Entry> unique_tokens(std::vector<TokenizerTables::Entry> tokens, std::int64_t vocab) {
  tokens.resize(static_cast<std::size_t>(vocab), {"", TokenKind::unused, 0});
  std::set<std::string> texts;
  for (const auto& token : tokens)
    if (token.kind != TokenKind::unused) texts.insert(token.text);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].kind != TokenKind::unused) continue;
    tokens[id].text = fmt::format("[PAD{}]", id);
    while (!texts.insert(tokens[id].text).second) tokens[id].text += "_";
  }
  return tokens;
}

// Reading: the values under tokenizer.ggml.
class GgufTokenizer {
 public:
  explicit GgufTokenizer(const std::filesystem::path& path)
      : file_(path.string()), mapped_(path), header_(base::parse_gguf(mapped_.bytes(), file_)) {
    model_ = text("model", "");
    if (model_ != "llama" && model_ != "gpt2")
      refuse(fmt::format("tokenizer.ggml.model is {}; valid: llama, gpt2", base::in_quotes(model_)));
    texts_ = list<std::string>("tokens");
    kinds_ = list<std::int32_t>("token_type");
    if (kinds_.empty()) kinds_.assign(texts_.size(), number_of(TokenKind::normal));
    if (kinds_.size() != texts_.size()) refuse(fmt::format("{} tokens, but {} kinds of tokens", texts_.size(), kinds_.size()));
  }

  Tokenizer read() {
    if (is_bytes()) return Tokenizer::bytes();
    const bool pieces = model_ == "llama";
    const std::string pre = text("pre", "default");
    TokenizerBuilder builder = pieces ? TokenizerBuilder(flag("add_space_prefix", true) ? SpacePrefix::all : SpacePrefix::none)
                                      : TokenizerBuilder(pattern(pre));
    add_tokens(builder, pieces);
    pieces ? add_scored(builder) : add_merges(builder);
    if (pre == "llama-bpe") builder.keep_whole();
    for (std::size_t id = 0; id < texts_.size(); ++id)
      if (is(id, TokenKind::unknown)) builder.name_unknown(texts_[id]);
    if (flag("add_bos_token", pieces || pre == "llama-bpe"))
      check_content(file_, builder.begin_with(token("bos_token_id", pieces ? 1 : 11)));
    check_content(file_, builder.end_with(token("eos_token_id", pieces ? 2 : 11)));
    return builder.build();
  }

  TokenizerConfig config() const {
    const bool pieces = model_ == "llama";
    TokenizerConfig out{file_, file_, token("bos_token_id", pieces ? 1 : 11), token("eos_token_id", pieces ? 2 : 11), {}, {}};
    if (const base::GgufValue* const found = header_.find("tokenizer.chat_template"))
      if (const auto* const chat = std::get_if<std::string>(found)) out.chat_template = *chat;
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { base::refuse_content(file_, what); }
  bool is(std::size_t id, TokenKind kind) const { return kinds_[id] == number_of(kind); }
  const base::GgufValue* find(const char* key) const { return header_.find(fmt::format("tokenizer.ggml.{}", key)); }

  template <class Value>
  Value value(const char* key, Value usual) const {
    const base::GgufValue* const found = find(key);
    if (found == nullptr) return usual;
    if (!std::holds_alternative<Value>(*found)) refuse(fmt::format("tokenizer.ggml.{} has another type than usual", key));
    return std::get<Value>(*found);
  }
  std::string text(const char* key, const char* usual) const { return value<std::string>(key, usual); }
  bool flag(const char* key, bool usual) const { return value<bool>(key, usual); }

  template <class Item>
  std::vector<Item> list(const char* key) const {
    const auto array = value<base::GgufArray>(key, {std::vector<Item>{}});
    if (!std::holds_alternative<std::vector<Item>>(array.items))
      refuse(fmt::format("tokenizer.ggml.{} has another type than usual", key));
    return std::get<std::vector<Item>>(array.items);
  }

  const std::string& token(const char* key, std::uint32_t usual) const {
    const auto id = value<std::uint32_t>(key, usual);
    if (id >= texts_.size()) refuse(fmt::format("tokenizer.ggml.{} is {}, but there are {} tokens", key, id, texts_.size()));
    return texts_[id];
  }

  // What to_gguf() makes of Tokenizer::bytes().
  bool is_bytes() const {
    if (model_ != "gpt2" || texts_.size() < 256 || !list<std::string>("merges").empty()) return false;
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      const bool byte =
          id < 256 && is(id, TokenKind::normal) && texts_[id] == to_letters(std::string(1, static_cast<char>(id)));
      if (!byte && !(id >= 256 && is(id, TokenKind::unused))) return false;
    }
    return true;
  }

  std::string pattern(const std::string& name) const {
    for (const NamedPattern& one : named_patterns())
      if (one.name == name) return one.pattern;
    refuse(
        fmt::format("tokenizer.ggml.pre is {}; valid: gpt-2, dbrx, gpt-4o, llama-bpe, qwen2, smollm", base::in_quotes(name)));
  }

  void add_tokens(TokenizerBuilder& builder, bool pieces) const {
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      const auto number = static_cast<std::int64_t>(id);
      const std::string where = fmt::format("{}: token {}", file_, id);
      if (is(id, TokenKind::unused)) continue;
      if (is(id, TokenKind::special) || is(id, TokenKind::unknown)) {
        check_content(where, builder.add_special(number, texts_[id]));
      } else if (is(id, TokenKind::added)) {
        check_content(where, builder.add_cut(number, texts_[id]));
      } else {
        const auto bytes = pieces ? std::optional(texts_[id]) : from_letters(texts_[id]);
        if (!bytes) refuse(fmt::format("token {} is not written in GPT-2's letters for bytes", base::in_quotes(texts_[id])));
        check_content(where, builder.add_token(number, *bytes));
      }
    }
    check_content(file_, builder.find_bytes());
  }

  void add_scored(TokenizerBuilder& builder) const {
    const auto scores = list<float>("scores");
    if (scores.size() != texts_.size()) refuse(fmt::format("{} tokens, but {} scores", texts_.size(), scores.size()));
    std::vector<TokenizerBuilder::Scored> pieces;
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (std::isnan(scores[id])) refuse(fmt::format("the score of token {} is not a number", id));
      if (is(id, TokenKind::normal)) pieces.push_back({texts_[id], scores[id]});
    }
    builder.add_merges_by_score(pieces);
  }

  void add_merges(TokenizerBuilder& builder) const {
    for (const std::string& merge : list<std::string>("merges")) {
      const std::size_t space = std::min(merge.find(' ', 1), merge.size());
      const auto left = from_letters(merge.substr(0, space)),
                 right = from_letters(merge.substr(std::min(space + 1, merge.size())));
      if (!left || !right)
        refuse(fmt::format("merge {} is not two texts in GPT-2's letters for bytes", base::in_quotes(merge)));
      check_content(file_, builder.add_merge(*left, *right));
    }
  }

  std::string file_;
  base::MappedFile mapped_;
  base::GgufHeader header_;
  std::string model_;
  std::vector<std::string> texts_;
  std::vector<std::int32_t> kinds_;
};

}  // namespace

base::GgufMetadata to_gguf(const Tokenizer& tokenizer, std::int64_t vocab) {
  if (tokenizer.vocab() > vocab)
    throw Error(Fault::data, fmt::format("the tokenizer has {} tokens, the model only {}", tokenizer.vocab(), vocab));
  TokenizerTables tables = tokenizer.tables();
  const bool pieces = tables.kind == TokenizerKind::sentence_pieces;
  const auto tokens = unique_tokens(std::move(tables.tokens), vocab);
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;
  for (const auto& token : tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    kinds.push_back(number_of(token.kind));
  }
  const auto unknown =
      std::find_if(tokens.begin(), tokens.end(), [](const auto& one) { return one.kind == TokenKind::unknown; });

  base::GgufMetadata out{{"tokenizer.ggml.model", std::string(pieces ? "llama" : "gpt2")}};
  out.emplace_back("tokenizer.ggml.pre", pieces ? std::string("default") : pattern_name(tables));
  out.emplace_back("tokenizer.ggml.tokens", base::GgufArray{texts});
  if (pieces) out.emplace_back("tokenizer.ggml.scores", base::GgufArray{scores});
  out.emplace_back("tokenizer.ggml.token_type", base::GgufArray{kinds});
  if (!pieces) out.emplace_back("tokenizer.ggml.merges", base::GgufArray{tables.merges});
  // Without one of its own, a text begins after the end of another: the same token, which is not put there.
  out.emplace_back("tokenizer.ggml.bos_token_id", tokenizer.beginning().value_or(tokenizer.document_end()));
  out.emplace_back("tokenizer.ggml.eos_token_id", tokenizer.document_end());
  if (unknown != tokens.end())
    out.emplace_back("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(unknown - tokens.begin()));
  out.emplace_back("tokenizer.ggml.add_bos_token", tokenizer.beginning().has_value());
  out.emplace_back("tokenizer.ggml.add_eos_token", false);
  if (pieces) out.emplace_back("tokenizer.ggml.add_space_prefix", tables.prefix_space);
  return out;
}

Tokenizer read_gguf_tokenizer(const std::filesystem::path& path) { return GgufTokenizer(path).read(); }

TokenizerConfig gguf_tokenizer_config(const std::filesystem::path& file) { return GgufTokenizer(file).config(); }

}  // namespace cautious::data
