#include "data/documents.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include <cautious/error.h>
#include "base/files.h"
#include "base/gzip.h"
#include "base/text.h"

namespace cautious::data {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", file, what));
}

// Bytes of the character at the front, by the table of well-formed sequences (Unicode 15, table 3-7); 0 if it is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool overlong = lead == 0xe0 && second < 0xa0, surrogate = lead == 0xed && second > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool overlong = lead == 0xf0 && second < 0x90, beyond = lead == 0xf4 && second > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

// True if all eight bytes are 1..127.
bool plain(const char* eight) {
  constexpr std::uint64_t kHigh = 0x8080808080808080u, kOnes = 0x0101010101010101u;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof(word));
  return (word & kHigh) == 0 && ((word - kOnes) & kHigh) == 0;
}

// Place of the first byte that is no UTF-8 text; the size if there is none. A NUL is a sign of a binary file or of UTF-16.
std::size_t first_bad(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (text.size() - i >= 8 && plain(text.data() + i)) {
      i += 8;
      continue;
    }
    const std::size_t length = text[i] == '\0' ? 0 : character(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return text.size();
}

void check_text(std::string_view text, const std::string& file, bool compressed) {
  const std::size_t bad = first_bad(text);
  if (bad == text.size()) return;
  const std::string hint =
      compressed ? fmt::format("zcat {} | iconv -f LATIN1 -t UTF-8", file) : fmt::format("iconv -f LATIN1 -t UTF-8 {}", file);
  refuse(file, fmt::format("not UTF-8 text: byte 0x{:02x} at byte {}{}; if it is text in another encoding, convert it: {}",
                           static_cast<unsigned char>(text[bad]), bad, compressed ? " of the decompressed text" : "", hint));
}

// The field "text" of a line.
std::string text_of(std::string_view line, const std::string& file, std::int64_t number) {
  const auto refuse_line = [&](const std::string& what) { refuse(file, fmt::format("line {}: {}", number, what)); };
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    refuse_line(fmt::format("no JSON, wrong near column {}: {}", error.byte, base::in_quotes(line)));
  }
  if (!object.is_object()) refuse_line(fmt::format("a JSON {}, not an object with a string \"text\"", object.type_name()));
  const auto text = object.find("text");
  if (text == object.end()) {
    std::string fields;
    for (const auto& item : object.items())
      fields += fmt::format("{}{}", fields.empty() ? "" : ", ", base::in_quotes(item.key()));
    refuse_line(fmt::format("no field 'text'; fields: {}", fields.empty() ? "none" : fields));
  }
  if (!text->is_string()) refuse_line(fmt::format("field 'text' is of type {}, not a string", text->type_name()));
  return std::move(text->get_ref<std::string&>());
}

void each_line(std::string_view text, const std::string& file, const std::function<void(std::string_view)>& each) {
  bool any = false;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    each(text_of(line, file, number));
    any = true;
  }
  if (!any) refuse(file, "has no documents, only blank lines");
}

}  // namespace

void each_document(const std::filesystem::path& path, const std::function<void(std::string_view text)>& each) {
  const std::string file = path.string();
  const base::MappedFile mapped(path);
  const std::string suffix = path.extension().string();
  const bool named_gzip = suffix == ".gz" || suffix == ".dz";
  const bool compressed = base::is_gzip(mapped.bytes());
  if (mapped.bytes().empty()) refuse(file, "is empty");
  if (named_gzip && !compressed) refuse(file, fmt::format("no gzip file, though its name ends in {}", suffix));

  std::string content;
  std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  if (compressed) text = content = base::gunzip(mapped.bytes(), file);
  check_text(text, file, compressed);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.empty()) refuse(file, "is empty");

  const std::string inner = named_gzip ? path.stem().extension().string() : suffix;
  if (inner == ".jsonl" || inner == ".ndjson") {
    each_line(text, file, each);
  } else {
    each(text);
  }
}

}  // namespace cautious::data
