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

bool is_gzip_name(const std::filesystem::path& path) { return path.extension() == ".gz" || path.extension() == ".dz"; }

// The end of its name, before .gz: ".jsonl".
std::string inner_suffix(const std::filesystem::path& path) {
  return (is_gzip_name(path) ? path.stem() : path).extension().string();
}

// The file's text, decompressed and checked. The view is of the file or of `content`.
struct OpenText {
  explicit OpenText(const std::filesystem::path& path) : mapped(path) {
    const std::string file = path.string(), suffix = path.extension().string();
    const bool compressed = base::is_gzip(mapped.bytes());
    if (mapped.bytes().empty()) base::refuse_content(file, "is empty");
    if (is_gzip_name(path) && !compressed) {
      base::refuse_content(file, fmt::format("not a gzip file, though its name ends in {}", suffix));
    }
    text = {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
    if (compressed) text = content = base::gunzip(mapped.bytes(), file);
    check_text(text, file, compressed);
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    if (text.empty()) base::refuse_content(file, "is empty");
  }
  OpenText(const OpenText&) = delete;
  OpenText& operator=(const OpenText&) = delete;

  base::MappedFile mapped;
  std::string content;
  std::string_view text;
};

nlohmann::json object_of_line(std::string_view line, const std::string& where) {
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    base::refuse_content(where, fmt::format("not JSON near column {}: {}", error.byte, base::in_quotes(line)));
  }
  if (!object.is_object()) base::refuse_content(where, fmt::format("a JSON {}, not an object", object.type_name()));
  return object;
}

using EachObject = std::function<void(const nlohmann::json& object, const std::string& where)>;

void each_line(std::string_view text, const std::string& file, const EachObject& each) {
  bool any = false;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = fmt::format("{}: line {}", file, number);
    each(object_of_line(line, where), where);
    any = true;
  }
  if (!any) base::refuse_content(file, "has no documents, only blank lines");
}

void each_entry(std::string_view text, const std::string& file, const EachObject& each) {
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    base::refuse_content(file, fmt::format("not JSON near byte {}", error.byte));
  }
  if (!list.is_array() || list.empty()) base::refuse_content(file, "not a list of JSON objects");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: entry {}", file, i + 1);
    if (!list[i].is_object()) base::refuse_content(where, fmt::format("a JSON {}, not an object", list[i].type_name()));
    each(list[i], where);
  }
}

}  // namespace

const nlohmann::json& field_of(const nlohmann::json& object, const char* name, const std::string& where) {
  const auto field = object.find(name);
  if (field != object.end()) return *field;
  std::string fields;
  for (const auto& item : object.items()) {
    fields += fmt::format("{}{}", fields.empty() ? "" : ", ", base::in_quotes(item.key()));
  }
  base::refuse_content(where, fmt::format("no field '{}'; fields: {}", name, fields.empty() ? "none" : fields));
}

const std::string& text_of(const nlohmann::json& object, const char* name, const std::string& where) {
  const nlohmann::json& field = field_of(object, name, where);
  if (field.is_string()) return field.get_ref<const std::string&>();
  base::refuse_content(where, fmt::format("field '{}' is of type {}, not a string", name, field.type_name()));
}

bool has_objects(const std::filesystem::path& file) {
  const std::string suffix = inner_suffix(file);
  return suffix == ".json" || suffix == ".jsonl" || suffix == ".ndjson";
}

void each_object(const std::filesystem::path& file, const EachObject& each) {
  const OpenText open(file);
  (inner_suffix(file) == ".json" ? each_entry : each_line)(open.text, file.string(), each);
}

void each_document(const std::filesystem::path& path, const std::function<void(std::string_view text)>& each) {
  const std::string suffix = inner_suffix(path);
  if (suffix == ".jsonl" || suffix == ".ndjson") {
    each_object(path, [&](const nlohmann::json& object, const std::string& where) { each(text_of(object, "text", where)); });
  } else {
    each(OpenText(path).text);
  }
}

}  // namespace cautious::data
