#include "data/parquet/parquet.h"

#include <fmt/format.h>
#include <snappy.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/files.h"
#include "base/gzip.h"
#include "base/input_file.h"
#include "base/text.h"
#include "data/parquet/footer.h"
#include "data/parquet/thrift.h"
#include "data/parquet/values.h"
#include "data/tokenizer/split_pattern.h"

namespace cautious::data {
namespace parquet {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::uint64_t kEndBytes = 8;  // the footer's size, and the magic number
constexpr std::int64_t kMostPage = std::int64_t{1} << 30;
constexpr std::int64_t kPlainPages = 0, kSnappy = 1, kGzip = 2, kZstd = 6;
constexpr std::array<std::string_view, 8> kCodecs = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                     "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};

std::string read_at(const RandomAccess& file, std::uint64_t at, std::uint64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.read(at, bytes);
  return bytes;
}

struct PageHeader {
  enum Kind : std::int64_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };
  std::int64_t kind = -1;
  std::int64_t packed = -1, unpacked = -1;  // bytes
  std::int64_t values = -1, encoding = -1, level_encoding = 3;
  std::int64_t levels = 0;  // bytes, of data_v2
  bool compressed = true;
  std::uint64_t size = 0;  // of the header itself
};

PageHeader header_of(std::string_view bytes) {
  PageHeader page;
  Thrift thrift(bytes);
  thrift.structure([&](std::int64_t id) {
    if (id == 1) page.kind = thrift.number();
    if (id == 2) page.unpacked = thrift.number();
    if (id == 3) page.packed = thrift.number();
    if (id != 5 && id != 7 && id != 8) return;
    const bool first = id == 5, second = id == 8;  // versions of pages of data; 7 is a dictionary
    thrift.inner([&](std::int64_t field) {
      if (field == 1) page.values = thrift.number();
      if (field == (second ? 4 : 2)) page.encoding = thrift.number();
      if (first && field == 3) page.level_encoding = thrift.number();
      if (second && field == 5) page.levels = thrift.number();
      if (second && field == 7) page.compressed = thrift.truth();
    });
  });
  page.size = thrift.position();
  return page;
}

std::string unpacked(std::string bytes, std::int64_t codec, std::uint64_t claimed, const std::string& file) {
  std::string text;
  if (codec == kPlainPages) {
    text = std::move(bytes);
  } else if (codec == kSnappy) {
    constexpr std::size_t kMostGrowth = 22;  // three bytes become at most 64
    std::size_t size = 0;
    if (!snappy::GetUncompressedLength(bytes.data(), bytes.size(), &size) || size != claimed ||
        size / kMostGrowth > bytes.size() || !snappy::Uncompress(bytes.data(), bytes.size(), &text))
      throw Damage{"a page that Snappy cannot decompress"};
  } else {
    const auto packed = std::as_bytes(std::span(bytes));
    text = (codec == kGzip ? base::gunzip : base::unzstd)(packed, file + ": a page", static_cast<std::size_t>(claimed) + 1);
  }
  if (text.size() != claimed) throw Damage{fmt::format("a page of {} bytes, not {}", text.size(), claimed)};
  return text;
}

// One column's pages of one row group.
class ChunkReader {
 public:
  ChunkReader(const RandomAccess& source, const std::string& file, const Column& column, const Chunk& chunk)
      : source_(source),
        file_(file),
        column_(column),
        codec_(chunk.codec),
        at_(static_cast<std::uint64_t>(chunk.first)),
        end_(static_cast<std::uint64_t>(chunk.first + chunk.size)),
        left_(chunk.values) {}

  // `rows`: those before; grows by one with each.
  void run(std::int64_t& rows, const std::function<void(std::string_view text)>& each) {
    while (left_ > 0) {
      const PageHeader page = next_header();
      std::string bytes = read_at(source_, at_, static_cast<std::uint64_t>(page.packed));
      at_ += bytes.size();
      if (page.kind == PageHeader::dictionary) {
        read_dictionary(page, std::move(bytes));
      } else if (page.kind == PageHeader::data || page.kind == PageHeader::data_v2) {
        read_page(page, std::move(bytes), rows, each);
        left_ -= page.values;
      } else if (page.kind != PageHeader::index) {
        throw Damage{fmt::format("a page of kind {}", page.kind)};
      }
    }
  }

 private:
  // How long it is only its bytes say: its statistics may hold whole texts.
  PageHeader next_header() {
    constexpr std::uint64_t kUsual = 4096;
    for (std::uint64_t size = kUsual;; size *= 2) {
      const std::uint64_t most = end_ - at_;
      try {
        const PageHeader page = header_of(read_at(source_, at_, std::min(size, most)));
        at_ += page.size;
        check(page);
        return page;
      } catch (const Damage& damage) {
        if (!damage.cut || size >= most) throw;
      }
    }
  }

  void check(const PageHeader& page) const {
    const bool has_values = page.kind != PageHeader::index;
    if (page.packed < 0 || static_cast<std::uint64_t>(page.packed) > end_ - at_ || page.unpacked < 0 ||
        (has_values && page.values < 0) || page.levels < 0 || page.levels > std::min(page.packed, page.unpacked))
      throw Damage{fmt::format("a page of {} bytes, {} compressed, and {} values", page.unpacked, page.packed, page.values)};
    if (page.unpacked > kMostPage)
      throw Damage{fmt::format("a page of {} bytes; at most {} are read", page.unpacked, kMostPage)};
    const bool data = page.kind == PageHeader::data || page.kind == PageHeader::data_v2;
    if (data && page.values > left_) throw Damage{fmt::format("a page of {} values where {} are left", page.values, left_)};
  }

