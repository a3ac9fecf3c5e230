// The columns of telemetry.
#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cautious::train {
namespace {

struct Column {
  std::string_view name;
  double (*value)(const Tally& tally);
};

constexpr std::array kColumns{
    Column{"ratio", [](const Tally& t) { return t.ratio(); }},
    Column{"ratio_strict", [](const Tally& t) { return t.ratio_strict(); }},
    Column{"rms_x", [](const Tally& t) { return t.rms_x(); }},
    Column{"rms_g", [](const Tally& t) { return t.rms_g(); }},
    Column{"rms_u", [](const Tally& t) { return t.rms_u(); }},
    Column{"decay_budget", [](const Tally& t) { return t.budget; }},
};

std::string_view kind_of(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != name.npos; };
  if (has("embed") || name == "lm_head.weight" || name == "cls_token" || name == "head.weight" || name == "fc.weight") {
    return name.ends_with("bias") ? "vectors" : "embedding";
  }
  if (has("conv") || name.ends_with("downsample.0.weight")) return "convolution";
  const bool matrix = name.ends_with("_proj.weight") || name.ends_with("attn.qkv.weight") ||
                      name.ends_with("attn.proj.weight") || (has(".mlp.fc") && name.ends_with("weight"));
  if (!matrix) return "vectors";
  return has("attn") ? "attention" : "mlp";
}

void append_tally(const std::string& front, const Tally& tally, std::vector<std::pair<std::string, double>>& values) {
  for (const Column& column : kColumns) values.emplace_back(front + std::string(column.name), column.value(tally));
}

}  // namespace

Telemetry::Telemetry(const std::vector<std::string>& names, bool each) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string kind(kind_of(names[i]));
    const auto known = std::find(parts_.begin(), parts_.end(), kind);
    if (known != parts_.end()) {
      members_[static_cast<std::size_t>(known - parts_.begin())].push_back(i);
    } else {
      parts_.push_back(kind);
      members_.push_back({i});
    }
  }
  for (std::size_t i = 0; each && i < names.size(); ++i) {
    parts_.push_back(names[i]);
    members_.push_back({i});
  }
}

std::vector<std::string> Telemetry::columns() const {
  std::vector<std::string> result;
  for (const Column& column : kColumns) result.emplace_back(column.name);
  for (const std::string& part : parts_) {
    for (const Column& column : kColumns) result.push_back(part + "/" + std::string(column.name));
  }
  return result;
}

void Telemetry::append(const StepReport& report, std::vector<std::pair<std::string, double>>& values) const {
  append_tally("", report.total, values);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    Tally sum;
    for (const std::size_t tensor : members_[part]) sum += report.tensors[tensor];
    append_tally(parts_[part] + "/", sum, values);
  }
}

}  // namespace cautious::train
