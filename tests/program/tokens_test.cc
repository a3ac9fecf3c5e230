// Token files: llm.c's and nanoGPT's written byte by byte here, ours written by write_tokens and then damaged.
#include "data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "data/tokenizer/bpe_training.h"
#include "data_fixture.h"

namespace cautious::data {
namespace tokens_test {

using Numbers = std::vector<std::int64_t>;

Numbers all_of(const Tokens& tokens) {
  Numbers out(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, out);
  return out;
}

std::string llm_c(std::int32_t magic, std::int32_t version, std::int32_t count) {
  Numbers header(256);
  header[0] = magic, header[1] = version, header[2] = count;
  return bytes_of(header, 4);
}

class TokenFiles : public DataFiles {
 protected:
  std::string refusal(const std::string& name, std::string_view content) const {
    const auto path = write(name, content);
    return line_of(Fault::data, [&] { Tokens::open(path); });
  }
  // Documents "ab", "" and 300 times "x", as bytes; 306 - 1 tokens in 8-byte steps need padding.
  std::string ours() const {
    const auto text =
        write("a.jsonl", fmt::format("{{\"text\":\"ab\"}}\n{{\"text\":\"\"}}\n{{\"text\":\"{}\"}}\n", std::string(300, 'x')));
    const auto to = folder_ / "a.tokens";
    write_tokens(to, {text}, Tokenizer::bytes(), 1, {});
    std::ifstream in(to, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
};

TEST_F(TokenFiles, NanoGpt) {
  const Numbers written = {0, 1, 50256, 65535, 7};
  const auto tokens = Tokens::open(write("train.bin", bytes_of(written, 2)));
  EXPECT_EQ(all_of(*tokens), written);
  EXPECT_EQ(tokens->largest(), 65535u);
  EXPECT_EQ(tokens->tokenizer(), "");
  ASSERT_EQ(tokens->documents().size(), 1u);
  EXPECT_EQ(tokens->documents()[0], 0);
  EXPECT_EQ(Tokens::open(write("one.bin", bytes_of({3}, 2)))->size(), 1);
  EXPECT_TRUE(has(refusal("odd.bin", "abc"), "odd.bin: 3 bytes; a file of u16 tokens without a header has an even number"));
  EXPECT_TRUE(has(refusal("empty.bin", ""), "has no tokens: the file is empty"));
  EXPECT_TRUE(has(refusal("a.npy", "ab"), "token files end in .tokens (of `cautious tokenize`) or .bin"));
}

TEST_F(TokenFiles, LlmC) {
  const Numbers small = {50256, 0, 17, 400}, large = {128000, 0, 4'000'000'000};
  const auto gpt = Tokens::open(write("a.bin", llm_c(20240520, 1, 4) + bytes_of(small, 2)));
  EXPECT_EQ(all_of(*gpt), small);
  EXPECT_EQ(gpt->largest(), 50256u);
  for (const std::int32_t magic : {20240520, 20240801}) {
    const auto llama = Tokens::open(write("b.bin", llm_c(magic, 7, 3) + bytes_of(large, 4)));
    EXPECT_EQ(all_of(*llama), large);
    EXPECT_EQ(llama->largest(), 4'000'000'000u);
  }
}

TEST_F(TokenFiles, LlmCRefusals) {
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, 4) + bytes_of({1, 2, 3}, 2)),
                  "a.bin: 1030 bytes, but an llm.c header with 4 tokens of 2 bytes means 1032"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, 1) + bytes_of({1, 2, 3}, 2)), "means 1026"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, 2147483647)), "means 4294968318"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 2, 1) + "ab"), "of version 2; versions 1 (u16) and 7 (u32) are read"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240801, 1, 1) + "ab"), "llm.c file 20240801 of version 1"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, 0)), "with 0 tokens"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, -5)), "with -5 tokens"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240520, 1, 4).substr(0, 100)), "cut short: 100 bytes"));
  EXPECT_TRUE(has(refusal("a.bin", llm_c(20240522, 1, 4)), "multiple-choice questions (20240522), not of tokens (20240520)"));
}

TEST_F(TokenFiles, OursHasTheDocumentsOfTheText) {
  ours();
  const auto tokens = Tokens::open(folder_ / "a.tokens");
  Numbers expected = {'a', 'b', 0, 0};
  expected.insert(expected.end(), 300, 'x');
  expected.push_back(0);
  EXPECT_EQ(all_of(*tokens), expected);
  EXPECT_EQ(Numbers(tokens->documents().begin(), tokens->documents().end()), (Numbers{0, 3, 4}));
  EXPECT_EQ(tokens->tokenizer(), Tokenizer::bytes().fingerprint());
  EXPECT_EQ(tokens->largest(), static_cast<Token>('x'));
  EXPECT_EQ(tokens->path(), folder_ / "a.tokens");
}

