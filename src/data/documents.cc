// Text is checked as a whole before any of it is handed out.
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
#include "base/utf8_stream.h"

namespace cautious::data {
namespace {

// True if all eight bytes are 1..127.
bool plain_ascii(const char* eight) {
  constexpr std::uint64_t kHigh = 0x8080808080808080u, kOnes = 0x0101010101010101u;
  std::uint64_t word = 0;
  std::memcpy(&word, eight, sizeof(word));
  return (word & kHigh) == 0 && ((word - kOnes) & kHigh) == 0;
}

// Position of the first byte that is not UTF-8 text; the size if there is none. A NUL is a sign of a binary file or of UTF-16.
std::size_t first_bad(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (text.size() - i >= 8 && plain_ascii(text.data() + i)) {
      i += 8;
      continue;
    }
    const std::size_t length = text[i] == '\0' ? 0 : base::utf8_character(text.substr(i));
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
  base::refuse_content(
      file, fmt::format("not UTF-8 text: byte 0x{:02x} at byte {}{}; if it is text in another encoding, convert it: {}",
                        static_cast<unsigned char>(text[bad]), bad, compressed ? " of the decompressed text" : "", hint));
}

// The field "text" of a line.
std::string text_of_line(std::string_view line, const std::string& file, std::int64_t number) {
  const auto refuse_line = [&](const std::string& what) {
    base::refuse_content(fmt::format("{}: line {}", file, number), what);
  };
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    refuse_line(fmt::format("not JSON near column {}: {}", error.byte, base::in_quotes(line)));
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

void each_json(std::string_view text, const std::string& file, const std::function<void(std::string_view)>& each) {
  bool any = false;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    each(text_of_line(line, file, number));
    any = true;
  }
  if (!any) base::refuse_content(file, "has no documents, only blank lines");
}

}  // namespace

void each_document(const std::filesystem::path& path, const std::function<void(std::string_view text)>& each) {
  const std::string file = path.string();
  const base::MappedFile mapped(path);
  const std::string suffix = path.extension().string();
  const bool named_gzip = suffix == ".gz" || suffix == ".dz";
  const bool compressed = base::is_gzip(mapped.bytes());
  if (mapped.bytes().empty()) base::refuse_content(file, "is empty");
  if (named_gzip && !compressed) base::refuse_content(file, fmt::format("not a gzip file, though its name ends in {}", suffix));

  std::string content;
  std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  if (compressed) text = content = base::gunzip(mapped.bytes(), file);
  check_text(text, file, compressed);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.empty()) base::refuse_content(file, "is empty");

  const std::string inner = named_gzip ? path.stem().extension().string() : suffix;
  if (inner == ".jsonl" || inner == ".ndjson") {
    each_json(text, file, each);
  } else {
    each(text);
  }
}

}  // namespace cautious::data
