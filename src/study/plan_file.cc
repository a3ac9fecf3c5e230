// Plans from and to TOML. Read, every value becomes the text that --key=value would have; written, a value that reads back as
// itself as a number, a boolean or an array is one, and else a string.
#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"
#include "study/plan.h"

namespace cautious::study {
namespace {

using base::TomlEntry;
using base::TomlTable;
using base::TomlValue;

constexpr std::array<std::string_view, 11> kTop{"title", "about", "objective", "figure",   "seeds", "tune_seeds",
                                                "base",  "grid",  "arm",       "contrast", "paper"};
constexpr std::array<std::string_view, 5> kArm{"name", "density_of", "budget_of", "point_of", "grid"};
constexpr std::array<std::string_view, 4> kContrast{"a", "b", "best", "primary"};
constexpr std::array<std::string_view, 2> kPaper{"what", "number"};
constexpr std::size_t kTuneSeeds = 2;  // unless a plan says otherwise

std::string text_of(std::string_view key, const TomlValue& array) {
  std::vector<std::string> items;
  for (const TomlValue& item : array.items) items.push_back(item.text);
  if (std::ranges::all_of(array.items, [](const TomlValue& item) { return item.kind == TomlValue::Kind::string; })) {
    return run::to_toml(items);
  }
  for (const TomlValue& item : array.items) {
    if (!item.is_number()) item.refuse(fmt::format("{} has {} among other things", key, item.described()));
  }
  return fmt::format("{}", fmt::join(items, ","));
}

// Those of a table and of the sections in it.
void collect(std::vector<TomlEntry>& all, const std::string& prefix, const TomlValue& table, base::Names others) {
  const auto sections = run::config_sections();
  for (const TomlEntry& entry : table.entries) {
    if (std::ranges::find(others, entry.key) != others.end()) continue;
    const std::string name = prefix + entry.key;
    const bool is_section = std::ranges::find(sections, name) != sections.end();
    if (entry.value.kind == TomlValue::Kind::table) {
      if (!is_section) entry.value.refuse(base::unknown("section", name, sections));
      collect(all, name + ".", entry.value, {});
    } else if (is_section) {
      entry.value.refuse(fmt::format("{} is a section, not a value; write {}.<key> = <value>", name, name));
    } else {
      all.push_back({name, entry.at, entry.value});
    }
  }
}

class PlanReader {
 public:
  explicit PlanReader(const std::string& file) { plan_.lines = PlanLines(file); }

  Plan read(const TomlValue& value) {
    const TomlTable top{value};
    top.check_keys("key of a plan", kTop);
    plan_.title = top.string("title");
    plan_.about = top.string("about");
    plan_.objective = top.string("objective");
    plan_.figure = top.string("figure");
    for (const char* const key : {"objective", "figure"}) {
      if (const TomlValue* found = value.get(key)) plan_.lines.set(key, found->begin.line);
    }
    if (const TomlValue* seeds = value.get("seeds")) plan_.seeds = read_seeds("seeds", *seeds, 1, first_seeds);
    const TomlValue* const tune = value.get("tune_seeds");
    if (tune) plan_.tune_seeds = read_seeds("tune_seeds", *tune, 0, tuning_seeds);
    if (const TomlValue* base = top.table("base")) plan_.base = read_settings({*base, "[base]"}, "base");
    if (const TomlValue* grid = top.table("grid")) plan_.grid = read_grid({*grid, "[grid]"}, "grid");
    for (const TomlValue* arm : top.tables("arm")) read_arm({*arm, "[[arm]]"});
    for (const TomlValue* contrast : top.tables("contrast")) read_contrast({*contrast, "[[contrast]]"});
    for (const TomlValue* entry : top.tables("paper")) read_paper({*entry, "[[paper]]"});
    inherit_grid();
    if (!tune && chooses(plan_)) plan_.tune_seeds = tuning_seeds(kTuneSeeds);
    return std::move(plan_);
  }

 private:
  static std::vector<std::uint64_t> first_seeds(std::size_t count) {
    std::vector<std::uint64_t> seeds(count);
    std::iota(seeds.begin(), seeds.end(), 0);
    return seeds;
  }

  std::vector<std::uint64_t> read_seeds(const std::string& key, const TomlValue& value, std::int64_t least,
                                        std::vector<std::uint64_t> (*of_count)(std::size_t)) {
    constexpr std::int64_t kMost = 10000;
    constexpr std::string_view kValid = "valid: an array of whole numbers from 0, or their number";
    plan_.lines.set(key, value.begin.line);
    if (value.kind == TomlValue::Kind::integer) {
      if (value.integer < least || value.integer > kMost) {
        value.refuse(fmt::format("{} is {}; valid as a number: {} to {}", key, value.integer, least, kMost));
      }
      return of_count(static_cast<std::size_t>(value.integer));
    }
    if (value.kind != TomlValue::Kind::array) value.refuse(fmt::format("{} is neither an array nor a number; {}", key, kValid));
    std::vector<std::uint64_t> seeds;
    for (const TomlValue& seed : value.items) {
      if (seed.kind != TomlValue::Kind::integer || seed.integer < 0) {
        seed.refuse(fmt::format("{} has {}; {}", key, seed.described(), kValid));
      }
      seeds.push_back(static_cast<std::uint64_t>(seed.integer));
    }
    return seeds;
  }

