#include "lab/toy_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "recipe/names.h"

namespace cautious {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRowsPerPath = 500;

Json json(ToyPoint p) { return {p.x, p.y}; }

Json json(const ToyRun& run) {
  Json j{{"arm", key_of(run.arm)},         {"end", json(run.end)},        {"f", run.f},
         {"to_manifold", run.to_manifold}, {"to_front", run.to_front},    {"to_local_front", run.to_local_front},
         {"to_box", run.to_box},           {"in_box", run.to_box <= kOn}, {"front_arrival_step", nullptr},
         {"front_slide", nullptr}};
  if (run.arrival) {
    j["front_arrival_step"] = *run.arrival;
    j["front_slide"] = run.slide;
  }
  return j;
}

Json json(const ToyStudy& study) {
  Json runs = Json::array();
  for (const ToyRun& run : study.runs) runs.push_back(json(run));
  return {{"objective", study.objective->name},
          {"start", json(study.runs.front().path.front())},
          {"box", study.box},  // null where infinite
          {"least_f_in_box", study.least_in_box},
          {"runs", runs},
          {"verdict", verdict(study)}};
}

}  // namespace

std::string settings(const ToyOptions& options) {
  return fmt::format("{} steps, lr {} ({}), β₁ {}, β₂ {}, ε {}; λ = {} for AdamW and CWD", options.steps, options.lr,
                     names_of(options.schedule)[static_cast<std::size_t>(options.schedule)], options.beta1, options.beta2,
                     options.eps, options.weight_decay);
}

std::string in_words(const ToyStudy& study) {
  std::string words = fmt::format("{}: ", study.objective->name);
  const auto sentences = verdict(study);
  for (std::size_t i = 0; i < sentences.size(); ++i) words += sentences[i] + (i + 1 < sentences.size() ? ". " : ".");
  return words;
}

std::string_view in_box(const ToyStudy& study, const ToyRun& run) {
  return !std::isfinite(study.box) ? "-" : run.to_box <= kOn ? "yes" : "no";
}

std::string toy_table(std::span<const ToyStudy> studies) {
  std::string table = fmt::format("{:<10}{:<12}{:>18}{:>11}{:>15}{:>11}{:>8}\n", "objective", "arm", "end point", "f",
                                  "to minimisers", "to front", "in box");
  for (const ToyStudy& study : studies) {
    for (const ToyRun& run : study.runs) {
      table += fmt::format("{:<10}{:<12}{:>18}{:>11.2e}{:>15.2e}{:>11.2e}{:>8}\n", study.objective->name, name_of(run.arm),
                           fmt::format("({:.4f}, {:.4f})", run.end.x, run.end.y), run.f, run.to_manifold, run.to_front,
                           in_box(study, run));
    }
  }
  return table;
}

std::string toy_csv(std::span<const ToyStudy> studies) {
  std::string csv = "objective,arm,step,x,y,f\n";
  for (const ToyStudy& study : studies) {
    for (const ToyRun& run : study.runs) {
      const std::size_t last = run.path.size() - 1, stride = std::max<std::size_t>(1, last / kRowsPerPath);
      for (std::size_t t = 0; t <= last; t = t < last ? std::min(t + stride, last) : last + 1) {
        const ToyPoint p = run.path[t];
        csv += fmt::format("{},{},{},{},{},{}\n", study.objective->name, key_of(run.arm), t, to_text(p.x), to_text(p.y),
                           to_text(study.objective->value(p)));
      }
    }
  }
  return csv;
}

std::string toy_json(std::span<const ToyStudy> studies) {
  const ToyOptions& options = studies.front().options;
  Json all = Json::array();
  for (const ToyStudy& study : studies) all.push_back(json(study));
  const Json document{{"lr", options.lr},
                      {"weight_decay", options.weight_decay},
                      {"beta1", options.beta1},
                      {"beta2", options.beta2},
                      {"eps", options.eps},
                      {"steps", options.steps},
                      {"schedule", names_of(options.schedule)[static_cast<std::size_t>(options.schedule)]},
                      {"on_within", kOn},
                      {"near_within", kNear},
                      {"studies", all}};
  return document.dump(2) + "\n";
}

}  // namespace cautious
