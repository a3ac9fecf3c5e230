// libFuzzer over token files: ours where the input begins as one, else a shard of llm.c or nanoGPT. Opening one proves that
// every access stays inside it and that no token is above the largest.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokens.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::filesystem::path file = memory_folder() / (bytes.starts_with("CAUTOKEN") ? "file.tokens" : "file.bin");
  write_bytes(file, bytes);
  const auto opened = read_or_refuse([&] { return data::Tokens::open(file); }, file.string());
  if (!opened) return 0;
  const data::Tokens& tokens = **opened;
  demand(tokens.size() > 0 && static_cast<std::size_t>(tokens.size()) <= size);
  std::vector<std::int64_t> all(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, all);
  std::int64_t largest = 0;
  for (const std::int64_t token : all) largest = std::max(largest, token);
  demand(largest == tokens.largest());
  demand(!tokens.documents().empty() && tokens.documents().front() == 0);
  std::int64_t before = -1;
  for (const std::int64_t start : tokens.documents()) {
    demand(start > before && start < tokens.size());
    before = start;
  }
  return 0;
}
