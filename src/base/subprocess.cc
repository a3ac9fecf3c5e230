// fork() and exec(), with everything that needs memory made ready before the fork. A second pipe, closed by a successful exec,
// brings the reason of a failed one.
#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <cautious/error.h>

namespace cautious::base {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

class File {
 public:
  explicit File(int number) : number_(number) {}
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() { close(); }
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct Pipe {
  File read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(Fault::failure, "cannot make a pipe: " + reason_of(errno));
  return {File(ends[0]), File(ends[1])};
}

File open_output(const std::filesystem::path& path) {
  const char* const name = path.empty() ? "/dev/null" : path.c_str();
  const int number = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (number < 0) throw Error(Fault::failure, fmt::format("{}: cannot write: {}", name, reason_of(errno)));
  return File(number);
}

// The end of what comes, as far as anyone reads it.
std::string read_all(const File& file) {
  constexpr std::size_t kMost = 1 << 16;
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t count = ::read(file.number(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > 2 * kMost) text.erase(0, text.size() - kMost);
  }
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Ours, but with messages in English.
std::vector<std::string> environment() {
  std::vector<std::string> result = {"LC_ALL=C.UTF-8"};
  for (char** word = environ; *word != nullptr; ++word) {
    if (!std::string_view(*word).starts_with("LC_ALL=")) result.emplace_back(*word);
  }
  return result;
}

struct Ready {
  std::vector<char*> words, environment;
  const char* folder;
  int input, output, errors, failure;
  pid_t parent;
};

[[noreturn]] void become(const Ready& ready) {
  // A parent that died before the call leaves nobody to wait for.
  const bool alone = ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && ::getppid() != ready.parent;
  if (!alone && ::dup2(ready.input, 0) >= 0 && ::dup2(ready.output, 1) >= 0 && ::dup2(ready.errors, 2) >= 0 &&
      ::chdir(ready.folder) == 0) {
    ::execvpe(ready.words[0], ready.words.data(), ready.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(ready.failure, &error, sizeof(error));
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(Fault::failure, "cannot wait for a program: " + reason_of(errno));
  }
  return status;
}

bool begins_with_any(std::string_view line, std::initializer_list<std::string_view> beginnings) {
  for (const std::string_view beginning : beginnings) {
    if (line.starts_with(beginning)) return true;
  }
  return false;
}

// apt-get marks errors with "E: ", npm with "npm error " and puts a code and a system call first. Without a marked line the
// last one counts.
std::string own_words(std::string_view text) {
  std::string_view last;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \r") == line.npos) continue;
    last = line;
    for (const std::string_view mark : {"E: ", "npm error ", "npm ERR! "}) {
      if (line.starts_with(mark) && !begins_with_any(line.substr(mark.size()), {"code ", "syscall ", "errno "})) {
        return std::string(line.substr(mark.size()));
      }
    }
  }
  return std::string(last);
}

std::string ending(int status, const std::string& program) {
  if (WIFSIGNALED(status)) return fmt::format("{} was ended by signal {}", program, WTERMSIG(status));
  return fmt::format("{} ended with code {}", program, WEXITSTATUS(status));
}

}  // namespace

Outcome run(const Command& command) {
  std::vector<std::string> words = command.words, variables = environment();
  const std::string& program = command.words.front();
  File input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const File output = open_output(command.output);
  Pipe errors = make_pipe(), failure = make_pipe();
  const Ready ready{pointers(words), pointers(variables),   command.folder.c_str(), input.number(),
                    output.number(), errors.write.number(), failure.write.number(), ::getpid()};
  const pid_t child = ::fork();
  if (child < 0) throw Error(Fault::failure, fmt::format("cannot start {}: {}", program, reason_of(errno)));
  if (child == 0) become(ready);
  errors.write.close();
  failure.write.close();
  int error = 0;
  const bool failed = ::read(failure.read.number(), &error, sizeof(error)) == sizeof(error);
  const std::string said = read_all(errors.read);
  const int status = wait_for(child);
  if (failed && error == ENOENT) return {false, fmt::format("there is no program {}", program)};
  if (failed) return {false, fmt::format("cannot start {}: {}", program, reason_of(error))};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, ""};
  const std::string reason = own_words(said);
  return {false, reason.empty() ? ending(status, program) : reason};
}

}  // namespace cautious::base
