// Documents of a file: a text file is one, a JSONL file has one per line and a Parquet file one per row, in the field or column
// "text" or another. Text and JSONL also as .gz and .dz (gzip) or .zst (Zstandard), or from standard input. Memory holds a few
// documents, and of a long text a window, never the whole file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace cautious::data {

enum class DocumentFormat { text, jsonl };

struct DocumentReading {
  std::string field = "text";                    // of JSONL and Parquet
  DocumentFormat format = DocumentFormat::text;  // of standard input; files have names
  std::function<void()> waiting{};               // called while standard input has nothing; may throw to give up
};

// The name of standard input among files.
inline constexpr std::string_view kStandardInput = "-";

// Calls `each` with every document in order. Not UTF-8 (file and byte offset), a line that is not a JSON object or has no such
// field that is a string (file and line), a null in a column, an unreadable or empty file: an Error(Fault::data).
void each_document(const std::filesystem::path& file, const std::function<void(std::string_view text)>& each,
                   const DocumentReading& reading = {});

// The same, but a text of more than 16 MiB comes in windows: `cut` says how many of its first bytes may be given out apart from
// what follows, 0 if there is no place to cut yet.
struct Window {
  std::string_view text;
  bool first, last;  // of its document
};
void each_window(const std::filesystem::path& file, const DocumentReading& reading,
                 const std::function<std::size_t(std::string_view text)>& cut, const std::function<void(const Window&)>& each);

// Whether a file holds JSON objects, by its name: a list of them (.json), or one a line (.jsonl, .ndjson).
bool has_objects(const std::filesystem::path& file);
// Calls `each` with every object of such a file; `where` is the file and the line or the number of the entry, for messages.
void each_object(const std::filesystem::path& file,
                 const std::function<void(const nlohmann::json& object, const std::string& where)>& each);

// A field of such an object, and one that is text; otherwise an Error(Fault::data) that names it, and the fields there are.
const nlohmann::json& field_of(const nlohmann::json& object, std::string_view name, const std::string& where);
const std::string& text_of(const nlohmann::json& object, std::string_view name, const std::string& where);

}  // namespace cautious::data
