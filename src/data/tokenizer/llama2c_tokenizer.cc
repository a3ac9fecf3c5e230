// llama2.c's tokenizer.bin: the length of the longest token, then per token its score, its length and its bytes, with spaces as
// themselves; numbers are 32 bits, little end first. Tokens 0, 1 and 2 are <unk>, <s> and </s>, then come the 256 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

constexpr unsigned kFirstByte = 3, kFirstPiece = kFirstByte + 256;
constexpr std::array<std::string_view, kFirstByte> kControl{"<unk>", "<s>", "</s>"};

struct ScoredToken {
  float score;
  std::string text;
};

class Llama2cFile {
 public:
  explicit Llama2cFile(const std::filesystem::path& path)
      : file_(path.string()), bytes_(base::read_file(path)), rest_(bytes_) {}

  std::vector<ScoredToken> tokens() {
    const std::uint32_t longest = number();
    std::vector<ScoredToken> out;
    while (!rest_.empty()) {
      token_ = out.size();
      const auto score = std::bit_cast<float>(number());
      const std::uint32_t size = number();
      if (std::isnan(score)) refuse("has no number as its score");
      if (size == 0 || size > longest || size > rest_.size())
        refuse(fmt::format("has {} bytes; valid: [1, {}], and {} are left in the file", size, longest, rest_.size()));
      out.push_back({score, std::string(rest_.substr(0, size))});
      rest_.remove_prefix(size);
    }
    return out;
  }

 private:
  std::uint32_t number() {
    if (rest_.size() < 4) refuse("is cut off: the file ends within it");
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < 4; ++i) out |= std::uint32_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(4);
    return out;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    base::refuse_content(file_, fmt::format("token {} {}", token_, what));
  }

  std::string file_, bytes_;
  std::string_view rest_;
  std::size_t token_ = 0;
};

// llama2.c writes "\n<s>\n" for the second, and wrote bytes as the characters of these numbers once.
bool is_named(const std::string& text, const std::string& name, unsigned byte) {
  const std::string character = byte < 0x80
                                    ? std::string(1, static_cast<char>(byte))
                                    : std::string{static_cast<char>(0xc0 | byte >> 6), static_cast<char>(0x80 | (byte & 0x3f))};
  return text == name || text == "\n" + name + "\n" || (name.starts_with("<0x") && text == character);
}

void add_control(TokenizerBuilder& builder, const std::vector<ScoredToken>& tokens, const std::string& file) {
  if (tokens.size() < kFirstPiece)
    base::refuse_content(file, fmt::format("{} tokens; a tokenizer.bin has at least {}", tokens.size(), kFirstPiece));
  for (unsigned id = 0; id < kFirstPiece; ++id) {
    const unsigned byte = id < kFirstByte ? 0 : id - kFirstByte;
    const std::string name = id < kFirstByte ? std::string(kControl[id]) : name_of_byte(byte);
    if (!is_named(tokens[id].text, name, byte)) {
      base::refuse_content(file, fmt::format("token {} is {} instead of {}; not a tokenizer.bin of llama2.c", id,
                                             base::in_quotes(tokens[id].text), name));
    }
    check_content(file, id < kFirstByte ? builder.add_special(id, name) : builder.add_token(id, name));
  }
}

}  // namespace

// Llama's runs of spaces have one score. llama2.c and sentencepiece take the leftmost of equal scores, which came to the same
// on all text tried.
Tokenizer read_llama2c_file(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::vector<ScoredToken> tokens = Llama2cFile(path).tokens();
  TokenizerBuilder builder{SpacePrefix::all};
  add_control(builder, tokens, file);
  for (std::size_t id = kFirstPiece; id < tokens.size(); ++id)
    check_content(file, builder.add_token(static_cast<std::int64_t>(id), with_marks(tokens[id].text)));
  check_content(file, builder.find_bytes());
  std::vector<TokenizerBuilder::Scored> pieces;
  for (std::size_t id = kFirstPiece; id < tokens.size(); ++id)
    pieces.push_back({with_marks(tokens[id].text), tokens[id].score});
  builder.add_merges_by_score(pieces);
  builder.name_unknown(kControl[0]);
  check_content(file, builder.begin_with(kControl[1]));
  check_content(file, builder.end_with(kControl[2]));
  return builder.build();
}

}  // namespace cautious::data
