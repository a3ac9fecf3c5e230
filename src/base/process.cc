// fork() and exec(), with everything that needs memory made ready before the fork. A pipe, closed by a successful exec, brings
// the reason of a failed one.
#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"

namespace cautious::base {
namespace {

constexpr std::string_view kSpeaker = "cautious: ";

std::string reason_of(int error) { return std::generic_category().message(error); }

class File {
 public:
  explicit File(int number) : number_(number) {}
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() { close(); }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
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

File opened(const char* path, int flags) {
  const int number = ::open(path, flags | O_CLOEXEC, 0666);
  if (number < 0) throw Error(Fault::failure, fmt::format("{}: cannot open: {}", path, reason_of(errno)));
  return File(number);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> with_ours(const std::vector<std::string>& variables) {
  std::vector<std::string> result = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto same = [&](const std::string& variable) { return name_of(variable) == name_of(*entry); };
    if (std::ranges::none_of(variables, same)) result.emplace_back(*entry);
  }
  return result;
}

struct Start {
  std::vector<std::string> arguments, environment;
  const char* folder;         // null: this one
  int input, output, errors;  // an input of -1: none
  enum class Group { ours, own } group;
};

struct Ready {
  std::vector<char*> arguments, environment;
  const Start& start;
  int input, failure;
  pid_t parent;
  bool searched;  // on the PATH
};

[[noreturn]] void become(const Ready& ready) {
  const Start& start = ready.start;
  if (start.group == Start::Group::own) ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);  // what this process ignores, others need not
  // A parent that died before the call leaves nobody to work for.
  const bool alone = ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && ::getppid() != ready.parent;
  if (!alone && ::dup2(ready.input, 0) >= 0 && ::dup2(start.output, 1) >= 0 && ::dup2(start.errors, 2) >= 0 &&
      (start.folder == nullptr || ::chdir(start.folder) == 0)) {
    // execvpe() would hand a file that is not a program to the shell.
    (ready.searched ? ::execvpe : ::execve)(ready.arguments[0], ready.arguments.data(), ready.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(ready.failure, &error, sizeof(error));
  ::_exit(127);
}

struct Started {
  pid_t id;
  int error;  // of the exec; 0: it runs
};

Started begin(Start start) {
  const File nothing = opened("/dev/null", O_RDONLY);
  Pipe failure = make_pipe();
  const Ready ready{pointers(start.arguments),
                    pointers(start.environment),
                    start,
                    start.input >= 0 ? start.input : nothing.number(),
                    failure.write.number(),
                    ::getpid(),
                    start.arguments.front().find('/') == std::string::npos};
  Started result{::fork(), 0};
  if (result.id == 0) become(ready);
  if (result.id < 0) {
    throw Error(Fault::failure, fmt::format("cannot start {}: {}", start.arguments.front(), reason_of(errno)));
  }
  failure.write.close();
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(failure.read.number(), &error, sizeof(error))) < 0 && errno == EINTR) continue;
  if (count == sizeof(error)) result.error = error;
  return result;
}

std::string cannot_start(const std::string& program, int error) {
  if (error == ENOENT) return fmt::format("there is no program {}", program);
  return fmt::format("cannot start {}: {}", program, reason_of(error));
}

// The end of what comes, as far as anyone reads it.
std::string read_all(const File& file) {
  constexpr std::size_t kMost = 1 << 16;
  std::string text;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t count = ::read(file.number(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > 2 * kMost) text.erase(0, text.size() - kMost);
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw Error(Fault::failure, "cannot wait for a program: " + reason_of(errno));
  }
  return status;
}

bool begins_with_any(std::string_view line, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return line.starts_with(beginning); });
}

// apt-get marks errors with "E: ", npm with "npm error " and puts a code and a system call first. Without a marked line the
// last one counts.
std::string own_message(std::string_view text) {
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
  const std::string& program = command.arguments.front();
  const File output = opened(command.output.empty() ? "/dev/null" : command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  Pipe errors = make_pipe();
  // Messages in English.
  const Started started = begin({command.arguments, with_ours({"LC_ALL=C.UTF-8"}), command.folder.c_str(), -1, output.number(),
                                 errors.write.number(), Start::Group::ours});
  errors.write.close();
  const std::string said = read_all(errors.read);
  const int status = wait_for(started.id);
  if (started.error != 0) return {false, cannot_start(program, started.error)};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, ""};
  const std::string reason = own_message(said);
  return {false, reason.empty() ? ending(status, program) : reason};
}

void Process::start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                    const std::filesystem::path& log, int input) {
  std::optional<File> file;
  if (!log.empty()) file.emplace(opened(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND));
  const int output = file ? file->number() : STDOUT_FILENO, errors = file ? file->number() : STDERR_FILENO;
  const Started started = begin({arguments, with_ours(environment), nullptr, input, output, errors, Start::Group::own});
  id_ = started.id;
  if (started.error == 0) return;
  const std::string complaint = cannot_start(arguments.front(), started.error) + "\n";
  [[maybe_unused]] const ssize_t told = ::write(errors, complaint.data(), complaint.size());
}

Process::Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                 const std::filesystem::path& log) {
  start(arguments, environment, log, -1);
}

Process::Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                 const std::filesystem::path& log, int& input) {
  Pipe pipe = make_pipe();
  start(arguments, environment, log, pipe.read.number());
  input = pipe.write.release();
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
  if (found < 0) throw Error(Fault::failure, "cannot wait for a program: " + reason_of(errno));
  id_ = -1;
  return status;
}

void Process::terminate() {
  if (id_ > 0) ::kill(-id_, SIGTERM);
}

void Process::kill() {
  if (id_ > 0) ::kill(-id_, SIGKILL);
}

std::string error_line(std::string_view message) { return fmt::format("{}{}\n", kSpeaker, printable(message)); }

std::string last_message(std::string_view said) {
  said = said.substr(0, said.find_last_not_of(" \t\r\n") + 1);
  said.remove_prefix(said.find_last_of("\r\n") + 1);
  if (said.starts_with(kSpeaker)) said.remove_prefix(kSpeaker.size());
  return std::string(said);
}

std::string last_message_in(const std::filesystem::path& log) { return last_message(read_end(log, 4096)); }

}  // namespace cautious::base
