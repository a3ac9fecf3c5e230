// toml++ parses; every value becomes the text that --key=value would have, and check() and expand() say what is wrong with it.
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <numeric>
#include <system_error>
#include <utility>

#include <cautious/error.h>

#include "base/text.h"
#include "study/plan_check.h"
#include "study/plan_toml.h"

namespace cautious::study {
namespace {

constexpr std::array<std::string_view, 8> kTop{"title", "about", "seeds", "base", "grid", "arm", "contrast", "paper"};
constexpr std::array<std::string_view, 4> kArm{"name", "density_of", "budget_of", "grid"};
constexpr std::array<std::string_view, 4> kContrast{"a", "b", "best", "primary"};
constexpr std::array<std::string_view, 2> kPaper{"what", "number"};

std::string content_of(const std::filesystem::path& file) {
  const auto refuse_file = [&](const std::string& why) {
    throw Error(Fault::usage, fmt::format("{}: cannot read the plan: {}", file.string(), why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) refuse_file("is a directory");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_file(std::generic_category().message(errno));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) refuse_file(std::generic_category().message(errno));
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file), lines_(file) {}

  Plan read(const toml::table& top) {
    const Place place{file_, ""};
    check_keys(place, top, kTop);
    plan_.title = string_in(place, top, "title");
    plan_.about = string_in(place, top, "about");
    if (const toml::node* seeds = top.get("seeds")) read_seeds(*seeds);
    if (const toml::table* base = table_in(place, top, "base")) plan_.base = read_settings({file_, "[base]"}, *base, "base");
    if (const toml::table* grid = table_in(place, top, "grid")) read_grid(*grid);
    for (const toml::table* arm : tables_in(place, top, "arm")) read_arm(*arm);
    for (const toml::table* contrast : tables_in(place, top, "contrast")) read_contrast(*contrast);
    for (const toml::table* entry : tables_in(place, top, "paper")) read_paper(*entry);
    inherit_grid();
    return std::move(plan_);
  }

  const PlanLines& lines() const { return lines_; }

 private:
  void read_seeds(const toml::node& node) {
    constexpr std::int64_t kMost = 10000;
    constexpr std::string_view kValid = "valid: an array of whole numbers from 0, or how many to take of 0, 1, 2, ...";
    const Place place{file_, ""};
    lines_.set("seeds", line_of(node));
    if (const auto* count = node.as_integer()) {
      if (count->get() < 1 || count->get() > kMost) {
        refuse(place, node, fmt::format("seeds is {}; valid as a number: 1 to {}", count->get(), kMost));
      }
      plan_.seeds.resize(static_cast<std::size_t>(count->get()));
      std::iota(plan_.seeds.begin(), plan_.seeds.end(), 0);
      return;
    }
    const auto* array = node.as_array();
    if (!array) refuse(place, node, fmt::format("seeds is neither an array nor a number; {}", kValid));
    for (const toml::node& item : *array) {
      const auto* seed = item.as_integer();
      if (!seed) refuse(place, item, fmt::format("seeds has an entry that is no whole number; {}", kValid));
      if (seed->get() < 0) refuse(place, item, fmt::format("seeds has {}; {}", seed->get(), kValid));
      plan_.seeds.push_back(static_cast<std::uint64_t>(seed->get()));
    }
  }

  Overrides read_settings(const Place& place, const toml::table& table, const std::string& part, base::Names others = {}) {
    Overrides all;
    for (const Setting& setting : settings_in(place, table, others)) {
      lines_.set(part + " " + setting.key, line_of(*setting.value));
      all.emplace_back(setting.key, typed_text(place, setting.key, *setting.value));
    }
    return all;
  }

  void read_grid(const toml::table& table) {
    const Place place{file_, "[grid]"};
    for (const Setting& setting : settings_in(place, table)) {
      lines_.set("grid " + setting.key, line_of(*setting.value));
      const auto* values = setting.value->as_array();
      if (!values) {
        refuse(place, *setting.value,
               fmt::format("{} of [grid] is {}, not an array; write \"{}\" = [...], or put the key under [base]", setting.key,
                           base::in_quotes(typed_text(place, setting.key, *setting.value)), setting.key));
      }
      Axis axis{setting.key, {}};
      for (const toml::node& value : *values) axis.values.push_back(typed_text(place, setting.key, value));
      plan_.grid.push_back(std::move(axis));
    }
  }

  void read_arm(const toml::table& table) {
    const Place place{file_, "[[arm]]"};
    const std::string part = fmt::format("arm {}", plan_.arms.size());
    locate(part, table, kArm);
    check_arm_keys(place, table);
    Arm arm{.name = required(place, table, "name"),
            .overrides = read_settings(place, table, part, kArm),
            .density_of = string_in(place, table, "density_of"),
            .budget_of = string_in(place, table, "budget_of"),
            .grid = boolean_in(place, table, "grid", true)};
    grid_given_.push_back(table.contains("grid"));
    plan_.arms.push_back(std::move(arm));
  }

  // A word that is no section and has no dot is meant as one of the arm's own.
  void check_arm_keys(const Place& place, const toml::table& table) const {
    for (const auto& [key, node] : table) {
      const std::string_view meant = base::closest(key.str(), kArm);
      if (node.is_table() || meant == key.str() || key.str().find('.') != std::string_view::npos) continue;
      refuse(place, node, base::unknown("key of [[arm]]", key.str(), kArm) + ", and a run's, as in optimizer.lr");
    }
  }

  void read_contrast(const toml::table& table) {
    const Place place{file_, "[[contrast]]"};
    check_keys(place, table, kContrast);
    locate(fmt::format("contrast {}", plan_.contrasts.size()), table, kContrast);
    plan_.contrasts.push_back({.a = required(place, table, "a"),
                               .b = required(place, table, "b"),
                               .best = boolean_in(place, table, "best", false),
                               .primary = boolean_in(place, table, "primary", true)});
  }

  void read_paper(const toml::table& table) {
    const Place place{file_, "[[paper]]"};
    check_keys(place, table, kPaper);
    PaperNumber entry{.what = required(place, table, "what"), .number = ""};
    const toml::node* number = table.get("number");
    entry.number = number && number->is_number() ? typed_text(place, "number", *number) : required(place, table, "number");
    plan_.paper.push_back(std::move(entry));
  }

  std::string required(const Place& place, const toml::table& table, std::string_view key) const {
    if (!table.contains(key)) refuse(place, table, fmt::format("{} has no {}; write {} = \"...\"", place.table, key, key));
    return string_in(place, table, key);
  }

  void locate(const std::string& part, const toml::table& table, base::Names keys) {
    lines_.set(part, line_of(table));
    for (const std::string_view key : keys) {
      if (const toml::node* node = table.get(key)) lines_.set(fmt::format("{} {}", part, key), line_of(*node));
    }
  }

  // A control has the grid of the arm it follows, unless it says otherwise, which is an Error of check().
  void inherit_grid() {
    for (std::size_t i = 0; i < plan_.arms.size(); ++i) {
      const Arm* followed = followed_by(plan_, plan_.arms[i]);
      if (followed && !grid_given_[i]) plan_.arms[i].grid = followed->grid;
    }
  }

  std::string file_;
  PlanLines lines_;
  Plan plan_;
  std::vector<bool> grid_given_;  // of every arm
};

}  // namespace

Plan read_plan(const toml::table& top, const std::string& name) {
  Reader reader(name);
  Plan plan = reader.read(top);
  check(plan, reader.lines());
  Plan one = plan;
  one.seeds.resize(1);
  expand(one, reader.lines());  // seeds change no configuration's soundness
  return plan;
}

toml::table parsed(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(Fault::usage,
                fmt::format("{}:{}:{}: not TOML: {}", name, at.line, at.column, base::in_quotes(error.description())));
  }
}

Plan read_plan(const std::filesystem::path& file) {
  const std::string name = file.string();
  return read_plan(parsed(content_of(file), name), name);
}

}  // namespace cautious::study
