// Streams and splits: what is in which part, what no target crosses, the cache, and every way a path can be wrong.
#include "data/corpus.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <set>

#include "data/layout.h"
#include "data/sets/catalog.h"
#include "data_fixture.h"

namespace cautious::data {
namespace corpus_test {

using Numbers = std::vector<std::int64_t>;

struct Window {
  Numbers tokens, target, starts;
};

Window window(const Stream& stream, std::int64_t first, std::int64_t count) {
  const Numbers room(static_cast<std::size_t>(count));
  Window out{room, room, room};
  stream.copy(first, out.tokens, out.target, out.starts);
  return out;
}

// Every token of the stream, by one window over all of it; the last by its target.
Numbers whole(const Stream& stream) {
  Numbers tokens = window(stream, 0, stream.size() - 1).tokens;
  tokens.push_back(window(stream, stream.size() - 2, 1).target[0]);
  return tokens;
}

class CorpusFiles : public DataFiles {
 protected:
  CorpusSpec spec(const std::vector<std::string>& path, double fraction = 0.25) const {
    CorpusSpec out;
    for (const auto& name : path) out.path.push_back((folder_ / name).string());
    out.val_fraction = fraction;
    out.cache = folder_ / "cache";
    return out;
  }
  Corpus open(const CorpusSpec& spec) {
    return open_corpus(spec, Tokenizer::bytes(), [&](const std::string& what, double part) { told_.emplace_back(what, part); });
  }
  std::string refusal(const CorpusSpec& spec, Fault fault = Fault::data) {
    return line_of(fault, [&] { open(spec); });
  }
  // Document i is i + 2 times the letter i of the alphabet.
  std::string lines(int count) const {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += fmt::format("{{\"text\":\"{}\"}}\n", std::string(static_cast<std::size_t>(i + 2), static_cast<char>('a' + i)));
    return text;
  }
  std::vector<std::filesystem::path> cached() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache" / "tokens")) files.push_back(entry.path());
    return files;
  }

