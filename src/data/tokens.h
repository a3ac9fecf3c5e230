// A stream of tokens in a memory-mapped file. Three layouts, told apart by their first bytes and name:
//   ours (.tokens)    a header, u8, u16 or u32 tokens, then the starts of the documents (token_layout.h)
//   llm.c (.bin)      256 int32: 20240520 (GPT-2) or 20240801 (Llama 3), version 1 (u16) or 7 (u32), the number of tokens; then
//                     the tokens
//   nanoGPT (.bin)    u16 tokens and nothing else
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/documents.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

class Tokens {
 public:
  // A size that does not fit the header, an odd number of bytes, an unknown version, an eval file (20240522), no tokens: an
  // Error(Fault::data) with the file, what was found and what was expected.
  static std::shared_ptr<const Tokens> open(const std::filesystem::path& path);

  ~Tokens();
  std::int64_t size() const;
  Token largest() const;  // of all tokens; found by a scan, from 2^31 tokens on from our header
  // A token above largest() is an Error(Fault::data).
  void copy(std::int64_t first, std::span<std::int64_t> out) const;
  std::span<const std::int64_t> documents() const;  // first token of each document, ascending from 0; {0} if not known
  const std::string& tokenizer() const;             // fingerprint; empty if not known
  const std::filesystem::path& path() const;

 private:
  struct Parts;
  explicit Tokens(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Files of text (documents.h) as one of our token files: every document followed by the tokenizer's document_end. The file
// appears complete or not at all. `progress` gets the part done, 0..1.
void write_tokens(const std::filesystem::path& to, const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                  int threads, const std::function<void(double part)>& progress, const DocumentReading& reading = {});

// Tokens of text files from the cache: cache/tokens/HASH.tokens, where HASH is over the tokenizer's fingerprint, the field and
// the files' paths, sizes and times of change. Made if they are not there or damaged; any number of processes may do this at
// once. A cache that cannot be written is an Error(Fault::failure) that names data.cache.
std::shared_ptr<const Tokens> tokens_of(const std::vector<std::filesystem::path>& files, const std::string& field,
                                        const Tokenizer& tokenizer, const std::filesystem::path& cache, int threads,
                                        const std::function<void(double part)>& progress);

}  // namespace cautious::data
