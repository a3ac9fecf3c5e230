// libFuzzer over configurations of runs: a file or, at a NUL, two, of which the later wins. What is accepted is the same when
// it is printed, whole or only as far as it was set, and read again; and what follows from it can be computed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reader_fuzz.h"
#include "run/config.h"

namespace {

using namespace cautious;

std::optional<run::ReadConfig> read(std::string_view first, std::string_view second) {
  const std::filesystem::path lower = memory_folder() / "lower.toml", upper = memory_folder() / "upper.toml";
  write_bytes(lower, first);
  write_bytes(upper, second);
  try {
    return run::read_layers({.files = {lower, upper}, .preset = "", .overrides = {}});
  } catch (const Error& error) {
    const std::string message = error.what();
    demand(error.fault() == Fault::usage || message.find("file: ") != message.npos);  // no_data.cc
    demand(message.size() < 5000 && message.find('\n') == message.npos);
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\0'), size);
  const auto config = read(text.substr(0, end), text.substr(std::min(end + 1, size)));
  if (!config) return 0;
  const std::string whole = run::to_toml(config->config), open = run::to_toml(config->config, config->set);
  for (const std::string& written : {whole, open}) {
    const auto again = read(written, "");
    demand(again && run::to_toml(again->config) == whole);
  }
  if (config->config.task == run::TaskKind::external) return 0;
  demand(run::steps_of(config->config) > 0 && run::parameters_of(config->config) > 0);
  check(run::schedule_of(config->config));
  demand(run::routing_of(config->config).groups.size() == 3);
  return 0;
}
