// libFuzzer over decay_trace.bin: what is read can be repeated by a control, and is no more than the file holds.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reader_fuzz.h"
#include "run/decay_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const std::filesystem::path file = memory_folder() / run::kDecayTrace;
  write_bytes(file, {reinterpret_cast<const char*>(data), size});
  const auto trace = read_or_refuse([&] { return run::DecayTrace::read(memory_folder()); }, file.string());
  if (!trace) return 0;
  const std::size_t tensors = trace->tensors().size();
  demand(static_cast<std::size_t>(trace->steps()) * tensors <= size / 12);
  for (std::int64_t step = 1; step <= trace->steps(); ++step) {
    for (std::size_t i = 0; i < tensors; ++i) {
      demand(trace->density(step, i) >= 0 && trace->density(step, i) <= 1);
      demand(trace->budget(step, i) >= 0 && std::isfinite(trace->budget(step, i)));
    }
  }
  return 0;
}
