// Everything that needs memory is made ready before the fork.
#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <cautious/error.h>

namespace cautious::base {
namespace {

[[noreturn]] void fail(std::string_view what, int error) {
  throw Error(Fault::failure, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> with_ours(const std::vector<std::string>& variables) {
  std::vector<std::string> result = variables;
  for (char** word = environ; *word != nullptr; ++word) {
    const auto same = [&](const std::string& variable) { return name_of(variable) == name_of(*word); };
    if (std::ranges::none_of(variables, same)) result.emplace_back(*word);
  }
  return result;
}

struct Ready {
  std::vector<char*> words, environment;
  std::string complaint;
  int input, log;
  pid_t parent;
};

[[noreturn]] void become(const Ready& ready) {
  ::setpgid(0, 0);
  // A parent that died before the call leaves nobody to work for.
  const bool alone = ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && ::getppid() != ready.parent;
  if (!alone && ::dup2(ready.input, 0) >= 0 && ::dup2(ready.log, 1) >= 0 && ::dup2(ready.log, 2) >= 0) {
    ::execve(ready.words[0], ready.words.data(), ready.environment.data());
  }
  [[maybe_unused]] const ssize_t told = ::write(ready.log, ready.complaint.data(), ready.complaint.size());
  ::_exit(127);
}

int opened(const char* path, int flags) {
  const int file = ::open(path, flags | O_CLOEXEC, 0666);
  if (file < 0) fail(fmt::format("{}: cannot open", path), errno);
  return file;
}

}  // namespace

Process::Process(std::vector<std::string> words, const std::vector<std::string>& environment,
                 const std::filesystem::path& log) {
  std::vector<std::string> variables = with_ours(environment);
  Ready ready{pointers(words), pointers(variables), fmt::format("cannot start {}\n", words.front()), -1, -1, ::getpid()};
  ready.log = opened(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  ready.input = opened("/dev/null", O_RDONLY);
  id_ = ::fork();
  const int error = errno;
  if (id_ == 0) become(ready);
  ::close(ready.input);
  ::close(ready.log);
  if (id_ < 0) fail(fmt::format("cannot start {}", words.front()), error);
}

Process::~Process() {
  if (id_ < 0) return;
  terminate();
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) continue;
}

Process::Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}

std::optional<int> Process::ended() {
  int status = 0;
  const pid_t found = ::waitpid(id_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  if (found < 0) fail("cannot wait for a run", errno);
  id_ = -1;
  return status;
}

void Process::terminate() { ::kill(id_, SIGTERM); }

}  // namespace cautious::base
