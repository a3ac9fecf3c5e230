// Data that a run cannot use, and names that nothing has: what is said, and which of several it is said of.
#include "data/corpus.h"

#include "data/sets/catalog.h"
#include "data_fixture.h"

namespace cautious::data {
namespace corpus_errors_test {

class CorpusErrors : public DataFiles {
 protected:
  CorpusSpec spec(const std::vector<std::string>& names) const {
    CorpusSpec out{.path = {}, .weights = {}, .val_path = {}, .val_fraction = 0.25, .cache = folder_ / "cache"};
    for (const std::string& name : names) out.path.push_back((folder_ / name).string());
    return out;
  }
  static Corpus open(const CorpusSpec& spec) { return open_corpus(spec, Tokenizer::bytes(), {}); }
  static std::string refusal(const CorpusSpec& spec, Fault fault) {
    return line_of(fault, [&] { open(spec); });
  }
};

TEST_F(CorpusErrors, WhatHasNoRoomForASequenceIsNamed) {
  write("long.txt", std::string(400, 'a'));
  write("short.txt", std::string(40, 'b'));
  const auto refused = [&](const CorpusSpec& of, std::int64_t length) {
    return line_of(Fault::data, [&] { check_length(open(of), length); });
  };
  CorpusSpec mixed = spec({"long.txt", "short.txt"});
  mixed.weights = {1, 2};
  EXPECT_EQ(refused(mixed, 64), mixed.path[1] +
                                    " (entry 2 of data.path): its training text has 31 tokens, but sequences of 64 need at "
                                    "least 65: give more text or a smaller train.seq_len");
  check_length(open(mixed), 30);
  EXPECT_TRUE(has(refused(spec({"long.txt"}), 100), "the validation data, the last 24.9% of long.txt"));
  CorpusSpec apart = spec({"short.txt"});
  apart.val_path = {(folder_ / "long.txt").string()};
  EXPECT_TRUE(has(refused(apart, 64), "the training text has 41 tokens, but sequences of 64 need at least 65"));
}

TEST_F(CorpusErrors, WhatCannotBeReadAgainOrHasNoName) {
  for (const char* const name : {"-", "/dev/stdin"}) {
    CorpusSpec piped = spec({});
    piped.path = {name};
    EXPECT_TRUE(has(refusal(piped, Fault::usage), std::string("data.path is ") + name + ", but standard input cannot be read"));
  }
  write("a.jsonl", "{\"text\": \"a text\"}\n");
  CorpusSpec nameless = spec({"a.jsonl"});
  nameless.field.clear();
  EXPECT_TRUE(has(refusal(nameless, Fault::usage), "data.field is empty; give the name of a field"));
  nameless = spec({});
  nameless.path = {""};
  EXPECT_TRUE(has(refusal(nameless, Fault::usage), "data.path is empty; give a file, a folder, or one of: gcide, "));
}

TEST(TokenizerNames, AllAreToldToWhoMistypesOne) {
  const auto refused = [](const std::string& name) {
    return line_of(Fault::usage, [&] { tokenizer_place(name, "data.tokenizer", "nowhere"); });
  };
  const std::string all = "bytes, gpt2-bpe, r50k_base, p50k_base, cl100k_base, o200k_base";
  for (const auto& [name, meant] : {std::pair("Bytes", "bytes"), {"gpt2", "gpt2-bpe"}, {"cl100k", "cl100k_base"}}) {
    EXPECT_EQ(refused(name), std::string("data.tokenizer: no file, folder or known tokenizer named '") + name +
                                 "'; did you mean '" + meant + "'? choices: " + all);
  }
  EXPECT_EQ(refused(""), "data.tokenizer is empty; give a file, a folder, or one of: " + all);
  EXPECT_EQ(refused("tiktoken"),
            "data.tokenizer: 'tiktoken' holds several tokenizers; choices: r50k_base, p50k_base, cl100k_base, o200k_base");
}

}  // namespace corpus_errors_test
}  // namespace cautious::data