  std::vector<std::pair<std::string, double>> told_;
};

TEST_F(CorpusFiles, FewDocumentsAreSplitBetweenTokens) {
  write("a.txt", "0123456789abcdefghi");  // 20 tokens with the end
  const Corpus corpus = open(spec({"a.txt"}));
  EXPECT_EQ(whole(corpus.train), (Numbers{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(window(corpus.validation, 0, 4).tokens, (Numbers{'f', 'g', 'h', 'i'}));
  EXPECT_EQ(window(corpus.validation, 0, 4).target, (Numbers{'g', 'h', 'i', 0}));
  EXPECT_EQ(corpus.validation.size(), 5);
  EXPECT_EQ(corpus.split, "the last 25% of a.txt, from document 1 token 15 on");
  EXPECT_EQ(told_.back(), (std::pair<std::string, double>("tokenizing a.txt", 1)));
}

TEST_F(CorpusFiles, ManyDocumentsAreSplitBetweenThem) {
  write("a.jsonl", lines(24));  // document i begins at the sum of 3 .. i + 2; 348 tokens in all
  for (const double fraction : {0.001, 0.05, 0.25, 0.5, 0.99, 0.9999}) {
    const Corpus corpus = open(spec({"a.jsonl"}, fraction));
    const Numbers train = whole(corpus.train), validation = whole(corpus.validation);
    EXPECT_EQ(train.size() + validation.size(), 348u);
    EXPECT_EQ(train.back(), 0);  // an end
    std::set<std::int64_t> seen(train.begin(), train.end());
    for (const std::int64_t letter : validation) EXPECT_TRUE(letter == 0 || !seen.contains(letter)) << fraction;
  }
  const Corpus corpus = open(spec({"a.jsonl"}, 0.25));
  // 261 tokens are wanted; document 21 (from 1) begins at 3 + ... + 22 = 250, document 22 at 273.
  EXPECT_EQ(corpus.train.size(), 250);
  EXPECT_EQ(corpus.split, "the last 28.2% of a.jsonl, from document 21 on");
  write("b.jsonl", lines(19));  // 3 + ... + 21 = 228 tokens
  EXPECT_EQ(open(spec({"b.jsonl"}, 0.5)).train.size(), 114);
}

TEST_F(CorpusFiles, WeightsMakeAStreamOfEachEntryAndValidateOnTheEndOfEach) {
  write("a.txt", "0123456789abcdefghi");  // 20 tokens with the end
  write("b.txt", "zyxwvut");
  CorpusSpec mixed = spec({"a.txt", "b.txt"});
  mixed.weights = {3, 1};
  const Corpus corpus = open(mixed);
  ASSERT_EQ(corpus.shares.size(), 2u);
  EXPECT_EQ(corpus.shares[0].weight, 3);
  EXPECT_EQ(corpus.shares[0].train.size(), 15);
  EXPECT_EQ(whole(corpus.shares[1].train), (Numbers{'z', 'y', 'x', 'w', 'v', 'u'}));
  EXPECT_EQ(whole(corpus.validation), (Numbers{'f', 'g', 'h', 'i', 0, 't', 0}));
  EXPECT_EQ(corpus.train.size(), 21);
  EXPECT_EQ(corpus.split,
            "the last 25% of a.txt, from document 1 token 15 on, then the last 25% of b.txt, from document 1 token 6 on");
  mixed.val_path = {write("v.txt", "held out").string()};
  EXPECT_EQ(open(mixed).shares[0].train.size(), 20);
  EXPECT_EQ(open(mixed).split, "all of v.txt");
  EXPECT_TRUE(open(spec({"a.txt", "b.txt"})).shares.empty());
  mixed.train_tokens = 10;
  EXPECT_TRUE(has(refusal(mixed, Fault::usage), "data.train_tokens takes the first tokens of one stream"));
  mixed.weights = {1};
  EXPECT_EQ(refusal(mixed, Fault::usage), "data.weights is a list of 1, data.path one of 2; give one weight for each entry");
}

TEST_F(CorpusFiles, AFoldersSplitsAreTakenByTheirNames) {
  write("d/data/train-00000-of-00002.jsonl", lines(2));
  write("d/data/train-00001-of-00002.jsonl", "{\"text\":\"cc\"}\n");
  write("d/data/test-00000-of-00001.jsonl", "{\"text\":\"te\"}\n");
  write("d/README.md", "not read");
  Corpus corpus = open(spec({"d"}));
  EXPECT_EQ(whole(corpus.train), (Numbers{'a', 'a', 0, 'b', 'b', 'b', 0, 'c', 'c', 0}));
  EXPECT_EQ(whole(corpus.validation), (Numbers{'t', 'e', 0}));
  EXPECT_EQ(corpus.split, "the test split, test-00000-of-00001.jsonl");
  write("d/data/validation-00000-of-00001.jsonl", "{\"text\":\"va\"}\n");
  corpus = open(spec({"d"}));
  EXPECT_EQ(whole(corpus.validation), (Numbers{'v', 'a', 0}));
  EXPECT_EQ(corpus.split,
            "the validation split, validation-00000-of-00001.jsonl; 1 file of no split or of another is left out");
  CorpusSpec named = spec({"d"});
  named.val_path = {(folder_ / "d/data/test-00000-of-00001.jsonl").string()};
  EXPECT_EQ(whole(open(named).validation), (Numbers{'t', 'e', 0}));
  EXPECT_EQ(open(named).train.size(), 10);
  EXPECT_EQ(open_stream(spec({"d"}), Tokenizer::bytes(), {}).size(), 16);  // to evaluate on: all there is
  EXPECT_TRUE(has(refusal(spec({"d", "d/data/validation-00000-of-00001.jsonl"}), Fault::usage),
                  "is in data.path and in a folder's validation split; name the training files without it"));
  write("n/shakespeare_train.bin", bytes_of({1, 2, 3}, 2));
  write("n/shakespeare_val.bin", bytes_of({4, 5}, 2));
  EXPECT_EQ(whole(open(spec({"n"})).validation), (Numbers{4, 5}));
}

TEST(Layouts, SplitsOfNames) {
  const std::vector<std::pair<std::string, Split>> names = {{"train.jsonl", Split::train},
                                                            {"data/train-00000-of-00002.parquet", Split::train},
                                                            {"default/validation/0000.parquet", Split::validation},
                                                            {"a_val_000001.bin", Split::validation},
                                                            {"dev.txt.gz", Split::validation},
                                                            {"TinyStories-valid.txt", Split::validation},
                                                            {"test1.txt", Split::test},
                                                            {"train/test.txt", Split::test},
                                                            {"trains.txt", Split::none},
                                                            {"contest.txt", Split::none},
                                                            {"value.txt", Split::none}};
  for (const auto& [name, split] : names) EXPECT_EQ(split_of(name), split) << name;
}

TEST_F(CorpusFiles, NoTargetCrossesADocumentOrFileAndEachTokenKnowsItsStart) {
  write("a.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"\"}\n{\"text\":\"c\"}\n");  // a b 0 | 0 | c 0
  write("b.bin", bytes_of({7, 8}, 2));
  write("c.txt", "d");
  const Stream stream = open_stream(spec({"a.jsonl", "b.bin", "c.txt"}), Tokenizer::bytes(), {});
  ASSERT_EQ(stream.size(), 10);
  const Numbers tokens = {'a', 'b', 0, 0, 'c', 0, 7, 8, 'd', 0}, target = {'b', 0, -1, -1, 0, -1, 8, -1, 0};
  const Numbers starts = {0, 0, 0, 3, 4, 4, 6, 6, 8};
  EXPECT_EQ(stream.largest(), static_cast<Token>('d'));
  for (std::int64_t first = 0; first < 9; ++first) {
    for (std::int64_t count = 0; first + count + 1 <= 10; ++count) {
      const Window got = window(stream, first, count);
      EXPECT_EQ(got.tokens, Numbers(tokens.begin() + first, tokens.begin() + first + count));
      EXPECT_EQ(got.target, Numbers(target.begin() + first, target.begin() + first + count)) << first << " " << count;
      for (std::size_t i = 0; i < got.starts.size(); ++i)
        EXPECT_EQ(got.starts[i], std::max<std::int64_t>(0, starts[static_cast<std::size_t>(first) + i] - first)) << first;
    }
  }
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { window(stream, 0, 10); }),
                  "10 tokens from 0 on, 10 targets and 10 starts wanted of a stream of 10"));
  EXPECT_NE(line_of(Fault::usage, [&] { window(stream, -1, 2); }), "");
  EXPECT_NE(line_of(Fault::usage, [&] { window(stream, 9, 1); }), "");
}

TEST_F(CorpusFiles, SplitInsideALaterFileKeepsTheBoundaries) {
  write("a.bin", bytes_of({1, 2, 3, 4}, 2));
  write("b.bin", bytes_of({5, 6, 7, 8, 9, 10}, 2));
  const Corpus corpus = open(spec({"a.bin", "b.bin"}, 0.4));
  EXPECT_EQ(window(corpus.train, 0, 5).tokens, (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(window(corpus.train, 0, 5).target, (Numbers{2, 3, 4, -1, 6}));
  EXPECT_EQ(window(corpus.validation, 0, 3).tokens, (Numbers{7, 8, 9}));
  EXPECT_EQ(window(corpus.validation, 0, 3).target, (Numbers{8, 9, 10}));
  EXPECT_EQ(corpus.split, "the last 40% of 2 files (a.bin to b.bin), from document 2 token 2 on");
  const Corpus between = open(spec({"a.bin", "b.bin"}, 0.6));
  EXPECT_EQ(window(between.train, 0, 3).target, (Numbers{2, 3, 4}));
  EXPECT_EQ(between.split, "the last 60% of 2 files (a.bin to b.bin), from document 2 on");
}

TEST_F(CorpusFiles, ValidationFilesOfTheirOwn) {
  write("a.txt", "train");
  write("b.txt", "held out");
  CorpusSpec both = spec({"a.txt"});
  both.val_path = {(folder_ / "b.txt").string()};
  const Corpus corpus = open(both);
  EXPECT_EQ(corpus.train.size(), 6);
  EXPECT_EQ(corpus.validation.size(), 9);
  EXPECT_EQ(corpus.split, "all of b.txt");
  both.val_path = {(folder_ / "." / "a.txt").string()};
  EXPECT_TRUE(has(refusal(both, Fault::usage), "a.txt is in data.path and in data.val_path"));
  both.val_path = {(folder_ / "c.txt").string()};
  EXPECT_TRUE(has(refusal(both), "data.val_path: no file or folder"));
}

TEST_F(CorpusFiles, TextIsTokenizedOnce) {
  const auto file = write("a.txt", "some text that is long enough");
  const Numbers first = whole(open(spec({"a.txt"})).train);
  ASSERT_EQ(cached().size(), 1u);
  told_.clear();
  EXPECT_EQ(whole(open(spec({"a.txt"})).train), first);
  EXPECT_TRUE(told_.empty());

  std::filesystem::resize_file(cached()[0], 100);  // damaged: made again
  EXPECT_EQ(whole(open(spec({"a.txt"})).train), first);
  EXPECT_FALSE(told_.empty());

  const auto time = std::filesystem::last_write_time(file);
  write("a.txt", "SOME text that is long enough");  // as large and as old, but changed
  std::filesystem::last_write_time(file, time);
  EXPECT_EQ(whole(open(spec({"a.txt"})).train)[0], 'S');
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(CorpusFiles, ManyProcessesMayTokenizeAtOnce) {
  write("a.txt", std::string(100000, 'x'));
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(open_stream(spec({"a.txt"}), Tokenizer::bytes(), {}).size() == 100001 ? 0 : 1);
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(CorpusFiles, FoldersGiveTheirFilesInOrder) {
  write("d/b.txt", "b");
  write("d/a/z.txt", "z");
  write("d/c.jsonl", "{\"text\":\"c\"}");
  write("d/README.md", "no");
  write("d/.hidden.txt", "no");
  EXPECT_EQ(whole(open_stream(spec({"d"}), Tokenizer::bytes(), {})), (Numbers{'z', 0, 'b', 0, 'c', 0}));
  write("d/t.bin", bytes_of({1}, 2));
  EXPECT_TRUE(has(refusal(spec({"d"})), "/d: a folder with text (z.txt) and tokens (t.bin)"));
  std::filesystem::create_directories(folder_ / "e");
  EXPECT_TRUE(has(refusal(spec({"e"})), "/e: a folder without files to read; suffixes: .txt, .text, .jsonl"));
  EXPECT_TRUE(has(refusal(spec({"d/b.txt", "d/a/../b.txt"}), Fault::usage), "b.txt twice"));
}

TEST_F(CorpusFiles, KnownSets) {
  CorpusSpec set = spec({});
  set.path = {"gcide"};
  EXPECT_TRUE(has(refusal(set), "'gcide' is not in " + (folder_ / "cache" / "data").string() +
                                    "; get it: cautious data get gcide --cache " + (folder_ / "cache").string()));
  const auto place = place_of(known_set("gcide"), set.cache);
  std::filesystem::create_directories(place);
  std::ofstream(place / "gcide.txt") << "a dictionary";
  EXPECT_EQ(open(set).train.size() + open(set).validation.size(), 13);
  set.path = {"gcid"};
  EXPECT_TRUE(has(refusal(set, Fault::usage),
                  "data.path: no file, folder or known set named 'gcid'; did you mean 'gcide'? choices: gcide, "));
  set.path = {"mnist"};
  EXPECT_TRUE(has(refusal(set, Fault::usage), "'mnist' is a set of images, not of text"));
  set.path = {};
  EXPECT_TRUE(has(refusal(set, Fault::usage), "data.path is empty"));
}

TEST_F(CorpusFiles, TokensMustFitTheTokenizer) {
  write("a.bin", bytes_of({1, 2, 256, 3}, 2));
  EXPECT_TRUE(has(refusal(spec({"a.bin"})), "a.bin: has token 256, but data.tokenizer has a vocabulary of 256"));
  std::string other = "CAUTOKEN" + bytes_of({1, 1}, 4) + bytes_of({256}, 8) + std::string(64, 'e') + std::string(8, 'x');
  other += bytes_of({0, 8, 1, 'x'}, 8) + "CAUTOK..";
  write("b.tokens", other);
  const std::string line = refusal(spec({"b.tokens"}));
  EXPECT_TRUE(has(line, "b.tokens: made with another tokenizer (eeeeeeee...) than data.tokenizer (" +
                            Tokenizer::bytes().fingerprint().substr(0, 8) + "..., bytes); give the one that it was made with"))
      << line;
}

TEST_F(CorpusFiles, PartsTooSmall) {
  write("a.txt", "0123456789");
  EXPECT_TRUE(has(refusal(spec({"a.txt"}, 0.05)),
                  "data.val_fraction 0.05 of the 11 tokens of a.txt leaves validation data of 1 token; at least 2 are needed"));
  EXPECT_TRUE(has(refusal(spec({"a.txt"}, 0.99)), "training data of 0 tokens"));
  for (const double wrong : {0.0, 1.0, -1.0})
    EXPECT_TRUE(
        has(refusal(spec({"a.txt"}, wrong), Fault::usage), fmt::format("data.val_fraction is {}; valid: (0, 1)", wrong)));
  write("one.bin", bytes_of({1}, 2));
  EXPECT_TRUE(has(line_of(Fault::data, [&] { open_stream(spec({"one.bin"}), Tokenizer::bytes(), {}); }),
                  "one.bin has a stream of 1 token"));
}

TEST_F(CorpusFiles, TheFirstTokensOnly) {
  write("a.txt", "0123456789");
  write("b.txt", "abcdefghij");
  CorpusSpec some = spec({"a.txt", "b.txt"}, 0.25);  // 22 tokens
  for (const std::int64_t count : {2, 11, 13}) {
    some.train_tokens = count;
    const Corpus corpus = open_corpus(some, Tokenizer::bytes(), {});
    EXPECT_EQ(corpus.train.size(), count);
    EXPECT_EQ(corpus.validation.size(), open_corpus(spec({"a.txt", "b.txt"}, 0.25), Tokenizer::bytes(), {}).validation.size());
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(count) - 1), target = tokens, starts = tokens;
    corpus.train.copy(0, tokens, target, starts);
    EXPECT_EQ(tokens.front(), '0');
    EXPECT_EQ(target.back(), count == 2 ? '1' : count == 11 ? 0 : 'b');
  }
  some.train_tokens = 1000;
  EXPECT_TRUE(has(refusal(some, Fault::usage),
                  "data.train_tokens is 1000, but there are 16 training tokens; valid: 0 for all, "
                  "or 2 to 16"));
}

TEST_F(CorpusFiles, TheCache) {
  write("a.txt", "0123456789");
  CorpusSpec blocked = spec({"a.txt"});
  blocked.cache = write("file", "");
  EXPECT_TRUE(has(refusal(blocked, Fault::failure), "set data.cache or XDG_CACHE_HOME to a folder that can be written"));
  ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(default_cache(), "/somewhere/cautious");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(default_cache(), "/home/me/.cache/cautious");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_TRUE(has(line_of(Fault::failure, [] { default_cache(); }), "set data.cache"));
}

}  // namespace corpus_test
}  // namespace cautious::data
