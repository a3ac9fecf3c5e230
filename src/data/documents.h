// Documents of a file: a text file is one document, a JSONL file one per line, its field "text". Also reads .gz and .dz (gzip).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace cautious::data {

// Calls `each` with every document in order. Not UTF-8 (file and byte offset), a line that is not a JSON object or has no
// string "text" (file and line), an unreadable or empty file: an Error(Fault::data).
void each_document(const std::filesystem::path& file, const std::function<void(std::string_view text)>& each);

// Whether a file holds JSON objects, by its name: a list of them (.json), or one a line (.jsonl, .ndjson).
bool has_objects(const std::filesystem::path& file);
// Calls `each` with every object of such a file; `where` is the file and the line or the number of the entry, for messages.
void each_object(const std::filesystem::path& file,
                 const std::function<void(const nlohmann::json& object, const std::string& where)>& each);

// A field of such an object, and one that is text; otherwise an Error(Fault::data) that names it, and the fields there are.
const nlohmann::json& field_of(const nlohmann::json& object, const char* name, const std::string& where);
const std::string& text_of(const nlohmann::json& object, const char* name, const std::string& where);

}  // namespace cautious::data
