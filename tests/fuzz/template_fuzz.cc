// libFuzzer over chat templates: whatever the text, it is refused in one line or renders, within its bounds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/tokenizer/chat_template.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto chat = read_or_refuse([&] { return data::ChatTemplate::parse(text, "file", {"<s>", std::nullopt}); });
  if (!chat) return 0;
  const auto rendered = read_or_refuse([&] {
    return chat->render({{"system", " be brief\n"}, {"user", "h\xc3\xa9"}, {"assistant", "\xff"}}, true);
  });
  if (text.find('{') == text.npos && text.find('\r') == text.npos && !text.ends_with('\n'))
    demand(rendered == std::string(text));
  return 0;
}
