// Which file is what; tiktoken's ranks.
#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

struct Published {
  std::string_view name, pattern;
  std::vector<std::pair<Token, std::string>> special;
};

const std::vector<Published>& published() {
  static const std::vector<Published> all = {
      {"r50k_base", kGpt2Pattern, {{50256, std::string(kDocumentEnd)}}},
      {"p50k_base", kGpt2Pattern, {{50256, std::string(kDocumentEnd)}}},
      {"cl100k_base",
       kCl100kPattern,
       {{100257, std::string(kDocumentEnd)},
        {100258, "<|fim_prefix|>"},
        {100259, "<|fim_middle|>"},
        {100260, "<|fim_suffix|>"},
        {100276, "<|endofprompt|>"}}},
      {"o200k_base", kO200kPattern, {{199999, std::string(kDocumentEnd)}, {200018, "<|endofprompt|>"}}}};
  return all;
}

const Published& published_as(const std::filesystem::path& path) {
  const std::string name = path.stem().string();
  std::vector<std::string_view> names;
  for (const Published& known : published()) {
    if (known.name == name) return known;
    names.push_back(known.name);
  }
  base::refuse_content(path.string(),
                       base::unknown("tiktoken ranks", name, names) + "; the file's name decides the split pattern");
}

int six_bits(char c) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto found = digits.find(c);
  return found == digits.npos ? -1 : static_cast<int>(found);
}

// Nothing unless it is complete, padded, and its unused bits are zero.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int value = six_bits(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<unsigned>(value)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

struct Rank {
  std::string bytes;
  Token rank;
};

Rank rank_of_line(std::string_view line, const std::string& where) {
  const std::size_t space = line.find(' ');
  if (space == line.npos)
    base::refuse_content(where, fmt::format("{} is not a line of tiktoken ranks: BASE64 RANK", base::in_quotes(line)));
  const std::string_view digits = line.substr(space + 1);
  auto bytes = from_base64(line.substr(0, space));
  if (!bytes) base::refuse_content(where, fmt::format("{} is not base64", base::in_quotes(line.substr(0, space))));
  const auto rank = base::parsed<Token>(digits);
  if (!rank) base::refuse_content(where, fmt::format("rank {} is not a whole number", base::in_quotes(digits)));
  return {*std::move(bytes), *rank};
}

// Ranks must be dense but for the ids of special tokens: a hole means that lines are missing.
void check_no_hole(const std::vector<bool>& seen, const Published& kind, const std::string& file) {
  for (std::size_t id = 0; id < seen.size(); ++id) {
    const bool special = std::any_of(kind.special.begin(), kind.special.end(), [&](const auto& s) { return s.first == id; });
    if (!seen[id] && !special)
      base::refuse_content(file, fmt::format("no line has rank {}; the largest is {}", id, seen.size() - 1));
  }
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Tokenizer read_tiktoken(const std::filesystem::path& path) {
  const Published& kind = published_as(path);
  const std::string file = path.string();
  TokenizerBuilder builder{std::string(kind.pattern)};
  std::vector<bool> seen;
  const std::string text = base::read_file(path);
  builder.expect(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  for (const auto& [id, name] : kind.special) check_content(file, builder.add_special(id, name));
  each_line(text, [&](std::size_t number, std::string_view line) {
    const std::string where = fmt::format("{}:{}", file, number);
    Rank rank = rank_of_line(line, where);
    check_content(where, builder.add_token(rank.rank, std::move(rank.bytes)));
    if (rank.rank >= seen.size()) seen.resize(rank.rank + 1);
    seen[rank.rank] = true;
  });
  check_no_hole(seen, kind, file);
  check_content(file, builder.find_bytes());
  for (Token id = 0; id < seen.size(); ++id) {
    if (seen[id]) check_content(file, builder.add_merge_for(id));
  }
  return builder.build();
}

}  // namespace

void each_line(std::string_view text, const std::function<void(std::size_t number, std::string_view line)>& each) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    each(number, line);
  }
}

Tokenizer Tokenizer::read(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (is_file(path / "tokenizer.json")) return read_tokenizer_json(path / "tokenizer.json");
    if (is_file(path / "tokenizer.bin")) return read_llama2c_file(path / "tokenizer.bin");
    if (is_file(path / "encoder.json") && is_file(path / "vocab.bpe"))
      return read_gpt2_files(path / "encoder.json", path / "vocab.bpe");
    base::refuse_content(path.string(),
                         "this folder has no tokenizer: no tokenizer.json, no tokenizer.bin, no encoder.json with vocab.bpe");
  }
  if (!std::filesystem::exists(path, ignored))
    base::refuse_content(
        base::in_quotes(path.string()),
        "no such tokenizer; give 'bytes', a tokenizer.json, a tokenizer.bin, a .tiktoken file, or a folder with one; "
        "'cautious data get gpt2-bpe' or '... tiktoken' prints such paths");
  if (path.extension() == ".tiktoken") return read_tiktoken(path);
  if (path.extension() == ".json") return read_tokenizer_json(path);
  if (path.extension() == ".bin") return read_llama2c_file(path);
  if (path.extension() == ".gguf") return read_gguf_tokenizer(path);
  base::refuse_content(
      path.string(),
      "the name does not say what tokenizer it is; valid: a .json, .bin, .gguf or .tiktoken file, or a folder with one");
}

}  // namespace cautious::data
