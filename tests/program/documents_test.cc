// Documents of text, JSONL and gzip files, SHA-256, and mapped files. Gzip files come from the system's own gzip.
#include "data/documents.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/input_file.h"
#include "base/sha256.h"
#include "data_fixture.h"

namespace cautious::data {
namespace documents_test {

using Texts = std::vector<std::string>;

Texts documents(const std::filesystem::path& file) {
  Texts texts;
  each_document(file, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::string refusal(const std::filesystem::path& file) {
  return line_of(Fault::data, [&] { documents(file); });
}

class Documents : public DataFiles {
 protected:
  std::filesystem::path zipped(const std::string& name, std::string_view content) const {
    const auto plain = write("plain", content);
    const auto to = folder_ / name;
    EXPECT_EQ(std::system(fmt::format("gzip -c '{}' > '{}'", plain.string(), to.string()).c_str()), 0);
    return to;
  }
};

TEST_F(Documents, TextIsOneDocumentAsItIs) {
  EXPECT_EQ(documents(write("a.txt", "one\ntwo\r\n\n")), Texts{"one\ntwo\r\n\n"});
  EXPECT_EQ(documents(write("noname", " ")), Texts{" "});
  EXPECT_EQ(documents(write("bom.txt", "\xef\xbb\xbfx")), Texts{"x"});
  EXPECT_EQ(documents(write("inner.txt", "x\xef\xbb\xbf")), Texts{"x\xef\xbb\xbf"});
}

TEST_F(Documents, JsonLines) {
  const auto file = write("a.jsonl",
                          "{\"text\": \"one\\n\\u00e9\"}\r\n\n  \t\n{\"id\": 7, \"text\": \"\", \"x\": {\"text\": 1}}\n"
                          "{\"text\":\"last\"}");
  EXPECT_EQ(documents(file), (Texts{"one\n\xc3\xa9", "", "last"}));
  EXPECT_EQ(documents(write("b.ndjson", "\xef\xbb\xbf{\"text\":\"a\\u0000b\"}")), (Texts{std::string("a\0b", 3)}));
}

TEST_F(Documents, JsonLinesAreRefusedWithTheirNumber) {
  const auto line = [&](std::string_view second) {
    return refusal(write("a.jsonl", fmt::format("{{\"text\": \"fine\"}}\n\n{}\n", second)));
  };
  EXPECT_TRUE(has(line("{\"text\": \"cut"), "a.jsonl: line 3: not JSON near column 14: '{\"text\": \"cut'"));
  EXPECT_TRUE(has(line("{\"text\": 1e999}"), "a.jsonl: line 3: JSON with a number that is too large"));
  EXPECT_TRUE(has(line("{\"text\": \"a\"} {}"), "line 3: not JSON"));
  EXPECT_TRUE(has(line("{\"text\": \"\\ud800\"}"), "line 3: not JSON"));
  EXPECT_TRUE(has(line("[1]"), "line 3: a JSON array, not an object"));
  EXPECT_TRUE(has(line("{\"content\": \"a\", \"id\": 1}"), "line 3: no field 'text'; fields: 'content', 'id'"));
  EXPECT_TRUE(has(line("{}"), "fields: none"));
  std::string many = "{\"a\": 0";
  for (int i = 100000; i < 110000; ++i) many += fmt::format(", \"b{}\": 0", i);
  EXPECT_TRUE(has(line(many + "}"), "'b100010', 9989 more"));
  EXPECT_TRUE(has(line("{\"text\": 5}"), "line 3: field 'text' is of type number, not a string"));
  EXPECT_TRUE(has(line(std::string(100000, '[')), "line 3: JSON that is nested too deeply"));
  EXPECT_TRUE(has(refusal(write("blank.jsonl", "\n \n")), "blank.jsonl: has no documents, only blank lines"));
}

TEST_F(Documents, GzipInnerNameDecides) {
  const std::string lines = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
  EXPECT_EQ(documents(zipped("x.jsonl.gz", lines)), (Texts{"a", "b"}));
  EXPECT_EQ(documents(zipped("y.txt.gz", lines)), Texts{lines});
  EXPECT_EQ(documents(zipped("z.dict.dz", "dictionary")), Texts{"dictionary"});
  EXPECT_EQ(documents(zipped("magic.jsonl", lines)), (Texts{"a", "b"}));
  std::string large;
  for (int i = 0; large.size() < 5'000'000; ++i) large += fmt::format("line {}\n", i % 70000 * 7919);
  EXPECT_EQ(documents(zipped("large.gz", large)), Texts{large});
}

TEST_F(Documents, GzipMembersFollowEachOther) {
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string one = read(zipped("1.gz", "one ")), two = read(zipped("2.gz", "two"));
  EXPECT_EQ(documents(write("both.gz", one + two)), Texts{"one two"});
  EXPECT_EQ(documents(write("padded.gz", one + std::string(512, '\0'))), Texts{"one "});
  EXPECT_TRUE(
      has(refusal(write("more.gz", one + "x")), fmt::format("something else than gzip follows at byte {}", one.size())));
  for (std::size_t size = 2; size < one.size(); ++size)
    EXPECT_TRUE(has(refusal(write("cut.gz", one.substr(0, size))), "cut.gz: damaged gzip file"));
  std::string bad = one;
  bad[bad.size() - 6] ^= 1;  // of the checksum
  EXPECT_TRUE(has(refusal(write("sum.gz", bad)), "damaged gzip file: incorrect data check"));
  EXPECT_TRUE(has(refusal(write("plain.gz", "text")), "not a gzip file, though its name ends in .gz"));
  EXPECT_TRUE(has(refusal(zipped("empty.gz", "")), "is empty"));
}

TEST_F(Documents, Zstandard) {
  const std::string lines = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
  const auto packed = [&](const std::string& name, std::string_view content) {
    std::string out(ZSTD_compressBound(content.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1));
    return write(name, out);
  };
  EXPECT_EQ(documents(packed("x.jsonl.zst", lines)), (Texts{"a", "b"}));
  EXPECT_EQ(documents(packed("y.txt.zst", lines)), Texts{lines});
  std::string large;
  for (int i = 0; large.size() < 5'000'000; ++i) large += fmt::format("line {}\n", i % 70000 * 7919);
  EXPECT_EQ(documents(packed("large.zst", large)), Texts{large});
  const std::string one = base::read_file(packed("1.zst", "one ")), two = base::read_file(packed("2.zst", "two"));
  EXPECT_EQ(documents(write("both.zst", one + two)), Texts{"one two"});
  for (std::size_t size = 4; size < one.size(); ++size)
    EXPECT_TRUE(has(refusal(write("cut.zst", one.substr(0, size))), "cut.zst: damaged zstd file: the data end too early"))
        << size;
  EXPECT_TRUE(has(refusal(write("more.zst", one + "something")), "damaged zstd file"));
  EXPECT_TRUE(has(refusal(write("plain.zst", "text")), "not a zstd file, though its name ends in .zst"));
  EXPECT_TRUE(has(refusal(packed("empty.zst", "")), "is empty"));
  EXPECT_TRUE(has(refusal(packed("l.zst", "\xe9")), "zstdcat"));
}

TEST_F(Documents, AnotherField) {
  const auto file = write("a.jsonl", "{\"body\": \"x\", \"text\": 1}\n");
  Texts texts;
  const auto keep = [&](std::string_view text) { texts.emplace_back(text); };
  each_document(file, keep, {.field = "body"});
  EXPECT_EQ(texts, Texts{"x"});
  EXPECT_TRUE(has(line_of(Fault::data, [&] { each_document(file, keep, {.field = "content"}); }),
                  "a.jsonl: line 1: no field 'content'; fields: 'body', 'text'"));
}

// Characters of every length lie across the bytes that are read at a time.
TEST_F(Documents, LongTextsComeInWindows) {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{40} << 20); ++i) text += i % 1000 == 0 ? "\u00e9\u65e5\U0001f600 " : "some words ";
  std::string joined;
  int windows = 0, firsts = 0, lasts = 0;
  each_window(
      write("a.txt", text), {}, [](std::string_view seen) { return seen.rfind(' '); },
      [&](const Window& window) {
        EXPECT_LT(window.text.size(), std::size_t{18} << 20);
        EXPECT_EQ(window.first, joined.empty());
        EXPECT_TRUE(window.last || text[joined.size() + window.text.size()] == ' ');
        joined += window.text;
        ++windows;
        firsts += window.first ? 1 : 0;
        lasts += window.last ? 1 : 0;
      });
  EXPECT_TRUE(joined == text);
  EXPECT_EQ(windows, 3);
  EXPECT_EQ(firsts, 1);
  EXPECT_EQ(lasts, 1);
  text[text.size() - 2] = '\xe9';
  EXPECT_TRUE(has(refusal(write("bad.txt", text)), fmt::format("byte 0xe9 at byte {}", text.size() - 2)));
}

TEST_F(Documents, NotUtf8NamesFileByteAndConversion) {
  const auto file = write("latin.txt", "a long enough beginning, caf\xe9 au lait");
  EXPECT_EQ(refusal(file),
            fmt::format("{0}: not UTF-8 text: byte 0xe9 at byte 28; if it is text in another encoding, convert it: "
                        "iconv -f LATIN1 -t UTF-8 {0}",
                        file.string()));
  EXPECT_TRUE(has(refusal(zipped("l.gz", "\xe9")), "at byte 0 of the decompressed text"));
  EXPECT_TRUE(has(refusal(write("l.jsonl", "{\"text\":\"\xe9\"}")), "byte 0xe9 at byte 9"));
  EXPECT_TRUE(has(refusal(write("utf16.txt", std::string("h\0i\0", 4))), "byte 0x00 at byte 1"));
  EXPECT_TRUE(has(refusal(write("nul.txt", std::string("eight by\0ight by", 16))), "byte 0x00 at byte 8"));
}

TEST_F(Documents, WhatIsNoTextIsNamed) {
  const auto cure = [](const std::filesystem::path& file, std::string_view command, std::string_view format) {
    return fmt::format("; unpack it on a pipe: {} {} | cautious tokenize - --format {} --tokenizer bytes --out data.tokens",
                       command, file.string(), format);
  };
  const auto xz = write("w.jsonl.xz", std::string("\xfd\x37zXZ\0\0", 7)), bzip = write("w.txt.bz2", "BZh91AY&SY\xcd\xd0"),
             zip = write("w.zip", std::string("PK\x03\x04\x14\0", 6)), gif = write("w.gif", std::string("GIF89a\0", 7)),
             tar = write("w.tar", "a.txt" + std::string(252, '\0') + "ustar");
  EXPECT_EQ(refusal(xz), fmt::format("{}: not text, but xz{}", xz.string(), cure(xz, "xzcat", "jsonl")));
  EXPECT_EQ(refusal(bzip), fmt::format("{}: not text, but bzip2{}", bzip.string(), cure(bzip, "bzcat", "text")));
  EXPECT_EQ(refusal(zip), fmt::format("{}: not text, but a zip archive{}", zip.string(), cure(zip, "unzip -p", "text")));
  EXPECT_EQ(refusal(tar), fmt::format("{}: not text, but a tar archive{}", tar.string(), cure(tar, "tar -xOf", "text")));
  EXPECT_EQ(refusal(gif), fmt::format("{}: not text, but a GIF image", gif.string()));
  EXPECT_EQ(refusal(write("w.png", "\x89PNG\r\n")).substr(folder_.string().size()), "/w.png: not text, but a PNG image");
  EXPECT_EQ(documents(write("bz.txt", "BZh is text")), Texts{"BZh is text"});
  for (const std::string_view mark : {"\xff\xfe", "\xfe\xff"}) {
    const auto file = write("utf16.txt", fmt::format("{}h", mark));
    EXPECT_TRUE(has(refusal(file), fmt::format("convert it: iconv -f UTF-16 -t UTF-8 {}", file.string())));
  }
  EXPECT_TRUE(has(refusal(write("utf32.txt", std::string("\xff\xfe\0\0h\0\0\0", 8))), "iconv -f UTF-32 -t UTF-8"));
  EXPECT_TRUE(has(refusal(write("later.txt", "a\xff\xfe h")), "iconv -f LATIN1 -t UTF-8"));
}

// First bytes and second bytes at the borders of the table of well-formed sequences, against the JSON library's own check.
TEST_F(Documents, ThatAreCutShortWhileTheyAreRead) {
  const std::filesystem::path path = write("cut.txt", std::string(1000, 'x'));
  const base::InputFile file(path);
  std::vector<std::byte> part(100);
  EXPECT_EQ(file.next(part), 100u);
  std::filesystem::resize_file(path, 150);
  try {
    (void)file.next(part);
    ADD_FAILURE() << "what was cut off is not missed";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_TRUE(has(error.what(), "cut.txt: cut short while it was read: no byte 150"));
  }
}

TEST_F(Documents, WellFormedMeansWhatAnotherLibrarySays) {
  const auto valid = [](const std::string& text) {
    try {
      return nlohmann::json(text).dump(), true;
    } catch (const nlohmann::json::type_error&) {
      return false;
    }
  };
  const std::string firsts = "\x7f\x80\xc1\xc2\xdf\xe0\xe1\xed\xee\xf0\xf1\xf4\xf5",
                    seconds = "\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0";
  const std::vector<std::string> rests = {"", "\x80", "\xbf\xbf", "\x80\x7f"};
  int accepted = 0, refused = 0;
  for (const char first : firsts) {
    for (const char second : seconds) {
      for (const std::string& rest : rests) {
        const std::string text = std::string{first, second} + rest;
        const bool here = refusal(write("t", text)).empty();
        EXPECT_EQ(here, valid(text)) << fmt::format("{:02x}",
                                                    fmt::join(std::vector<unsigned char>(text.begin(), text.end()), " "));
        (here ? accepted : refused) += 1;
      }
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 200);
}

TEST_F(Documents, FilesThatCannotBeRead) {
  EXPECT_EQ(refusal(folder_ / "none.txt"), (folder_ / "none.txt").string() + ": cannot open: No such file or directory");
  EXPECT_EQ(refusal(folder_), folder_.string() + ": cannot open: Is a directory");
  EXPECT_TRUE(has(refusal(write("empty.txt", "")), "empty.txt: is empty"));
  EXPECT_TRUE(has(refusal(write("bom.txt", "\xef\xbb\xbf")), "is empty"));
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(has(refusal(pipe), "cannot open: not a regular file"));
}

TEST_F(Documents, MappedFile) {
  base::MappedFile file(write("m", "bytes"));
  const base::MappedFile moved(std::move(file));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()), "bytes");
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_TRUE(base::MappedFile(write("e", "")).bytes().empty());
}

// The examples of FIPS 180-4's author, NIST.
TEST_F(Documents, Sha256) {
  EXPECT_EQ(base::sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(base::sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  base::Sha256 million;
  for (int i = 0; i < 1000; ++i) million.add(std::string(1000, 'a'));
  EXPECT_EQ(million.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(base::sha256_of_file(write("abc", "abc")), base::sha256_of("abc"));
  EXPECT_TRUE(has(line_of(Fault::data, [&] { base::sha256_of_file(folder_ / "none"); }), "No such file"));
}

}  // namespace documents_test
}  // namespace cautious::data
