// `cautious data`: which sets of real data there are, and fetching them.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "data/corpus.h"
#include "data/sets/catalog.h"

namespace cautious::cli {
namespace {

constexpr const char* kDataExamples =
    "  cautious data list\n"
    "  cautious data get gcide gpt2-bpe\n"
    "  cautious data get moby-dick --cache cache";

struct DataArguments {
  std::vector<std::string> names;
  std::string cache;
  bool cache_given = false, json = false;

  std::filesystem::path folder() const {
    if (cache_given && cache.empty()) throw Error(Fault::usage, "--cache is empty; give a directory");
    return cache_given ? std::filesystem::path(cache) : data::default_cache();
  }
};

std::string json_line(const data::KnownSet& set, const std::filesystem::path& cache) {
  nlohmann::ordered_json row = {{"name", set.name},
                                {"content", cautious::name_of(set.content)},
                                {"megabytes", set.megabytes},
                                {"licence", set.licence},
                                {"client", set.client == data::Client::apt ? "apt" : "npm"},
                                {"packages", set.packages},
                                {"sha256", nullptr},
                                {"what", set.what},
                                {"fetched", data::fetched(set, cache)},
                                {"place", data::place_of(set, cache).string()}};
  if (!set.sha256.empty()) row["sha256"] = set.sha256;
  return row.dump() + "\n";
}

std::string packages(const data::KnownSet& set) {
  return fmt::format("{} {}", set.client == data::Client::apt ? "apt" : "npm", fmt::join(set.packages, " "));
}

int list(const DataArguments& args) {
  const std::filesystem::path cache = args.folder();
  constexpr const char* kRow = "{:<14} {:<12} {:>6} {:<8} {:<37} {:<24} {}\n";
  std::string text;
  if (!args.json) text = fmt::format(fmt::runtime(kRow), "name", "content", "MB", "fetched", "package", "licence", "what");
  for (const data::KnownSet& set : data::known_sets()) {
    text += args.json ? json_line(set, cache)
                      : fmt::format(fmt::runtime(kRow), set.name, cautious::name_of(set.content),
                                    fmt::format("{:.1f}", set.megabytes), data::fetched(set, cache) ? "yes" : "no",
                                    packages(set), set.licence, set.what);
  }
  base::print(text);
  return 0;
}

int get(const DataArguments& args) {
  const std::filesystem::path cache = args.folder();
  std::vector<const data::KnownSet*> sets;
  for (const std::string& name : args.names) sets.push_back(&data::known_set(name));
  for (const data::KnownSet* set : sets) {
    if (data::fetched(*set, cache)) base::tell(fmt::format("{}: already fetched\n", set->name));
    data::fetch(*set, cache, [](const std::string& line) { base::tell(fmt::format("{}\n", line)); });
    base::tell(fmt::format("{}: licence: {}\n", set->name, set->licence));
    for (const std::filesystem::path& path : data::paths_to_use(*set, cache)) base::print(path.string() + "\n");
  }
  return 0;
}

}  // namespace

void add_data(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<DataArguments>();
  CLI::App& data = *app.add_subcommand("data", "List and fetch real data, tokenizers and a model.");
  data.footer(kDataExamples);
  data.require_subcommand(1);
  const auto add_cache = [args](CLI::App& verb) {
    const auto note = [args](const std::string& text) {
      args->cache = text;
      args->cache_given = true;
    };
    verb.add_option_function<std::string>("--cache", note, "Where data is kept (default: your cache directory)")
        ->type_name("DIR");
  };
  CLI::App& sets =
      *data.add_subcommand("list", "List the sets: content, size, licence, package, and whether they have been fetched.");
  sets.footer(kDataExamples);
  sets.add_flag("--json", args->json, "One JSON object per line");
  add_cache(sets);
  sets.callback([args, &chosen] { chosen = [args] { return list(*args); }; });

  CLI::App& fetching = *data.add_subcommand("get", "Fetch sets with apt-get or npm and print the paths to use.");
  fetching.footer(kDataExamples);
  fetching.add_option("NAME", args->names, "Names of sets, as printed by 'cautious data list'")->required()->type_name("");
  add_cache(fetching);
  fetching.callback([args, &chosen] { chosen = [args] { return get(*args); }; });
}

}  // namespace cautious::cli
