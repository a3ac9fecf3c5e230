// Documents of a file: a text file is one document, a JSONL file one per line, its field "text". Also reads .gz and .dz (gzip).
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace cautious::data {

// Calls `each` with every document in order. Not UTF-8 (file and byte offset), a line that is not a JSON object or has no
// string "text" (file and line), an unreadable or empty file: an Error(Fault::data).
void each_document(const std::filesystem::path& file, const std::function<void(std::string_view text)>& each);

}  // namespace cautious::data
