// libFuzzer over Parquet files: any bytes give texts that are UTF-8, or one line of refusal.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/files.h"
#include "data/parquet/parquet.h"
#include "data/tokenizer/split_pattern.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  constexpr std::size_t kEnough = std::size_t{1} << 20;  // a run of one text may be as long as the file says
  const data::RandomAccess bytes{size, [&](std::uint64_t at, std::span<char> to) {
                                   demand(at <= size && to.size() <= size - at);
                                   if (!to.empty()) std::memcpy(to.data(), data + at, to.size());
                                 }};
  (void)read_or_refuse([&] {
    std::size_t read = 0;
    data::each_parquet_text(bytes, "file", "text", [&](std::string_view text) {
      demand(data::valid_utf8(text) == text.size());
      read += text.size() + 1;
      if (read > kEnough) base::refuse_content("file", "more than enough");
    });
    return read;
  });
  return 0;
}
