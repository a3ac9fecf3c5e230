#include "data/token_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include <cautious/error.h>
#include "base/sha256.h"

namespace cautious::data {
namespace {

// The time of change is the inode's too (ctime), which no tool sets back: a file replaced by one of the same size and time of
// modification is still another file.
std::string identity(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    throw Error(Fault::data, fmt::format("{}: cannot open: {}", file.string(), std::generic_category().message(errno)));
  std::error_code none;
  return fmt::format("{}\n{} {}.{} {}.{}\n", std::filesystem::weakly_canonical(file, none).string(), status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

void make_folder(const std::filesystem::path& folder) {
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

std::shared_ptr<const Tokens> tokens_of(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                                        const std::filesystem::path& cache, int threads,
                                        const std::function<void(double part)>& progress) {
  base::Sha256 hash;
  hash.add("cautious tokens 1\n" + tokenizer.fingerprint() + "\n");
  for (const auto& file : files) hash.add(identity(file));
  const auto folder = cache / "tokens";
  const auto place = folder / (hash.hex() + ".tokens");
  if (auto tokens = cached(place, tokenizer)) return tokens;
  make_folder(folder);
  write_tokens(place, files, tokenizer, threads, progress);
  return Tokens::open(place);
}

}  // namespace cautious::data
