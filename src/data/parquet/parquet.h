// Texts of a Parquet file: one column, a row group after the other, one page of it and its dictionary in memory. Pages of both
// versions, all encodings of texts; uncompressed, Snappy, gzip and Zstandard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cautious::data {

// A file, or what stands for one.
struct RandomAccess {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t at, std::span<char> to)> read;
};

// Calls `each` with every text of the column, in order; it is valid during the call. A column within structures has dots in its
// name. No such column (the message lists those of texts), one of something else than texts, a null, a text that is not UTF-8,
// a compression that is not read, pages of more than 1 GiB, a damaged file: an Error(Fault::data) that names `file`, and the
// row.
void each_parquet_text(const RandomAccess& bytes, const std::string& file, const std::string& column,
                       const std::function<void(std::string_view text)>& each);
void each_parquet_text(const std::filesystem::path& file, const std::string& column,
                       const std::function<void(std::string_view text)>& each);

}  // namespace cautious::data
