// flock() belongs to the open file, so a killed process leaves no lock behind; the number inside .lock is for messages only.
#include "run/directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <vector>

#include <cautious/error.h>
#include "io/atomic_file.h"
#include "recipe/names.h"
#include "run/append_file.h"

namespace cautious {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path, const std::string& why) {
  throw Error(Fault::failure, fmt::format("out: cannot {} {}: {}", what, in_quotes(path.string()), why));
}

// As a shell takes it.
std::string word(const std::filesystem::path& path) {
  const std::string text = path.string();
  const auto plain = [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) || std::string_view("/._-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return std::ranges::all_of(text, plain) ? text : in_quotes(text);
}

// What is inside, sorted, but for what a killed RunDirectory::create leaves.
std::vector<std::string> names_in(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != ".lock" && !(name.starts_with(".cautious-") && name.ends_with(".tmp"))) names.push_back(name);
  }
  if (error) fail("list the directory", path, error.message());
  std::ranges::sort(names);
  return names;
}

void require_name(const std::filesystem::path& path) {
  if (path.empty()) throw Error(Fault::usage, "out: is empty; expected a directory, as in: cautious train --out runs/a");
}

void require_empty(const std::filesystem::path& path) {
  const auto names = names_in(path);
  if (names.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string some;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    const std::string name = in_quotes(names[i]);
    some += fmt::format("{}{}", i == 0 ? "" : ", ", std::string_view(name).substr(1, name.size() - 2));
  }
  const bool is_run = std::ranges::find(names, "config.toml") != names.end();
  throw Error(Fault::usage,
              fmt::format("out: {} is not empty ({}{}); {}choose another directory", in_quotes(path.string()), some,
                          names.size() > kShown ? ", ..." : "",
                          is_run ? fmt::format("to continue it: cautious train --out {} --resume; or ", word(path)) : ""));
}

std::string holder(int file) {
  std::array<char, 32> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  const std::string number(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const bool sound = !number.empty() && number.back() == '\n' && number.find_first_not_of("0123456789") == number.size() - 1;
  return sound ? "process " + number.substr(0, number.size() - 1) : "another process";
}

// The descriptor that holds the lock.
int lock(const std::filesystem::path& directory) {
  const auto path = directory / ".lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail("open", path, reason(errno));
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    const std::string who = error == EWOULDBLOCK ? holder(file) : "";
    ::close(file);
    if (who.empty()) fail("lock", path, reason(error));
    throw Error(Fault::failure, fmt::format("out: {} is in use by {}; wait for its end or choose another directory",
                                            in_quotes(directory.string()), who));
  }
  const std::string number = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    const int error = errno;
    ::close(file);
    fail("write", path, reason(error));
  }
  return file;
}

}  // namespace

RunDirectory RunDirectory::create(const std::filesystem::path& path, std::string_view config) {
  require_name(path);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail("make the directory", path, error.message());
  require_empty(path);  // before anything is written into someone's folder
  RunDirectory run(path, lock(path));
  require_empty(path);  // another process may have been faster
  io::write_atomically(run.config(), config);
  return run;
}

RunDirectory RunDirectory::open(const std::filesystem::path& path) {
  require_name(path);
  std::error_code error;
  const auto status = std::filesystem::status(path / "config.toml", error);
  if (!std::filesystem::is_regular_file(status)) {
    if (!std::filesystem::status_known(status)) fail("open", path, error.message());
    throw Error(
        Fault::usage,
        fmt::format("out: {} is no run to continue: {}; to begin one: cautious train --out {}", in_quotes(path.string()),
                    std::filesystem::is_directory(path, error) ? "it has no config.toml" : "there is no such directory",
                    word(path)));
  }
  return RunDirectory(path, lock(path));
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

void RunDirectory::log(std::string_view line) const {
  const auto now = fmt::gmtime(std::time(nullptr));
  AppendFile(path_ / "log.txt").append(fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}\n", now, line));
}

}  // namespace cautious
