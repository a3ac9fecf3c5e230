// evaluation.json of an image run, and what its report shows of it: which classes are taken for which, and the worst mistakes.
#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/matrix_chart.h"
#include "study/report_parts.h"

namespace cautious::study {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostMistakes = 40;

[[noreturn]] void refuse_evaluation(const std::filesystem::path& file, std::string_view why) {
  throw Error(Fault::data, fmt::format("{}; remove the file, or evaluate the run again", why), {.where = file.string()});
}

const Json& part_in(const Json& json, const char* key, bool (Json::*is_type)() const noexcept, std::string_view type,
                    const std::filesystem::path& file) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end()) refuse_evaluation(file, fmt::format("'{}' is missing", key));
  if (!((*found).*is_type)()) {
    refuse_evaluation(file, fmt::format("'{}' is {}, not {}", key, base::in_quotes(found->dump()), type));
  }
  return *found;
}

std::vector<std::string> classes_in(const Json& json, const std::filesystem::path& file) {
  std::vector<std::string> classes;
  for (const Json& name : part_in(json, "classes", &Json::is_array, "an array of names", file)) {
    if (!name.is_string()) refuse_evaluation(file, "'classes' holds something that is not a string");
    classes.push_back(name.get<std::string>());
  }
  if (classes.empty()) refuse_evaluation(file, "'classes' is empty");
  return classes;
}

std::vector<std::vector<std::int64_t>> confusion_in(const Json& json, std::size_t classes, const std::filesystem::path& file) {
  constexpr std::uint64_t kMostImages = 1ull << 40;
  std::vector<std::vector<std::int64_t>> rows;
  const auto refuse = [&] { refuse_evaluation(file, fmt::format("'confusion' is not {0} rows of {0} counts", classes)); };
  for (const Json& row : part_in(json, "confusion", &Json::is_array, "an array of rows", file)) {
    if (!row.is_array() || row.size() != classes) refuse();
    std::vector<std::int64_t>& counts = rows.emplace_back();
    for (const Json& count : row) {
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > kMostImages) refuse();
      counts.push_back(count.get<std::int64_t>());
    }
  }
  if (rows.size() != classes) refuse();
  return rows;
}

std::size_t class_in(const Json& json, const char* key, std::size_t classes, const std::filesystem::path& file) {
  const auto number = part_in(json, key, &Json::is_number_unsigned, "the number of a class", file).get<std::uint64_t>();
  if (number >= classes) refuse_evaluation(file, fmt::format("'{}' is {}, but there are {} classes", key, number, classes));
  return static_cast<std::size_t>(number);
}

// Only then it may go into a page.
bool is_png(std::string_view base64) {
  constexpr std::string_view kBegin = "iVBORw0KGgo",
                             kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  return base64.starts_with(kBegin) && base64.find_first_not_of(kDigits) == std::string_view::npos;
}

Mistake mistake_in(const Json& json, std::size_t classes, const std::filesystem::path& file) {
  Mistake mistake{.name = part_in(json, "name", &Json::is_string, "a string", file).get<std::string>(),
                  .label = class_in(json, "label", classes, file),
                  .predicted = class_in(json, "predicted", classes, file),
                  .probability = part_in(json, "probability", &Json::is_number, "a number", file).get<double>(),
                  .png = part_in(json, "png", &Json::is_string, "a string", file).get<std::string>()};
  if (!(mistake.probability >= 0 && mistake.probability <= 1)) {
    refuse_evaluation(file, fmt::format("'probability' is {}; valid: [0, 1]", mistake.probability));
  }
  if (!is_png(mistake.png))
    refuse_evaluation(file, fmt::format("'png' of {} is not a PNG in base64", base::in_quotes(mistake.name)));
  return mistake;
}

std::int64_t images_in(const std::vector<std::int64_t>& row) {
  return std::accumulate(row.begin(), row.end(), std::int64_t{0});
}

// "91.25"; "-" of none.
std::string percent_text(std::int64_t count, std::int64_t all) {
  return all == 0 ? "-" : fmt::format("{:.2f}", 100 * static_cast<double>(count) / static_cast<double>(all));
}

// "99.4%"; never "100.0%" of less.
std::string sure_text(double probability) {
  return probability > 0.9995 && probability < 1 ? "> 99.9%" : fmt::format("{:.1f}%", 100 * probability);
}

