// Text is checked before it is handed out.
#include "data/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cautious/error.h>
#include "base/files.h"
#include "base/input_file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8_stream.h"
#include "data/parquet/parquet.h"

namespace cautious::data {
namespace {

constexpr std::size_t kTextStep = std::size_t{1} << 20;     // bytes that are read at a time
constexpr std::size_t kWindow = std::size_t{16} << 20;      // a shorter document is never cut
constexpr std::size_t kLongestLine = std::size_t{1} << 28;  // bytes

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

using Path = std::filesystem::path;

bool is_gzip_name(const Path& path) { return path.extension() == ".gz" || path.extension() == ".dz"; }
bool is_packed_name(const Path& path) { return is_gzip_name(path) || path.extension() == ".zst"; }

// The end of its name, before .gz: ".jsonl".
std::string inner_suffix(const Path& path) { return (is_packed_name(path) ? path.stem() : path).extension().string(); }

bool is_lines_name(const Path& path) { return inner_suffix(path) == ".jsonl" || inner_suffix(path) == ".ndjson"; }

// Formats that are no text, by the bytes at a place, and the command that unpacks one, where there is one.
struct Known {
  std::size_t at;
  std::string_view bytes, name, command;
  bool named = false;  // the command asks for a file's name
};
constexpr std::array kKnown{Known{0, "\xfd\x37zXZ", "xz", "xzcat"},
                            Known{0, "BZh", "bzip2", "bzcat"},
                            Known{257, "ustar", "a tar archive", "tar -xOf", true},
                            Known{0, "PK\x03\x04", "a zip archive", "unzip -p", true},
                            Known{0, "%PDF-", "PDF", ""},
                            Known{0, "PAR1", "Parquet; name it .parquet", ""},
                            Known{0, "\x89PNG", "a PNG image", ""},
                            Known{0, "\xff\xd8\xff", "a JPEG image", ""},
                            Known{0, "GIF8", "a GIF image", ""}};

// By its byte order mark; without one, what text is most often in that is not UTF-8.
std::string_view encoding_of(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  return text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv) ? "UTF-16" : "LATIN1";
}

// A file's text, decompressed and checked, as it comes: without a byte order mark, and never ending within a character.
class TextStream {
 public:
  TextStream(const Path& path, const std::function<void()>& waiting)
      : stream_(path == kStandardInput ? base::InputFile::standard_input(waiting) : base::InputFile(path)) {
    const bool gzip = stream_.format() == base::InputStream::Format::gzip;
    const bool zstd = stream_.format() == base::InputStream::Format::zstd;
    more();
    if (ended_ && text_.empty()) base::refuse_content(name(), "is empty");
    if (path != kStandardInput && ((is_gzip_name(path) && !gzip) || (path.extension() == ".zst" && !zstd)))
      base::refuse_content(name(), fmt::format("not a {} file, though its name ends in {}",
                                               is_gzip_name(path) ? "gzip" : "zstd", path.extension().string()));
    check();
    if (text_.starts_with("\xef\xbb\xbf")) start_ = 3;
    if (ended_ && text_.size() == start_) base::refuse_content(name(), "is empty");
  }

  const std::string& name() const { return stream_.name(); }
  bool ended() const { return ended_; }  // read() has the rest
  std::string_view text() const { return std::string_view(text_).substr(start_, checked_ - start_); }
  void take(std::size_t count) { start_ += count; }
  // More of it behind what is there.
  void read() {
    text_.erase(0, start_);
    before_ += start_;
    checked_ -= start_;
    start_ = 0;
    more();
    check();
  }

 private:
  void more() {
    const std::size_t size = text_.size();
    text_.resize(size + kTextStep);
    text_.resize(size + stream_.next(std::span(text_).subspan(size)));
    ended_ = text_.size() < size + kTextStep;
  }

