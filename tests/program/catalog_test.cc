// The catalog of known sets against itself, and the paths of a fetched one.
#include "data/sets/catalog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <cautious/error.h>
#include "usage_message.h"

namespace cautious::data {
namespace catalog_test {

namespace fs = std::filesystem;

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
  const std::set<std::string> expected = {"gcide",         "sotu",  "kjv",      "moby-dick",   "linux-docs", "linux-c",
                                          "fashion-mnist", "mnist", "cifar-10", "openclipart", "gpt2-bpe",   "tiktoken"};
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

TEST_F(Catalog, PathsToUseAreFilesOfTextsAndRanksAndFoldersOfTheRest) {
  const auto paths = [&](const char* name) { return paths_to_use(known_set(name), folder_); };
  const fs::path data = folder_ / "data";
  for (const char* file : {"kjv/kjv.txt", "mnist/train-images-idx3-ubyte", "gpt2-bpe/encoder.json", "gpt2-bpe/vocab.bpe",
                           "tiktoken/r50k_base.tiktoken", "tiktoken/cl100k_base.tiktoken"}) {
    touch(data / file);
  }
  using Paths = std::vector<fs::path>;
  EXPECT_EQ(paths("kjv"), Paths{data / "kjv/kjv.txt"});
  EXPECT_EQ(paths("mnist"), Paths{data / "mnist"});
  EXPECT_EQ(paths("gpt2-bpe"), Paths{data / "gpt2-bpe"});
  EXPECT_EQ(paths("tiktoken"), (Paths{data / "tiktoken/cl100k_base.tiktoken", data / "tiktoken/r50k_base.tiktoken"}));
}

}  // namespace catalog_test
}  // namespace cautious::data