// "9125 of 10000 images are classified right (91.25%)."
std::string right_text(const Evaluation& evaluation) {
  std::int64_t right = 0, all = 0;
  for (std::size_t i = 0; i < evaluation.confusion.size(); ++i) {
    right += evaluation.confusion[i][i];
    all += images_in(evaluation.confusion[i]);
  }
  return fmt::format("{} of {} images are classified right ({}%).", right, all, percent_text(right, all));
}

// " Most often, Shirt is taken for T-shirt/top (112 of 1000), ..."; empty without mistakes.
std::string often_text(const Evaluation& evaluation) {
  constexpr std::size_t kShown = 5;
  struct Pair {
    std::int64_t count;
    std::size_t label, predicted;
  };
  std::vector<Pair> pairs;
  for (std::size_t row = 0; row < evaluation.classes.size(); ++row) {
    for (std::size_t column = 0; column < evaluation.classes.size(); ++column) {
      const std::int64_t count = evaluation.confusion[row][column];
      if (row != column && count > 0) pairs.push_back({count, row, column});
    }
  }
  std::ranges::stable_sort(pairs, std::ranges::greater{}, &Pair::count);
  pairs.resize(std::min(pairs.size(), kShown));
  std::vector<std::string> parts;
  for (const Pair& pair : pairs) {
    parts.push_back(fmt::format("{} is taken for {} ({} of {})", evaluation.classes[pair.label],
                                evaluation.classes[pair.predicted], pair.count, images_in(evaluation.confusion[pair.label])));
  }
  return parts.empty() ? "" : fmt::format(" Most often, {}.", fmt::join(parts, ", "));
}

}  // namespace

std::optional<Evaluation> evaluation_in(const std::filesystem::path& run) {
  const auto file = run / "evaluation.json";
  const auto text = base::read_file_if_any(file, base::kRecord);
  if (!text) return {};
  const Json json = base::parse_json<Json>(*text);
  if (!json.is_object()) refuse_evaluation(file, "not a JSON object");
  Evaluation evaluation{.classes = classes_in(json, file), .confusion = {}, .mistakes = {}};
  evaluation.confusion = confusion_in(json, evaluation.classes.size(), file);
  const Json& mistakes = part_in(json, "mistakes", &Json::is_array, "an array", file);
  if (mistakes.size() > kMostMistakes) {
    refuse_evaluation(file, fmt::format("'mistakes' has {} entries; valid: at most {}", mistakes.size(), kMostMistakes));
  }
  for (const Json& mistake : mistakes) {
    evaluation.mistakes.push_back(mistake_in(mistake, evaluation.classes.size(), file));
  }
  return evaluation;
}

report::Figure confusion_figure(const Evaluation& evaluation) {
  report::MatrixChart chart;
  chart.title = "Which class is taken for which";
  chart.description = right_text(evaluation) + often_text(evaluation);
  chart.classes = evaluation.classes;
  chart.counts = evaluation.confusion;
  std::string caption = chart.description;
  return {"confusion", std::move(chart), std::move(caption)};
}

report::Table confusion_table(const Evaluation& evaluation) {
  report::Table table{
      .name = "confusion", .title = "Which class is taken for which", .head = {"class"}, .rows = {}, .note = ""};
  table.head.insert(table.head.end(), evaluation.classes.begin(), evaluation.classes.end());
  for (std::size_t i = 0; i < evaluation.classes.size(); ++i) {
    std::vector<std::string>& row = table.rows.emplace_back(1, evaluation.classes[i]);
    for (const std::int64_t count : evaluation.confusion[i]) row.push_back(std::to_string(count));
  }
  return table;
}

report::Table classes_table(const Evaluation& evaluation) {
  report::Table table{.name = "classes",
                      .title = "Every class",
                      .head = {"class", "images", "top-1 accuracy (%)"},
                      .rows = {},
                      .note = right_text(evaluation)};
  for (std::size_t i = 0; i < evaluation.classes.size(); ++i) {
    const std::int64_t all = images_in(evaluation.confusion[i]);
    table.rows.push_back({evaluation.classes[i], std::to_string(all), percent_text(evaluation.confusion[i][i], all)});
  }
  return table;
}

std::vector<report::Picture> mistake_pictures(const Evaluation& evaluation) {
  std::vector<report::Picture> pictures;
  for (const Mistake& mistake : evaluation.mistakes) {
    pictures.push_back(
        {.png = mistake.png,
         .name = mistake.name,
         .lead = evaluation.classes[mistake.label],
         .text = fmt::format(", taken for {} ({})", evaluation.classes[mistake.predicted], sure_text(mistake.probability))});
  }
  return pictures;
}

}  // namespace cautious::study
