// What the build and /proc say.
#include "run/provenance.h"

#include <fstream>
#include <thread>

#include "git_hash.h"

namespace cautious::run {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::string compiler_name() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

Provenance provenance() {
  return {CAUTIOUS_VERSION, CAUTIOUS_GIT, compiler_name(), cpu_name(), static_cast<int>(std::thread::hardware_concurrency())};
}

}  // namespace cautious::run