  Overrides read_settings(const TomlTable& table, const std::string& part, base::Names others = {}) {
    Overrides all;
    for (const TomlEntry& entry : run_keys(table.value, others)) {
      plan_.lines.set(part + " " + entry.key, entry.value.begin.line);
      all.emplace_back(entry.key, typed_text(table, entry.key, entry.value));
    }
    return all;
  }

  std::vector<Axis> read_grid(const TomlTable& table, const std::string& part) {
    std::vector<Axis> axes;
    for (const TomlEntry& entry : run_keys(table.value)) {
      plan_.lines.set(part + " " + entry.key, entry.value.begin.line);
      axes.push_back(read_axis(table, entry));
    }
    return axes;
  }

  void read_arm(const TomlTable& table) {
    const std::string part = fmt::format("arm {}", plan_.arms.size());
    locate(part, table.value, kArm);
    check_arm_keys(table.value);
    Arm arm{.name = table.required_string("name"),
            .overrides = read_settings(table, part, kArm),
            .density_of = table.string("density_of"),
            .budget_of = table.string("budget_of"),
            .point_of = table.string("point_of")};
    const TomlValue* const grid = table.value.get("grid");
    if (grid && grid->kind == TomlValue::Kind::table) {
      arm.axes = read_grid({*grid, "[arm.grid]"}, part + " grid");
    } else {
      arm.grid = table.boolean("grid", true);
    }
    grid_given_.push_back(grid != nullptr);
    plan_.arms.push_back(std::move(arm));
  }

  // A word that is not a section and has no dot is meant as one of the arm's own.
  static void check_arm_keys(const TomlValue& table) {
    for (const TomlEntry& entry : table.entries) {
      const bool own = std::ranges::find(kArm, entry.key) != kArm.end();
      if (own || entry.value.kind == TomlValue::Kind::table || entry.key.find('.') != std::string::npos) continue;
      entry.value.refuse(base::unknown("key of [[arm]]", entry.key, kArm) + ", and a run's, as in optimizer.lr");
    }
  }

  void read_contrast(const TomlTable& table) {
    table.check_keys("key of [[contrast]]", kContrast);
    locate(fmt::format("contrast {}", plan_.contrasts.size()), table.value, kContrast);
    plan_.contrasts.push_back({.a = table.required_string("a"),
                               .b = table.required_string("b"),
                               .best = table.boolean("best", false),
                               .primary = table.boolean("primary", true)});
  }

  void read_paper(const TomlTable& table) {
    table.check_keys("key of [[paper]]", kPaper);
    const TomlValue* const number = table.value.get("number");
    plan_.paper.push_back({.what = table.required_string("what"),
                           .number = number && number->is_number() ? number->text : table.required_string("number")});
  }

  void locate(const std::string& part, const TomlValue& table, base::Names keys) {
    plan_.lines.set(part, table.begin.line);
    for (const std::string_view key : keys) {
      if (const TomlValue* value = table.get(key)) plan_.lines.set(fmt::format("{} {}", part, key), value->begin.line);
    }
  }

  // An arm whose point is chosen for another has that one's grid, unless it says otherwise, which is an Error of check().
  void inherit_grid() {
    for (std::size_t i = 0; i < plan_.arms.size(); ++i) {
      const auto other = std::ranges::find(plan_.arms, plan_.arms[i].chooser(), &Arm::name);
      if (other != plan_.arms.end() && !grid_given_[i]) plan_.arms[i].grid = other->grid;
    }
  }

