// Byte-level BPE: text to token ids and back. The byte tokenizer is the one without merges.
// Reads our own tokenizer.json (the Hugging Face layout of a byte-level BPE), tiktoken ranks, and GPT-2's encoder.json +
// vocab.bpe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

using Token = std::uint32_t;

class Tokenizer {
 public:
  // 256 tokens, id = byte value. Byte 0 ends a document.
  static Tokenizer bytes();
  // A tokenizer.json, a .tiktoken file (its name says which split pattern and special tokens: r50k_base, p50k_base,
  // cl100k_base, o200k_base), or a folder with encoder.json and vocab.bpe or with a tokenizer.json. Anything else is an
  // Error(Fault::data).
  static Tokenizer read(const std::filesystem::path& path);
  // "bytes", or a path for read().
  static Tokenizer named(const std::string& name);

  std::int64_t vocab() const;  // ids are in [0, vocab)
  Token document_end() const;  // <|endoftext|>, or byte 0
  // Ids of any bytes: invalid UTF-8 is encoded too, byte by byte where no token fits. The same for any number of threads.
  // Special tokens never come out of text.
  std::vector<Token> encode(std::string_view text, int threads = 1) const;
  // Bytes; special tokens give nothing; an id outside [0, vocab) is an Error(Fault::data).
  std::string decode(std::span<const Token> tokens) const;
  // Bytes that each id stands for, 0 for special tokens and document_end(): for bits per byte.
  const std::vector<std::uint16_t>& lengths() const;
  // SHA-256 over everything that decides what encode() gives; equal tokenizers have equal fingerprints whatever file they came
  // from.
  const std::string& fingerprint() const;
  // The tokenizer.json; read() of it gives the same tokenizer.
  std::string to_json() const;

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts);
  friend class TokenizerBuilder;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace cautious::data
