// A program that runs beside this one, with what it says in a file. It is in a process group of its own, so that Ctrl-C in the
// terminal reaches this process alone, and is told to end (SIGTERM) when this process dies.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cautious::base {

class Process {
 public:
  // `words`: the program's path and its arguments. `environment`: "NAME=value", before this process's own. A log that cannot be
  // written or no room for a process is an Error(Fault::failure); a program that cannot be executed ends with 127 and says so.
  Process(std::vector<std::string> words, const std::vector<std::string>& environment, const std::filesystem::path& log);
  ~Process();  // SIGTERM, then waits
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  // As of waitpid(), once it has ended.
  std::optional<int> ended();
  void terminate();

 private:
  pid_t id_ = -1;  // -1: it has been waited for
};

}  // namespace cautious::base
