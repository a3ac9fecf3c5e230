// A file that is cut short, or whose disk fails, while its memory is being read: the system sends SIGBUS. There is no way back,
// but the file can be named. Nothing but system calls is allowed in here.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cli/program.h"

namespace cautious::cli {
namespace {

// Of a line of /proc/self/maps, "7f01a000-7f01b000 r--p 00000000 fe:01 1234    /data/a.tokens", the file's name if the address
// lies in between.
std::string_view file_at(std::string_view line, std::uintptr_t address) {
  std::array<std::uintptr_t, 2> ends{};
  std::size_t at = 0;
  for (std::uintptr_t& end : ends) {
    for (; at < line.size() && line[at] != '-' && line[at] != ' '; ++at) {
      end = end * 16 + static_cast<std::uintptr_t>(line[at] <= '9' ? line[at] - '0' : line[at] - 'a' + 10);
    }
    ++at;
  }
  const std::size_t name = line.find('/', std::min(at, line.size()));
  return address < ends[0] || address >= ends[1] || name == line.npos ? std::string_view() : line.substr(name);
}

void put_on_stderr(std::string_view text) {
  [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void name_lost_file(int signal, siginfo_t* info, void*) {
  static std::array<char, 1 << 14> text;  // longer than any line
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::size_t kept = 0;
  for (ssize_t count = 0; maps >= 0 && (count = ::read(maps, text.data() + kept, text.size() - kept)) > 0;) {
    std::string_view lines(text.data(), kept + static_cast<std::size_t>(count));
    for (std::size_t end; (end = lines.find('\n')) != lines.npos; lines.remove_prefix(end + 1)) {
      const std::string_view file = file_at(lines.substr(0, end), address);
      if (file.empty()) continue;
      put_on_stderr("cautious: ");
      put_on_stderr(file);
      put_on_stderr(": was cut short while it was read, or its disk failed; put it back and run the command again\n");
      ::_exit(code_of(Fault::data));
    }
    kept = lines.size();
    std::memmove(text.data(), lines.data(), kept);
  }
  std::signal(signal, SIG_DFL);  // no file's memory: what caused it comes again, and ends the process
}

}  // namespace

void name_lost_files() {
  struct sigaction action {};
  action.sa_sigaction = name_lost_file;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cautious::cli
