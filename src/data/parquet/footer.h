// The end of a Parquet file: its columns, and where each one's pages are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data::parquet {

struct Column {
  std::string name;      // within structures with dots: "meta.text"
  bool text = false;     // of bytes, one value a row
  int optional = 0;      // levels on the way to it that may be null
  std::size_t leaf = 0;  // among the columns
};

// One column's pages in one row group.
struct Chunk {
  std::int64_t codec = 0;
  std::int64_t values = 0;
  std::int64_t first = 0, size = 0;  // in the file
};

struct RowGroup {
  std::int64_t rows = 0;
  std::vector<Chunk> chunks;  // one per column
};

struct Footer {
  std::vector<Column> columns;
  std::vector<RowGroup> groups;
};

// Of a file whose pages end at byte `end`. What is not one throws Damage (thrift.h).
Footer read_footer(std::string_view bytes, std::uint64_t end);

}  // namespace cautious::data::parquet
