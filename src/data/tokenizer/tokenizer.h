// BPE: text to token ids and back, of bytes (byte_level) or of characters with bytes for the rest (sentence_pieces). The byte
// tokenizer is the one without merges. Reads tokenizer.json (the Hugging Face layout; GPT-2, Llama, Mistral, Qwen, SmolLM,
// OLMo, Gemma), llama2.c's tokenizer.bin, tiktoken ranks, and GPT-2's encoder.json + vocab.bpe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

using Token = std::uint32_t;

enum class TokenizerKind { byte_level, sentence_pieces };
// added: cut out of text whole, before anything else; special: never comes out of text.
enum class TokenKind { normal, unknown, special, byte, unused, added };

// byte_level: texts in GPT-2's letters for bytes, merges in order. sentence_pieces: texts with U+2581 for a space, bytes as
// <0x0A>; scores where merges are chosen by the score of what they make.
struct TokenizerTables {
  struct Entry {
    std::string text;
    TokenKind kind;
    float score;
  };
  TokenizerKind kind;
  std::vector<Entry> tokens;        // by id
  std::vector<std::string> merges;  // "left right"
  std::string pattern;              // of splits, of byte_level; several lines split one within the other
  bool prefix_space = false;        // of sentence_pieces: a space is put before a text
};

class Tokenizer {
 public:
  // 256 tokens, id = byte value. Byte 0 ends a document.
  static Tokenizer bytes();
  // A tokenizer.json, with the tokenizer_config.json beside it, a tokenizer.bin, a .tiktoken file (its name says which split
  // pattern and special tokens: r50k_base, p50k_base, cl100k_base, o200k_base), or a folder with one of the first two or with
  // encoder.json and vocab.bpe. Anything else is an Error(Fault::data).
  static Tokenizer read(const std::filesystem::path& path);
  // "bytes", or a path for read().
  static Tokenizer named(const std::string& name);

  std::int64_t vocab() const;  // ids are in [0, vocab)
  Token document_end() const;  // tokenizer_config.json's eos_token; or <|endoftext|>, </s> and the like; or byte 0
  // Ids of any bytes: invalid UTF-8 is encoded too, byte by byte where no token fits. The same for any number of threads.
  // Special tokens never come out of text; added tokens that are not special are cut out of it first. Sentence pieces may put a
  // space before a text, so two halves encoded apart are not the whole.
  // `continued`: what comes before the text was a beginning by cut().
  std::vector<Token> encode(std::string_view text, int threads = 1, bool continued = false) const;
  // How many of its first bytes can be encoded apart from the rest and from all that may follow the text; 0 if it has no such
  // place, as where merges may see a whole text.
  std::size_t cut(std::string_view text) const;
  // Bytes; special tokens give nothing; an id outside [0, vocab) is an Error(Fault::data). Token by token or all at once is the
  // same: the space that sentence pieces put before a text stays.
  std::string decode(std::span<const Token> tokens) const;
  // Bytes that each id stands for, 0 for special tokens and document_end(): for bits per byte.
  const std::vector<std::uint16_t>& lengths() const;
  // SHA-256 over everything that decides what encode() gives; equal tokenizers have equal fingerprints whatever file they came
  // from.
  const std::string& fingerprint() const;
  // The tokenizer.json; read() of it gives the same tokenizer.
  std::string to_json() const;

  // The token that begins every text of the model (<s> of Llama); none where texts begin without.
  std::optional<Token> beginning() const;
  // The id of a special or other added token; none if there is no such one.
  std::optional<Token> special(std::string_view name) const;
  // encode(), but names of special tokens in the text become their ids: what a chat template's output needs.
  std::vector<Token> encode_marked(std::string_view text) const;
  // Everything another format has to write down of it. Sentence pieces whose merges scores cannot express are an
  // Error(Fault::data).
  TokenizerTables tables() const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts);
  friend class TokenizerBuilder;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace cautious::data
