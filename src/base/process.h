// Other programs, started without a shell: run() waits for one, a Process runs next to this one. Either is told to end
// (SIGTERM) when this process dies.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::base {

struct Command {
  std::vector<std::string> arguments;  // the program, a path or a name on the PATH, and its arguments
  std::filesystem::path folder;        // where it runs
  std::filesystem::path output;        // gets its standard output; empty: discarded
};

struct Outcome {
  bool done = false;   // it ran and ended with 0
  std::string reason;  // otherwise: its own error message, or why it could not start
};

// An output that cannot be written is an Error(Fault::failure).
Outcome run(const Command& command);

// Its output and errors go to a log, or where this process's own go. It is in a process group of its own, so that Ctrl-C in the
// terminal reaches this process alone.
class Process {
 public:
  // `environment`: "NAME=value", before this process's own. An empty log: none. One that cannot be written and a system without
  // room for another process are an Error(Fault::failure); a program that cannot be executed ends with 127, and the log says
  // why.
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          const std::filesystem::path& log);
  // With a standard input: `input` becomes the descriptor to write to, the caller's to close.
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
          const std::filesystem::path& log, int& input);
  ~Process();  // SIGTERM, then waits
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  // The status of waitpid(), once it has ended.
  std::optional<int> ended();
  void terminate();  // SIGTERM, as to what it has started itself
  void kill();       // SIGKILL likewise: it writes nothing more

 private:
  void start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
             const std::filesystem::path& log, int input);
  pid_t id_ = -1;  // -1: it has been waited for
};

// The line on standard error with which our programs end when something is wrong: "cautious: <message>\n".
std::string error_line(std::string_view message);
// The message in the last line that is not blank, of what one of our programs or any other said.
std::string last_message(std::string_view said);
// The same of a log; at most 4096 bytes.
std::string last_message_in(const std::filesystem::path& log);

}  // namespace cautious::base
