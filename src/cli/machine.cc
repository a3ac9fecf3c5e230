#include "cli/machine.h"

#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace cautious::cli {

std::string machine_line() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown CPU", line;
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  return fmt::format("{}, {} cores, compiler {}", model, std::thread::hardware_concurrency(), __VERSION__);
}

}  // namespace cautious::cli
