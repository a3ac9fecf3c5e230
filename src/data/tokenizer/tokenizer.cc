// Encoding, decoding and the byte tokenizer. Long texts are cut where the split pattern cuts anyway (split_pattern.h), so any
// number of threads gives the same ids.
#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include <cautious/error.h>
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

constexpr std::size_t kPart = 256 * 1024;  // bytes of text that a thread takes at a time

}  // namespace

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

std::vector<Token> Tokenizer::Parts::encode(std::string_view text) const {
  std::vector<Token> out;
  out.reserve(text.size() / 3);
  auto workplace = take_workplace();
  pattern.each_piece(text, [&](std::string_view piece) {
    if (const auto known = workplace->cache.find(piece); !known.empty()) {
      out.insert(out.end(), known.begin(), known.end());
      return;
    }
    const std::size_t before = out.size();
    merges.apply(piece, bytes, workplace->buffer, out);
    workplace->cache.keep(piece, std::span(out).subspan(before));
  });
  put_back(std::move(workplace));
  return out;
}

std::vector<Token> Tokenizer::encode(std::string_view text, int threads) const {
  if (parts_->plain_bytes) {
    const auto* const first = reinterpret_cast<const unsigned char*>(text.data());
    return {first, first + text.size()};
  }
  if (threads <= 1 || text.size() <= kPart) return parts_->encode(text);
  const std::vector<std::string_view> pieces = parts_->pattern.parts(text, kPart);
  std::vector<std::vector<Token>> tokens(pieces.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) tokens[i] = parts_->encode(pieces[i]);
  };
  const auto helpers = std::min(static_cast<std::size_t>(threads), pieces.size()) - 1;
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < helpers; ++i) running.push_back(std::async(std::launch::async, work));
  work();
  for (auto& helper : running) helper.get();

  std::size_t size = 0;
  for (const auto& some : tokens) size += some.size();
  std::vector<Token> out;
  out.reserve(size);
  for (const auto& some : tokens) out.insert(out.end(), some.begin(), some.end());
  return out;
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