// The bytes where token_layout.h says they are, put together by hand.
TEST_F(TokenFiles, DocumentsBeginAsTheTokenizerSays) {
  auto json = nlohmann::json::parse(Tokenizer::bytes().to_json());
  json["added_tokens"].push_back({{"id", 256}, {"content", "<s>"}, {"special", true}});
  json["added_tokens"].push_back({{"id", 257}, {"content", "</s>"}, {"special", true}});
  write("t/tokenizer.json", json.dump());
  write("t/tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": true})");
  const auto text = write("b.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"c\"}\n");
  write_tokens(folder_ / "b.tokens", {text}, Tokenizer::read(folder_ / "t"), 1, {});
  const auto tokens = Tokens::open(folder_ / "b.tokens");
  EXPECT_EQ(all_of(*tokens), (Numbers{256, 'a', 'b', 257, 256, 'c', 257}));
  EXPECT_EQ(tokens->documents()[1], 4);
}

TEST_F(TokenFiles, OursIsTheDocumentedLayout) {
  std::string expected = "CAUTOKEN" + bytes_of({1, 1}, 4) + bytes_of({256}, 8) + Tokenizer::bytes().fingerprint();
  expected += std::string("ab\0\0", 4) + std::string(300, 'x') + std::string(1 + 7, '\0');
  expected += bytes_of({0, 3, 4, 305, 3, 'x'}, 8) + "CAUTOK..";
  EXPECT_EQ(ours(), expected);
}

TEST_F(TokenFiles, OursInTwoAndFourBytes) {
  const std::string fingerprint(64, 'f');
  const auto file = [&](int width, std::int64_t vocab, const Numbers& tokens, const Numbers& documents, std::int64_t largest) {
    std::string bytes = "CAUTOKEN" + bytes_of({1, width}, 4) + bytes_of({vocab}, 8) + fingerprint + bytes_of(tokens, width);
    bytes.resize((bytes.size() + 7) / 8 * 8);
    bytes += bytes_of(documents, 8);
    return bytes +
           bytes_of({static_cast<std::int64_t>(tokens.size()), static_cast<std::int64_t>(documents.size()), largest}, 8) +
           "CAUTOK..";
  };
  const Numbers two = {1, 300, 65535}, four = {1, 100000, 4294967295};
  EXPECT_EQ(all_of(*Tokens::open(write("two.tokens", file(2, 65536, two, {0, 2}, 65535)))), two);
  EXPECT_EQ(all_of(*Tokens::open(write("any.name", file(4, 4294967296, four, {0}, 4294967295)))), four);

  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {0, 2}, 65534)), "its largest token is 65535, not 65534"));
  EXPECT_TRUE(has(refusal("b", file(2, 65535, two, {0, 2}, 65535)), "token 65535 in a vocabulary of 65535"));
  EXPECT_TRUE(has(refusal("b", file(2, 65537, two, {0, 2}, 65535)), "a vocabulary of 65537 in 2 bytes"));
  EXPECT_TRUE(has(refusal("b", file(3, 10, two, {0}, 9)), "3 bytes per token; 1, 2 or 4 expected"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {1, 2}, 65535)), "document 1 begins at token 1, not 0"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {0, 2, 2}, 65535)), "document 3 begins at token 2, after 2, of 3 tokens"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {0, 3}, 65535)), "document 2 begins at token 3"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {0, -1}, 65535)), "document 2 begins at token -1"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, two, {}, 65535)), "has no tokens"));
  EXPECT_TRUE(has(refusal("b", file(2, 65536, {}, {0}, 0)), "has no tokens"));
}

