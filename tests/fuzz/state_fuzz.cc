// libFuzzer over state.json of a checkpoint, of text or, where the input begins with 'i', of images: as it is, and with the sum
// of its own text, which mutations would never find. A state that is read is the same when it is sealed and read again.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/sha256.h"
#include "reader_fuzz.h"
#include "run/saved_state.h"
#include "run/seal.h"

namespace {

using namespace cautious;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kStep = 7, kSteps = 100;

void check(std::string_view text, run::TaskKind task) {
  const std::filesystem::path file = memory_folder() / "state.json";
  const auto read = [&] {
    return read_or_refuse(
        [&] {
          return run::read_state({kStep, memory_folder()}, task, kSteps);
        },
        memory_folder().string(), Fault::data);
  };
  write_bytes(file, text);
  const auto state = read();
  if (!state) return;
  demand(state->step == kStep && state->losses >= 0 && state->last.count >= 0 && state->best_step >= 0);
  const std::string written = run::to_json(*state, task);
  write_bytes(file, run::sealed(written, memory_folder()));
  const auto again = read();
  demand(again && run::to_json(*again, task) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool written = (write_bytes(memory_folder() / "model.safetensors", "weights"), true);
  (void)written;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool images = text.starts_with('i');
  if (images) text.remove_prefix(1);
  const run::TaskKind task = images ? run::TaskKind::image : run::TaskKind::text;
  check(text, task);
  Json json = base::parse_json<Json>(text);
  if (!json.is_object()) return 0;
  json.erase("sha256");
  json["sha256"] = base::sha256_of(json.dump(2) + "\n");
  check(json.dump(2) + "\n", task);
  return 0;
}