  void read_dictionary(const PageHeader& page, std::string bytes) {
    dictionary_bytes_ = unpacked(std::move(bytes), codec_, static_cast<std::uint64_t>(page.unpacked), file_);
    dictionary_.emplace();
    const auto texts = Texts::of(0, dictionary_bytes_, nullptr);
    for (std::int64_t i = 0; i < page.values; ++i) dictionary_->push_back(texts->next());
  }

  void read_page(const PageHeader& page, std::string bytes, std::int64_t& rows,
                 const std::function<void(std::string_view text)>& each) {
    const bool second = page.kind == PageHeader::data_v2;
    const auto levels_size = static_cast<std::size_t>(second ? page.levels : 0);
    std::string levels = bytes.substr(0, levels_size);
    bytes.erase(0, levels_size);
    const std::string text = unpacked(std::move(bytes), page.compressed ? codec_ : kPlainPages,
                                      static_cast<std::uint64_t>(page.unpacked) - levels_size, file_);
    Cursor cursor(text);
    if (!second && column_.optional > 0) {
      if (page.level_encoding != 3) throw Damage{"levels in an old encoding, BIT_PACKED"};
      levels = cursor.bytes(cursor.little_endian(4));
    }
    Runs defined(levels, std::bit_width(static_cast<unsigned>(column_.optional)));
    const auto texts = Texts::of(page.encoding, cursor.rest(), dictionary_ ? &*dictionary_ : nullptr);
    for (std::int64_t i = 0; i < page.values; ++i) {
      ++rows;
      if (column_.optional > 0 && defined.next() != static_cast<std::uint32_t>(column_.optional))
        base::refuse_content(fmt::format("{}: row {}", file_, rows),
                             fmt::format("column {} is null, not a text", base::in_quotes(column_.name)));
      const std::string_view one = texts->next();
      if (valid_utf8(one) != one.size())
        base::refuse_content(
            fmt::format("{}: row {}", file_, rows),
            fmt::format("not UTF-8 text: byte 0x{:02x} at byte {} of column {}",
                        static_cast<std::uint8_t>(one[valid_utf8(one)]), valid_utf8(one), base::in_quotes(column_.name)));
      each(one);
    }
  }

  const RandomAccess& source_;
  const std::string& file_;
  const Column& column_;
  std::int64_t codec_;
  std::uint64_t at_, end_;
  std::int64_t left_;  // values
  std::string dictionary_bytes_;
  std::optional<std::vector<std::string_view>> dictionary_;
};

Footer footer_of(const RandomAccess& source, const std::string& file) {
  constexpr std::uint64_t kLeast = 2 * kEndBytes - kMagic.size();
  const std::string end = source.size < kLeast ? "" : read_at(source, source.size - kEndBytes, kEndBytes);
  if (end.empty() || end.substr(4) == "PARE" || end.substr(4) != kMagic)
    base::refuse_content(
        file, end.ends_with("PARE") ? "an encrypted Parquet file" : "not a Parquet file, or cut short: no PAR1 at its end");
  const std::uint64_t size = Cursor(end).little_endian(4), most = source.size - kLeast;
  if (size > most) throw Damage{fmt::format("a footer of {} bytes in a file of {}", size, source.size)};
  const std::uint64_t first = source.size - kEndBytes - size;
  return read_footer(read_at(source, first, size), first);
}

const Column& find_column(const Footer& footer, const std::string& name, const std::string& file) {
  std::vector<std::string> names;
  for (const Column& column : footer.columns) {
    if (column.text) names.push_back(base::in_quotes(column.name));
    if (column.name != name) continue;
    if (column.text) return column;
    base::refuse_content(file, fmt::format("column {} does not hold one text a row", base::in_quotes(name)));
  }
  base::refuse_content(file, fmt::format("no column {}; columns of texts: {}", base::in_quotes(name),
                                         names.empty() ? "none" : base::join(names)));
}

void check_codec(std::int64_t codec, const Column& column, const std::string& file) {
  if (codec == kPlainPages || codec == kSnappy || codec == kGzip || codec == kZstd) return;
  const bool known = codec > 0 && codec < static_cast<std::int64_t>(kCodecs.size());
  base::refuse_content(file, fmt::format("column {} is compressed with {}; valid: UNCOMPRESSED, SNAPPY, GZIP, ZSTD",
                                         base::in_quotes(column.name),
                                         known ? kCodecs[static_cast<std::size_t>(codec)] : fmt::to_string(codec)));
}

}  // namespace
}  // namespace parquet

void each_parquet_text(const RandomAccess& bytes, const std::string& file, const std::string& name,
                       const std::function<void(std::string_view text)>& each) {
  std::int64_t rows = 0;
  try {
    const parquet::Footer footer = parquet::footer_of(bytes, file);
    const parquet::Column& column = parquet::find_column(footer, name, file);
    for (const parquet::RowGroup& group : footer.groups) {
      const parquet::Chunk& chunk = group.chunks[column.leaf];
      parquet::check_codec(chunk.codec, column, file);
      if (chunk.values != group.rows) throw parquet::Damage{fmt::format("{} values in {} rows", chunk.values, group.rows)};
      parquet::ChunkReader(bytes, file, column, chunk).run(rows, each);
    }
  } catch (const parquet::Damage& damage) {
    base::refuse_content(file, fmt::format("damaged Parquet file, or one of a kind that is not read: {}{}", damage.what,
                                           rows > 0 ? fmt::format(", after row {}", rows) : ""));
  }
}

void each_parquet_text(const std::filesystem::path& path, const std::string& column,
                       const std::function<void(std::string_view text)>& each) {
  const base::InputFile file(path);
  each_parquet_text({file.size(), [&](std::uint64_t at, std::span<char> to) { file.read(at, to); }}, path.string(), column,
                    each);
}

}  // namespace cautious::data
