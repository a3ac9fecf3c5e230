// Unicode's form NFC, by utf8proc.
#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/utf8_stream.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

struct FreeText {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

std::string composed(std::string_view valid) {
  utf8proc_uint8_t* out = nullptr;
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                 static_cast<utf8proc_ssize_t>(valid.size()), &out, kForm);
  const std::unique_ptr<utf8proc_uint8_t, FreeText> freed(out);
  if (size < 0) throw std::bad_alloc();  // valid UTF-8 fails for no other reason
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(size)};
}

}  // namespace

std::string to_nfc(std::string_view text) {
  // Characters before U+0300, whose UTF-8 begins with 0xcc, neither compose nor decompose.
  if (std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xcc; }))
    return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8(text);
    if (valid > 0) out += composed(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += text[0];
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace cautious::data