  void check() {
    checked_ += first_bad(std::string_view(text_).substr(checked_));
    const std::size_t left = text_.size() - checked_;
    if (left == 0 || (left < 4 && !ended_)) return;  // a character of which more is to come
    const std::string_view start = before_ == 0 ? std::string_view(text_) : "";
    refuse_known(start);
    const std::string convert = fmt::format("iconv -f {} -t UTF-8", encoding_of(start));
    base::refuse_content(
        name(), fmt::format("not UTF-8 text: byte 0x{:02x} at byte {}{}; if it is text in another encoding, convert it: {}",
                            static_cast<unsigned char>(text_[checked_]), before_ + checked_,
                            is_packed() ? " of the decompressed text" : "", through(convert)));
  }

  void refuse_known(std::string_view start) const {
    const auto known = std::ranges::find_if(
        kKnown, [&](const Known& k) { return start.size() > k.at && start.substr(k.at).starts_with(k.bytes); });
    if (known == kKnown.end()) return;
    std::string cure;
    if (!known->command.empty()) {
      cure = fmt::format("; unpack it on a pipe: {} | cautious tokenize - --format {} --tokenizer bytes --out data.tokens",
                         known->named ? fmt::format("{} {}", known->command, file()) : through(known->command),
                         is_lines_name(Path(name()).stem()) ? "jsonl" : "text");
    }
    base::refuse_content(name(), fmt::format("not text, but {}{}", known->name, cure));
  }

  bool is_packed() const { return stream_.format() != base::InputStream::Format::plain; }
  // As a shell takes it.
  std::string file() const { return name() == "standard input" ? "FILE" : base::shell_word(name()); }
  // The command with its input: "iconv FILE", "zcat FILE | iconv".
  std::string through(std::string_view command) const {
    if (!is_packed()) return fmt::format("{} {}", command, file());
    const bool gzip = stream_.format() == base::InputStream::Format::gzip;
    return fmt::format("{} {} | {}", gzip ? "zcat" : "zstdcat", file(), command);
  }

  base::InputStream stream_;
  std::string text_;  // of which [start_, checked_) is given out
  std::size_t start_ = 0, checked_ = 0, before_ = 0;
  bool ended_ = false;
};

// `fault` says what is no JSON near a byte.
nlohmann::json json_of(std::string_view text, const std::string& where, const std::function<std::string(std::size_t)>& fault) {
  if (!base::is_shallow(text)) base::refuse_content(where, "JSON that is nested too deeply");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    base::refuse_content(where, fault(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    base::refuse_content(where, "JSON with a number that is too large");
  }
}

nlohmann::json object_of_line(std::string_view line, const std::string& where) {
  const nlohmann::json object = json_of(
      line, where, [&](std::size_t byte) { return fmt::format("not JSON near column {}: {}", byte, base::in_quotes(line)); });
  if (!object.is_object()) base::refuse_content(where, fmt::format("a JSON {}, not an object", object.type_name()));
  return object;
}

using EachObject = std::function<void(const nlohmann::json& object, const std::string& where)>;

// The next line without its end; none after the last. A view of the stream's text.
std::optional<std::string_view> next_line(TextStream& stream, std::int64_t number) {
  for (std::size_t looked = 0;;) {
    const std::string_view text = stream.text();
    const std::size_t end = text.find('\n', looked);
    if (end != text.npos || stream.ended()) {
      if (text.empty()) return std::nullopt;
      stream.take(end == text.npos ? text.size() : end + 1);
      return text.substr(0, end);
    }
    looked = text.size();
    if (looked > kLongestLine)
      base::refuse_content(fmt::format("{}: line {}", stream.name(), number),
                           fmt::format("more than {} bytes without an end of line", kLongestLine));
    stream.read();
  }
}

void each_line(TextStream& stream, const EachObject& each) {
  bool any = false;
  std::int64_t number = 1;
  while (const auto line = next_line(stream, number)) {
    const std::string where = fmt::format("{}: line {}", stream.name(), number++);
    if (line->find_first_not_of(" \t\r") == line->npos) continue;
    each(object_of_line(*line, where), where);
    any = true;
  }
  if (!any) base::refuse_content(stream.name(), "has no documents, only blank lines");
}

void each_entry(TextStream& stream, const EachObject& each) {
  while (!stream.ended()) stream.read();
  const nlohmann::json list =
      json_of(stream.text(), stream.name(), [](std::size_t byte) { return fmt::format("not JSON near byte {}", byte); });
  if (!list.is_array()) base::refuse_content(stream.name(), "not a list of JSON objects");
  if (list.empty()) base::refuse_content(stream.name(), "has no documents, only an empty list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: entry {}", stream.name(), i + 1);
    if (!list[i].is_object()) base::refuse_content(where, fmt::format("a JSON {}, not an object", list[i].type_name()));
    each(list[i], where);
  }
}

using Cut = std::function<std::size_t(std::string_view text)>;

// Where no cut is found, it is looked for again when the text is twice as long.
void each_window_of(TextStream& stream, const Cut& cut, const std::function<void(const Window&)>& each) {
  bool first = true;
  for (std::size_t wanted = kWindow;;) {
    while (!stream.ended() && stream.text().size() < wanted) stream.read();
    const std::string_view text = stream.text();
    const std::size_t size = stream.ended() ? text.size() : cut(text);
    wanted = size == 0 ? 2 * wanted : kWindow;
    if (size == 0 && !stream.ended()) continue;
    each({text.substr(0, size), std::exchange(first, false), stream.ended()});
    stream.take(size);
    if (stream.ended()) return;
  }
}

}  // namespace