  Plan plan_;
  std::vector<bool> grid_given_;  // of every arm
};

std::string in_toml(std::string_view text) { return run::to_toml(text); }

std::string value_of(const std::string& text) {
  using Kind = run::ConfigValue::Kind;
  const std::string string = in_toml(text);
  const bool plain = text.find_first_of("\n#'") == std::string::npos;
  try {
    const run::ConfigValue value = plain ? run::toml_value("", text) : run::ConfigValue{};
    const bool scalar = value.kind == Kind::number || value.kind == Kind::boolean;
    if (scalar && value.text == text) return text;
    if (value.kind == Kind::strings && run::to_toml(value.items) == text) return text;
  } catch (const Error&) {
    return string;  // a word
  }
  return string;
}

std::string lines_of(const Overrides& overrides) {
  std::string text;
  for (const auto& [key, value] : overrides) text += fmt::format("{} = {}\n", key, value_of(value));
  return text;
}

std::string text_of(const Axis& axis) {
  std::vector<std::string> values;
  for (const std::string& value : axis.values) values.push_back(value_of(value));
  return fmt::format("{} = [{}]\n", in_toml(axis.key), fmt::join(values, ", "));
}

std::string text_of(const Arm& arm) {
  std::string text = fmt::format("\n[[arm]]\nname = {}\n", in_toml(arm.name));
  if (!arm.density_of.empty()) text += fmt::format("density_of = {}\n", in_toml(arm.density_of));
  if (!arm.budget_of.empty()) text += fmt::format("budget_of = {}\n", in_toml(arm.budget_of));
  if (!arm.point_of.empty()) text += fmt::format("point_of = {}\n", in_toml(arm.point_of));
  if (!arm.grid) text += "grid = false\n";
  for (const Axis& axis : arm.axes) text += "grid." + text_of(axis);
  return text + lines_of(arm.overrides);
}

std::string text_of(const Contrast& contrast) {
  return fmt::format("\n[[contrast]]\na = {}\nb = {}\n{}{}", in_toml(contrast.a), in_toml(contrast.b),
                     contrast.best ? "best = true\n" : "", contrast.primary ? "" : "primary = false\n");
}

std::string text_of(const PaperNumber& entry) {
  return fmt::format("\n[[paper]]\nwhat = {}\nnumber = {}\n", in_toml(entry.what), in_toml(entry.number));
}

}  // namespace

std::vector<TomlEntry> run_keys(const TomlValue& table, base::Names others) {
  std::vector<TomlEntry> all;
  collect(all, "", table, others);
  for (TomlEntry& entry : all) std::ranges::replace(entry.key, '-', '_');
  std::ranges::stable_sort(all, {},
                           [](const TomlEntry& entry) { return std::pair(entry.value.begin.line, entry.value.begin.column); });
  return all;
}

std::string typed_text(const TomlTable& table, std::string_view key, const TomlValue& value) {
  using Kind = TomlValue::Kind;
  if (value.kind == Kind::array) return text_of(key, value);
  const bool simple = value.kind == Kind::string || value.kind == Kind::boolean || value.is_number();
  if (!simple) table.refuse_type(key, value, "a number, a boolean, a string or an array");
  return value.text;
}

Axis read_axis(const TomlTable& table, const TomlEntry& entry) {
  const auto& [key, at, values] = entry;
  if (values.kind != TomlValue::Kind::array) {
    values.refuse(fmt::format("{} of {} is {}, not an array; write \"{}\" = [...], or put the key under [base]", key,
                              table.name, base::in_quotes(typed_text(table, key, values)), key));
  }
  Axis axis{key, {}};
  for (const TomlValue& value : values.items) axis.values.push_back(typed_text(table, key, value));
  return axis;
}

Plan read_plan(const TomlValue& top, const std::string& file) { return PlanReader(file).read(top); }

Plan read_plan(const std::filesystem::path& file) {
  return read_plan(base::read_toml(file, {.what = "the plan"}), file.string());
}

namespace {

std::string settled(const std::string& name, const std::filesystem::path& folder) {
  std::error_code error;
  for (const std::filesystem::path& path : {folder / name, std::filesystem::path(name)}) {
    if (std::filesystem::exists(path, error)) return std::filesystem::absolute(path).lexically_normal().string();
  }
  return name;
}

void settle(Overrides& settings, const std::filesystem::path& folder) {
  constexpr std::array<std::string_view, 2> kLists{"data.path", "data.val_path"};
  constexpr std::array<std::string_view, 3> kPaths{"data.tokenizer", "eval.data", "model.from"};
  for (auto& [key, value] : settings) {
    if (std::ranges::find(kPaths, key) != kPaths.end() && !value.empty() && value != "bytes") value = settled(value, folder);
    if (std::ranges::find(kLists, key) == kLists.end()) continue;
    std::vector<std::string> names = run::to_words(key, {run::ConfigValue::Kind::typed, value});
    for (std::string& name : names) name = settled(name, folder);
    value = names.size() == 1 && names[0].find(',') == std::string::npos ? names[0] : run::to_toml(names);
  }
}

}  // namespace

void settle_paths(Plan& plan, const std::filesystem::path& folder) {
  settle(plan.base, folder);
  for (Arm& arm : plan.arms) settle(arm.overrides, folder);
}

std::string to_toml(const Plan& plan) {
  std::string text = fmt::format("title = {}\nabout = {}\n", in_toml(plan.title), in_toml(plan.about));
  if (!plan.objective.empty()) text += fmt::format("objective = {}\n", in_toml(plan.objective));
  if (!plan.figure.empty()) text += fmt::format("figure = {}\n", in_toml(plan.figure));
  text += fmt::format("seeds = [{}]\n", fmt::join(plan.seeds, ", "));
  if (!plan.tune_seeds.empty() || chooses(plan)) text += fmt::format("tune_seeds = [{}]\n", fmt::join(plan.tune_seeds, ", "));
  if (!plan.base.empty()) text += "\n[base]\n" + lines_of(plan.base);
  if (!plan.grid.empty()) text += "\n[grid]\n";
  for (const Axis& axis : plan.grid) text += text_of(axis);
  for (const Arm& arm : plan.arms) text += text_of(arm);
  for (const Contrast& contrast : plan.contrasts) text += text_of(contrast);
  for (const PaperNumber& entry : plan.paper) text += text_of(entry);
  return text;
}

}  // namespace cautious::study
