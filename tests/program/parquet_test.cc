// Parquet files of another writer (tests/golden/parquet), whole and damaged.
#include "data/parquet/parquet.h"

#include <fmt/format.h>

#include <cstring>

#include "base/files.h"
#include "data/documents.h"
#include "data_fixture.h"

namespace cautious::data {
namespace parquet_test {

using Texts = std::vector<std::string>;

const std::filesystem::path kFiles = std::filesystem::path(TEST_DATA) / "golden" / "parquet";

// As make_parquet.mjs writes them.
std::string text_of_row(int row) {
  if (row % 11 == 0) return "";
  std::string text = fmt::format("row {} ", row % 3 == 0 ? row % 9 : row);
  for (int i = 0; i < row % 5; ++i) text += "caf\u00e9 \u65e5\u672c ";
  return text;
}

Texts all_rows() {
  Texts texts;
  for (int row = 0; row < 120; ++row) texts.push_back(text_of_row(row));
  return texts;
}

Texts read_text(const std::filesystem::path& file, const std::string& column = "text") {
  Texts texts;
  each_parquet_text(file, column, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::string refusal(const std::filesystem::path& file, const std::string& column = "text") {
  return line_of(Fault::data, [&] { read_text(file, column); });
}

TEST(Parquet, EveryVersionEncodingAndCompression) {
  int files = 0;
  for (const char* name :
       {"v1_plain_none_required", "v1_plain_gzip_optional", "v1_dictionary_snappy_optional", "v1_lengths_zstd_required",
        "v2_plain_snappy_required", "v2_dictionary_zstd_required", "v2_dictionary_none_optional", "v2_lengths_gzip_optional",
        "v2_shared_none_required", "v2_shared_snappy_optional"}) {
    EXPECT_EQ(read_text(kFiles / fmt::format("{}.parquet", name)), all_rows()) << name;
    ++files;
  }
  EXPECT_EQ(files, 10);
}

TEST(Parquet, ColumnsWithinStructures) {
  EXPECT_EQ(read_text(kFiles / "nested.parquet", "meta.text"), all_rows());
  EXPECT_EQ(read_text(kFiles / "nested.parquet", "body")[119], "body 119");
  const std::string file = (kFiles / "nested.parquet").string();
  EXPECT_EQ(refusal(file), file + ": no column 'text'; columns of texts: 'meta.text', 'body'");
  EXPECT_EQ(refusal(file, "meta.kept"), file + ": column 'meta.kept' does not hold one text a row");
  EXPECT_TRUE(has(refusal(file, "words"), "no column 'words'"));
  for (const char* list : {"words.list.item", "words.list.element"})
    EXPECT_TRUE(has(refusal(file, list), "column")) << list;  // of many values a row
}

TEST(Parquet, WhatIsNotReadIsNamed) {
  const std::string nulls = (kFiles / "nulls.parquet").string(),
                    brotli = (kFiles / "v1_plain_brotli_required.parquet").string();
  EXPECT_EQ(refusal(nulls), nulls + ": row 71: column 'text' is null, not a text");
  EXPECT_EQ(refusal(brotli), brotli + ": column 'text' is compressed with BROTLI; valid: UNCOMPRESSED, SNAPPY, GZIP, ZSTD");
  EXPECT_TRUE(has(refusal(kFiles / "v2_plain_lz4_required.parquet"), "compressed with LZ4_RAW"));
}

TEST(Parquet, IsAFileOfDocuments) {
  Texts texts;
  each_document(kFiles / "nested.parquet", [&](std::string_view text) { texts.emplace_back(text); }, {.field = "meta.text"});
  EXPECT_EQ(texts, all_rows());
}

class ParquetFiles : public DataFiles {};

TEST_F(ParquetFiles, NotOneOrCutShort) {
  EXPECT_TRUE(has(refusal(write("a.parquet", "")), "a.parquet: not a Parquet file, or cut short: no PAR1 at its end"));
  EXPECT_TRUE(has(refusal(write("b.parquet", "some text, not of that format")), "not a Parquet file"));
  EXPECT_TRUE(has(refusal(write("c.parquet", std::string("PAR1\x00\x00\x00\x7fPAR1", 12))),
                  "damaged Parquet file, or one of a kind that is not read: a footer of 2130706432 bytes in a file of 12"));
  EXPECT_TRUE(has(refusal(write("d.parquet", "PAR1xxxx....PARE")), "an encrypted Parquet file"));
  EXPECT_TRUE(has(refusal(folder_ / "none.parquet"), "cannot open: No such file or directory"));
  EXPECT_TRUE(has(refusal(folder_), "cannot open: Is a directory"));
}

// Any byte changed or bytes cut out of any file: the same texts, other texts, or one line that says what is wrong.
TEST_F(ParquetFiles, EveryDamagedByteIsReadOrRefused) {
  for (const char* name : {"v1_dictionary_snappy_optional", "v2_lengths_gzip_optional", "v2_shared_none_required",
                           "v1_lengths_zstd_required", "v2_dictionary_none_optional"}) {
    const std::string whole = base::read_file(kFiles / fmt::format("{}.parquet", name));
    int refused = 0, read = 0;
    const auto attempt = [&](const std::string& bytes) {
      const RandomAccess memory{bytes.size(), [&](std::uint64_t at, std::span<char> to) {
                                  ASSERT_LE(at + to.size(), bytes.size());
                                  if (!to.empty()) std::memcpy(to.data(), bytes.data() + at, to.size());
                                }};
      std::size_t size = 0;
      try {
        each_parquet_text(memory, "x", "text", [&](std::string_view text) {
          size += text.size() + 1;
          if (size > 1 << 20) base::refuse_content("x", "more than enough");
        });
        ++read;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data);
        EXPECT_TRUE(std::string(error.what()).starts_with("x: ")) << error.what();
        ++refused;
      }
    };
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int change : {0x01, 0x80}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ change);
        attempt(changed);
      }
      if (i % 7 == 0) attempt(whole.substr(0, i) + whole.substr(std::min(whole.size(), i + 5)));
    }
    EXPECT_GT(refused, 300) << name;
    EXPECT_GT(read, 100) << name;
  }
}

}  // namespace parquet_test
}  // namespace cautious::data