const nlohmann::json& field_of(const nlohmann::json& object, std::string_view name, const std::string& where) {
  const auto field = object.find(name);
  if (field != object.end()) return *field;
  constexpr std::size_t kShown = 12;
  std::vector<std::string> fields;
  for (const auto& item : object.items()) {
    if (fields.size() < kShown) fields.push_back(base::in_quotes(item.key()));
  }
  if (object.size() > kShown) fields.push_back(fmt::format("{} more", object.size() - kShown));
  if (fields.empty()) fields.emplace_back("none");
  base::refuse_content(where, fmt::format("no field {}; fields: {}", base::in_quotes(name), base::join(fields)));
}

const std::string& text_of(const nlohmann::json& object, std::string_view name, const std::string& where) {
  const nlohmann::json& field = field_of(object, name, where);
  if (field.is_string()) return field.get_ref<const std::string&>();
  base::refuse_content(where, fmt::format("field {} is of type {}, not a string", base::in_quotes(name), field.type_name()));
}

bool has_objects(const Path& file) { return is_lines_name(file) || inner_suffix(file) == ".json"; }

void each_object(const Path& file, const EachObject& each) {
  TextStream stream(file, {});
  (inner_suffix(file) == ".json" ? each_entry : each_line)(stream, each);
}

void each_window(const Path& path, const DocumentReading& reading, const Cut& cut,
                 const std::function<void(const Window&)>& each) {
  if (path.extension() == ".parquet")
    return each_parquet_text(path, reading.field, [&](std::string_view text) { each({text, true, true}); });
  TextStream stream(path, reading.waiting);
  const bool lines = path == kStandardInput ? reading.format == DocumentFormat::jsonl : is_lines_name(path);
  if (!lines) return each_window_of(stream, cut, each);
  each_line(stream, [&](const nlohmann::json& object, const std::string& where) {
    each({text_of(object, reading.field, where), true, true});
  });
}

void each_document(const Path& path, const std::function<void(std::string_view text)>& each, const DocumentReading& reading) {
  each_window(
      path, reading, [](std::string_view) { return std::size_t{0}; }, [&](const Window& window) { each(window.text); });
}

}  // namespace cautious::data