TEST_F(TokenFiles, OursDamaged) {
  const std::string whole = ours();
  for (std::size_t size = 8; size < whole.size(); ++size) EXPECT_NE(refusal("cut.tokens", whole.substr(0, size)), "") << size;
  const auto with = [&](std::size_t place, const std::string& bytes) {
    return std::string(whole).replace(place, bytes.size(), bytes);
  };
  EXPECT_TRUE(has(refusal("b.tokens", with(0, "x")), "not a token file of this program"));
  EXPECT_TRUE(has(refusal("b.tokens", with(8, bytes_of({2}, 4))), "version 2; this program reads version 1"));
  EXPECT_TRUE(has(refusal("b.tokens", with(24, "G")), "not 64 hexadecimal digits"));
  EXPECT_TRUE(has(refusal("b.tokens", whole + "x"), "its end is missing"));
  const std::size_t end = whole.size() - 32;
  for (const std::int64_t huge : {std::int64_t{304}, std::int64_t{1} << 61, std::int64_t{-1}, std::int64_t{-8}}) {
    EXPECT_TRUE(has(refusal("b.tokens", with(end, bytes_of({huge}, 8))), "do not fit")) << huge;
    EXPECT_TRUE(has(refusal("b.tokens", with(end + 8, bytes_of({huge}, 8))), "do not fit")) << huge;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {  // no damage may crash, whether it is seen or not
    std::string bytes = whole;
    for (int k = 0; k < 2; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto path = write("r.tokens", bytes);
    try {
      const auto tokens = Tokens::open(path);
      const Numbers got = all_of(*tokens);
      EXPECT_LE(*std::max_element(got.begin(), got.end()), tokens->largest());
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
    }
  }
}

TEST_F(TokenFiles, CopyStaysInside) {
  const auto tokens = Tokens::open(write("a.bin", bytes_of({5, 6, 7, 8}, 2)));
  Numbers out(2);
  tokens->copy(2, out);
  EXPECT_EQ(out, (Numbers{7, 8}));
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { tokens->copy(3, out); }), "tokens [3, 5) wanted of 4"));
  EXPECT_NE(line_of(Fault::usage, [&] { tokens->copy(-1, out); }), "");
  tokens->copy(4, {});
}

TEST_F(TokenFiles, WritingIsTheSameForAnyThreadsAndCompleteOrNotThere) {
  std::string lines, large;
  for (int i = 0; i < 20000; ++i)
    lines += fmt::format("{{\"text\":\"document {} {}\"}}\n", i, std::string(static_cast<std::size_t>(i % 97), 'y'));
  for (int i = 0; large.size() < (std::size_t{17} << 20); ++i) large += fmt::format("{}\n", i);
  const std::vector<std::filesystem::path> files = {write("many.jsonl", lines), write("large.txt", large)};
  std::vector<double> parts;
  write_tokens(folder_ / "1.tokens", files, Tokenizer::bytes(), 1, [&](double part) { parts.push_back(part); });
  write_tokens(folder_ / "3.tokens", files, Tokenizer::bytes(), 3, {});
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  EXPECT_EQ(std::adjacent_find(parts.begin(), parts.end()), parts.end());
  EXPECT_EQ(parts.back(), 1);
  const auto one = Tokens::open(folder_ / "1.tokens"), three = Tokens::open(folder_ / "3.tokens");
  EXPECT_EQ(one->documents().size(), 20001u);
  EXPECT_EQ(all_of(*one), all_of(*three));
  EXPECT_TRUE(std::ranges::equal(one->documents(), three->documents()));
  Numbers tail(large.size());  // longer than a slice: as the text, byte by byte
  one->copy(one->documents()[20000], tail);
  EXPECT_TRUE(std::ranges::equal(tail, large));

  const auto bad = write("bad.jsonl", "{\"text\":\"a\"}\nnonsense\n");
  EXPECT_TRUE(has(line_of(Fault::data,
                          [&] {
                            write_tokens(folder_ / "bad.tokens", {files[0], bad}, Tokenizer::bytes(), 2, {});
                          }),
                  "bad.jsonl: line 2"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad.tokens"));
  EXPECT_TRUE(
      has(line_of(Fault::usage, [&] { write_tokens(folder_ / "no.tokens", {}, Tokenizer::bytes(), 1, {}); }), "no text files"));
}

// A document's tokens are those of encode() on all of it, however long it is and however many threads there are.
TEST_F(TokenFiles, WritingEncodesWholeDocuments) {
  std::string large;
  for (int i = 0; large.size() < (std::size_t{16} << 20) + 100; ++i) large += i % 3 == 0 ? "the other " : "thereafter, ";
  const auto words = write("words.txt", "the other there thereafter, the then other " + large.substr(0, 1000));
  const Tokenizer tokenizer = train_bpe({words}, {270, 1}, [](const char*, double) {});
  const auto lines = write("a.jsonl", "{\"text\":\"the other\"}\n{\"text\":\"there \\u00e9\"}\n");
  write_tokens(folder_ / "a.tokens", {lines, write("large.txt", large)}, tokenizer, 2, {});
  const auto tokens = Tokens::open(folder_ / "a.tokens");
  Numbers expected, documents;
  for (const std::string& text : {std::string("the other"), std::string("there \xc3\xa9"), large}) {
    documents.push_back(static_cast<std::int64_t>(expected.size()));
    for (const Token token : tokenizer.encode(text)) expected.push_back(token);
    expected.push_back(tokenizer.document_end());
  }
  EXPECT_EQ(all_of(*tokens), expected);
  EXPECT_TRUE(std::ranges::equal(tokens->documents(), documents));
  EXPECT_GT(tokens->largest(), 255u);
  EXPECT_LT(expected.size(), large.size() / 2);
}

}  // namespace tokens_test
}  // namespace cautious::data
