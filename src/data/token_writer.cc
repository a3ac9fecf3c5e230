// Documents are encoded a batch at a time, so that many small ones keep every thread busy; their order is that of the files.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include <cautious/error.h>
#include "data/documents.h"
#include "data/token_layout.h"
#include "data/tokens.h"
#include "base/atomic_file.h"

namespace cautious::data {
namespace {

constexpr std::size_t kBatch = std::size_t{16} << 20;  // bytes of text

class TokenWriter {
 public:
  TokenWriter(const std::filesystem::path& to, const Tokenizer& tokenizer, int threads)
      : tokenizer_(tokenizer), threads_(threads), file_(to) {
    TokenFileStart start;
    start.vocab = static_cast<std::uint64_t>(tokenizer.vocab());
    start.width = start.vocab <= 1u << 8 ? 1 : start.vocab <= 1u << 16 ? 2 : 4;
    if (tokenizer.fingerprint().size() != start.tokenizer.size())
      throw Error(Fault::usage, fmt::format("a tokenizer's fingerprint has {} digits, not '{}'", start.tokenizer.size(),
                                            tokenizer.fingerprint()));
    std::copy(tokenizer.fingerprint().begin(), tokenizer.fingerprint().end(), start.tokenizer.begin());
    width_ = start.width;
    file_.write(std::as_bytes(std::span(&start, 1)));
    const auto& lengths = tokenizer.lengths();
    single_bytes_ = std::all_of(lengths.begin(), lengths.end(), [](auto length) { return length <= 1; });
  }

  void add(std::string_view document) {
    if (document.size() >= kBatch) {
      flush();
      add_large(document);
      return;
    }
    waiting_bytes_ += document.size();
    waiting_.emplace_back(document);
    if (waiting_bytes_ >= kBatch) flush();
  }

  void finish() {
    flush();
    end_.documents = documents_.size();
    const std::uint64_t bytes = end_.tokens * width_;
    file_.write(std::string(padded(bytes) - bytes, '\0'));
    file_.write(std::as_bytes(std::span(documents_)));
    file_.write(std::as_bytes(std::span(&end_, 1)));
    file_.commit();
  }

 private:
  // A token that is one byte cannot reach over a cut; otherwise only whole documents give the right tokens.
  void add_large(std::string_view document) {
    documents_.push_back(end_.tokens);
    for (const std::size_t step = single_bytes_ ? kBatch : document.size(); !document.empty();) {
      const std::string_view part = document.substr(0, step);
      append(tokenizer_.encode(part, threads_));
      document.remove_prefix(part.size());
    }
    append(std::vector<Token>{tokenizer_.document_end()});
  }

  void flush() {
    std::vector<std::vector<Token>> encoded(waiting_.size());
    encode_all(encoded);
    std::vector<Token> all;
    for (const auto& tokens : encoded) {
      documents_.push_back(end_.tokens + all.size());
      all.insert(all.end(), tokens.begin(), tokens.end());
      all.push_back(tokenizer_.document_end());
    }
    append(all);
    waiting_.clear();
    waiting_bytes_ = 0;
  }

  void encode_all(std::vector<std::vector<Token>>& encoded) const {
    std::atomic<std::size_t> next = 0;
    std::exception_ptr failure;
    std::mutex failing;
    const auto work = [&] {
      try {
        for (std::size_t i = next++; i < waiting_.size(); i = next++) encoded[i] = tokenizer_.encode(waiting_[i]);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> others;
      const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads_, 1)), waiting_.size());
      for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
  }

  void append(const std::vector<Token>& tokens) {
    if (tokens.empty()) return;
    end_.tokens += tokens.size();
    end_.largest = std::max<std::uint64_t>(end_.largest, *std::max_element(tokens.begin(), tokens.end()));
    if (width_ == 1) {
      write_as<std::uint8_t>(tokens);
    } else if (width_ == 2) {
      write_as<std::uint16_t>(tokens);
    } else {
      write_as<std::uint32_t>(tokens);
    }
  }

  template <class Element>
  void write_as(const std::vector<Token>& tokens) {
    std::vector<Element> narrow(tokens.size());
    std::transform(tokens.begin(), tokens.end(), narrow.begin(), [](Token token) { return static_cast<Element>(token); });
    file_.write(std::as_bytes(std::span(narrow)));
  }

  const Tokenizer& tokenizer_;
  int threads_;
  base::AtomicFile file_;
  std::uint64_t width_ = 0;
  bool single_bytes_ = false;
  std::vector<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::uint64_t> documents_;
  TokenFileEnd end_;
};

double size_of(const std::filesystem::path& file) {
  std::error_code none;
  const auto size = std::filesystem::file_size(file, none);
  return none ? 0 : static_cast<double>(size);
}

}  // namespace

void write_tokens(const std::filesystem::path& to, const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                  int threads, const std::function<void(double part)>& progress) {
  if (files.empty()) throw Error(Fault::usage, fmt::format("{}: no text files to make tokens of", to.string()));
  double all = 0, before = 0;
  for (const auto& file : files) all += size_of(file);
  TokenWriter writer(to, tokenizer, threads);
  double told = 0;
  for (const auto& file : files) {
    const double size = size_of(file);
    double within = 0;  // of a compressed file this is more than its size
    each_document(file, [&](std::string_view text) {
      writer.add(text);
      within += static_cast<double>(text.size());
      const double part = (before + std::min(within, size)) / all;
      if (progress && part >= told + 1e-3) progress(told = part);
    });
    before += size;
  }
  writer.finish();
  if (progress && told < 1) progress(1);
}

}  // namespace cautious::data
