// Text as token files, and the cache of these. Documents are encoded a batch at a time, so that many small ones keep every
// thread busy; their order is that of the files.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "data/documents.h"
#include "data/token_layout.h"
#include "data/tokens.h"

namespace cautious::data {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{16} << 20;  // bytes of text

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
    if (const auto first = tokenizer.beginning()) beginning_.push_back(*first);
    file_.write(std::as_bytes(std::span(&start, 1)));
  }

  void add(const Window& window) {
    if (!window.first || !window.last || window.text.size() >= kBatchBytes) return add_large(window);
    waiting_bytes_ += window.text.size();
    waiting_.emplace_back(window.text);
    if (waiting_bytes_ >= kBatchBytes) flush();
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
  void add_large(const Window& window) {
    flush();
    if (window.first) {
      documents_.push_back(end_.tokens);
      append(beginning_);
    }
    append(tokenizer_.encode(window.text, threads_, !window.first));
    if (window.last) append(std::vector<Token>{tokenizer_.document_end()});
  }

  void flush() {
    std::vector<std::vector<Token>> encoded(waiting_.size());
    base::parallel_for(encoded.size(), std::max(threads_, 1),
                       [&](std::size_t i) { encoded[i] = tokenizer_.encode(waiting_[i]); });
    std::vector<Token> all;
    for (const auto& tokens : encoded) {
      documents_.push_back(end_.tokens + all.size());
      all.insert(all.end(), beginning_.begin(), beginning_.end());
      all.insert(all.end(), tokens.begin(), tokens.end());
      all.push_back(tokenizer_.document_end());
    }
    append(all);
    waiting_.clear();
    waiting_bytes_ = 0;
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
  std::vector<Token> beginning_;  // of every document
  int threads_;
  base::AtomicFile file_;
  std::uint64_t width_ = 0;
  std::vector<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::uint64_t> documents_;
  TokenFileEnd end_;
};

double bytes_of(const std::filesystem::path& file) {
  std::error_code none;
  const auto size = std::filesystem::file_size(file, none);
  return none ? 0 : static_cast<double>(size);
}

// The time of change is the inode's too (ctime), which no tool sets back: a file replaced by one of the same size and time of
// modification is still another file.
std::string identity_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw Error(Fault::data, fmt::format("{}: cannot open: {}", file.string(), std::generic_category().message(errno)));
  std::error_code none;
  return fmt::format("{}\n{} {}.{} {}.{}\n", std::filesystem::weakly_canonical(file, none).string(), status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

void make_cache_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (error)
    throw Error(
        Fault::failure,
        fmt::format(
            "{}: cannot keep tokenized text there: {}; set data.cache or XDG_CACHE_HOME to a folder that can be written",
            folder.string(), error.message()));
}

std::shared_ptr<const Tokens> cached(const std::filesystem::path& file, const Tokenizer& tokenizer) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return nullptr;
  try {
    auto tokens = Tokens::open(file);
    return tokens->tokenizer() == tokenizer.fingerprint() ? tokens : nullptr;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) throw;
    return nullptr;  // damaged; it is made again
  }
}

}  // namespace

void write_tokens(const std::filesystem::path& to, const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                  int threads, const std::function<void(double part)>& progress, const DocumentReading& reading) {
  if (files.empty()) throw Error(Fault::usage, fmt::format("{}: no text files to make tokens of", to.string()));
  const bool piped = std::find(files.begin(), files.end(), kStandardInput) != files.end();
  double all = 0, before = 0;
  for (const auto& file : files) all += bytes_of(file);
  TokenWriter writer(to, tokenizer, threads);
  double told = 0;
  for (const auto& file : files) {
    const double size = bytes_of(file);
    double within = 0;  // of a compressed file this is more than its size
    const auto cut = [&](std::string_view text) { return tokenizer.cut(text); };
    each_window(file, reading, cut, [&](const Window& window) {
      writer.add(window);
      within += static_cast<double>(window.text.size());
      const double part = all > 0 ? (before + std::min(within, size)) / all : 0;
      if (progress && (part >= told + 1e-3 || piped)) progress(told = part);
    });
    before += size;
  }
  if (progress && piped) progress(told);  // an interrupt ends a pipe too, which must not look like all of it
  writer.finish();
  if (progress && told < 1) progress(1);
}

std::shared_ptr<const Tokens> tokens_of(const std::vector<std::filesystem::path>& files, const std::string& field,
                                        const Tokenizer& tokenizer, const std::filesystem::path& cache, int threads,
                                        const std::function<void(double part)>& progress) {
  base::Sha256 hash;
  hash.add("cautious tokens 1\n" + tokenizer.fingerprint() + "\n");
  if (field != DocumentReading{}.field) hash.add(fmt::format("field {} {}\n", field.size(), field));
  for (const auto& file : files) hash.add(identity_of(file));
  const auto folder = cache / "tokens";
  const auto file_of_cache = folder / (hash.hex() + ".tokens");
  if (auto tokens = cached(file_of_cache, tokenizer)) return tokens;
  make_cache_folder(folder);
  write_tokens(file_of_cache, files, tokenizer, threads, progress, {.field = field});
  return Tokens::open(file_of_cache);
}

}  // namespace cautious::data
