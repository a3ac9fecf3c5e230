// A plan as TOML. A value that is a number, a boolean or an array when read back as itself is written as one, else as a string.
#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"
#include "study/plan.h"

namespace cautious::study {
namespace {

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

std::string text_of(const Arm& arm) {
  std::string text = fmt::format("\n[[arm]]\nname = {}\n", in_toml(arm.name));
  if (!arm.density_of.empty()) text += fmt::format("density_of = {}\n", in_toml(arm.density_of));
  if (!arm.budget_of.empty()) text += fmt::format("budget_of = {}\n", in_toml(arm.budget_of));
  if (!arm.grid) text += "grid = false\n";
  return text + lines_of(arm.overrides);
}

std::string text_of(const Axis& axis) {
  std::vector<std::string> values;
  for (const std::string& value : axis.values) values.push_back(value_of(value));
  return fmt::format("{} = [{}]\n", in_toml(axis.key), fmt::join(values, ", "));
}

std::string text_of(const Contrast& contrast) {
  return fmt::format("\n[[contrast]]\na = {}\nb = {}\n{}{}", in_toml(contrast.a), in_toml(contrast.b),
                     contrast.best ? "best = true\n" : "", contrast.primary ? "" : "primary = false\n");
}

std::string text_of(const PaperNumber& entry) {
  return fmt::format("\n[[paper]]\nwhat = {}\nnumber = {}\n", in_toml(entry.what), in_toml(entry.number));
}

}  // namespace

std::string to_toml(const Plan& plan) {
  std::string text = fmt::format("title = {}\nabout = {}\nseeds = [{}]\n", in_toml(plan.title), in_toml(plan.about),
                                 fmt::join(plan.seeds, ", "));
  if (!plan.base.empty()) text += "\n[base]\n" + lines_of(plan.base);
  if (!plan.grid.empty()) text += "\n[grid]\n";
  for (const Axis& axis : plan.grid) text += text_of(axis);
  for (const Arm& arm : plan.arms) text += text_of(arm);
  for (const Contrast& contrast : plan.contrasts) text += text_of(contrast);
  for (const PaperNumber& entry : plan.paper) text += text_of(entry);
  return text;
}

}  // namespace cautious::study
