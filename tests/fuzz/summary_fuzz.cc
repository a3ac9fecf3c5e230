// libFuzzer over what a run and a study leave about their numbers; the first byte of the input says which file the rest is: a
// summary.json (text 't', images 'i', external 'x'), an evaluation.json 'e', a looks.jsonl 'l', the result.json 'r' or the last
// line 'o' of a user's program, the evaluation.json 'b' or samples.jsonl 's' of benchmarks, the tables of differences 'd' and
// of runs 'n' that a page of several studies is made of. What is read has only numbers that can be, and the page of the run is
// made of it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/tasks/journal.h"
#include "reader_fuzz.h"
#include "study/external_run.h"
#include "study/overview.h"
#include "study/report.h"
#include "study/report_parts.h"
#include "study/run_list.h"

namespace {

using namespace cautious;

bool is_usable(double number) { return std::isnan(number) || kFinite.contains(number); }

study::PlannedRun planned(run::TaskKind task) {
  study::PlannedRun run;
  run.config.task = task;
  run.config.objective.name = "loss";
  return run;
}

void check_summary(std::string_view text, run::TaskKind task) {
  const std::filesystem::path file = memory_folder() / "summary.json";
  write_bytes(file, text);
  const auto run = read_or_refuse([&] { return study::read_run(memory_folder(), planned(task)); }, file.string());
  const auto status = read_or_refuse([&] { return study::status_of_run(memory_folder(), true); }, file.string());
  const auto page = read_or_refuse([&] { return study::html_of(memory_folder()); }, file.string());
  demand(!run || (status && page));
  if (run) {
    for (const double number : {run->loss, run->beside[0], run->beside[1], run->decay_budget, run->seconds})
      demand(is_usable(number));
    for (const auto& [name, score] : run->scores) demand(kFinite.contains(score));
    demand(run->parameters >= 0 && run->seen >= 0);
    demand((run->status == study::RunStatus::done) == (*status == "done"));
  }
  std::filesystem::remove(file);
}

void check_evaluation(std::string_view text) {
  const std::filesystem::path file = memory_folder() / "evaluation.json";
  write_bytes(file, text);
  const auto read = read_or_refuse([&] { return study::evaluation_in(memory_folder()); }, file.string());
  const auto page = read_or_refuse([&] { return study::html_of(memory_folder()); }, file.string());
  demand(read.has_value() == page.has_value());
  if (read) {
    const study::Evaluation& evaluation = **read;
    demand(study::confusion_table(evaluation).rows.size() == evaluation.classes.size());
    for (const study::Mistake& mistake : evaluation.mistakes)
      demand(mistake.label < evaluation.classes.size() && mistake.predicted < evaluation.classes.size());
  }
  std::filesystem::remove(file);
}

void check_looks(std::string_view text) {
  const std::filesystem::path file = memory_folder() / "looks.jsonl";
  write_bytes(file, text);
  read_or_refuse([&] { return study::looks_of(memory_folder()); }, file.string() + ":", Fault::data);
}

// A benchmark of three items with two choices.
data::Task benchmark() {
  data::Task task;
  task.name = "piqa";
  for (int i = 0; i < 3; ++i) {
    data::TaskDoc& doc = task.docs.emplace_back();
    doc.continuations = {" yes", " no"};
    doc.gold = {0};
  }
  return task;
}

void check_benchmark(std::string_view text, bool described) {
  const std::filesystem::path folder = memory_folder() / "benchmark";
  static const data::Task task = benchmark();
  const nlohmann::ordered_json identity{{"tasks", {"piqa"}}, {"shots", 0}, {"seed", 1234}};
  std::filesystem::create_directories(folder);
  write_bytes(folder / "evaluation.json", described ? text : std::string_view(identity.dump()));
  write_bytes(folder / "samples.jsonl", described ? "" : text);
  const auto read = [&] { return data::TaskJournal(folder, identity).finished({&task}); };
  const auto items = described ? read_or_refuse(read, "--out ", Fault::usage)
                               : read_or_refuse(read, (folder / "samples.jsonl").string() + ":", Fault::data);
  if (!items) return;
  for (const auto& [name, finished] : *items) {
    demand(name == task.name && finished.cut <= finished.answers.size());
    demand(!finished.answers.empty() && finished.answers.rbegin()->first < task.docs.size());
  }
}

// Two studies that left the same table, one of differences or one of runs beside a good one.
void check_overview(std::string_view text, bool of_runs) {
  constexpr std::string_view kDifference =
      "a,point of a,b,point of b,outcome,seeds,difference,low,high,p,p (Holm),sd,measure,unit\n"
      "cwd,weight_decay=8,plain,weight_decay=2,lower,6,-0.1,-0.2,-0.01,0.01,0.02,0.05,loss,nats\n";
  const std::filesystem::path first = memory_folder() / "first", second = memory_folder() / "second";
  const std::filesystem::path file = std::filesystem::path("tables") / (of_runs ? "runs.csv" : "contrasts.csv");
  for (const std::filesystem::path& study : {first, second}) {
    std::filesystem::create_directories(study / "tables");
    if (of_runs) write_bytes(study / "tables" / "contrasts.csv", kDifference);
    write_bytes(study / file, text);
  }
  try {
    study::write_overview({first, second}, memory_folder() / "overview", of_runs ? "accuracy" : "");
  } catch (const Error& error) {
    const std::string message = error.what();
    demand(message.size() < 2000 && message.find('\n') == message.npos);
    demand(error.fault() == Fault::usage || message.starts_with((first / file).string() + ": "));
  }
}

void check_result(std::string_view text, bool printed) {
  const std::filesystem::path said = memory_folder() / "said.txt", file = memory_folder() / "result.json";
  std::filesystem::remove(file);
  write_bytes(printed ? said : file, text);
  study::ExternalRun run;
  run.directory = memory_folder();
  const auto result = read_or_refuse([&] { return study::reported(run, "loss", said); },
                                     printed ? "its last line is " : file.string() + ": ", Fault::data);
  if (!result) return;
  study::finish(run, *result);
  const auto again = read_or_refuse([&] { return study::read_run(memory_folder(), planned(run::TaskKind::external)); },
                                    memory_folder().string(), Fault::data);
  demand(again && (again->status == study::RunStatus::done) == kFinite.contains(result->objective));
  demand(again->status != study::RunStatus::done || again->loss == result->objective);
  std::filesystem::remove(memory_folder() / "summary.json");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool written = (write_bytes(memory_folder() / "config.toml", ""), true);
  (void)written;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0]) {
    case 't':
      check_summary(text, run::TaskKind::text);
      break;
    case 'i':
      check_summary(text, run::TaskKind::image);
      break;
    case 'x':
      check_summary(text, run::TaskKind::external);
      break;
    case 'e':
      check_evaluation(text);
      break;
    case 'l':
      check_looks(text);
      break;
    case 'b':
    case 's':
      check_benchmark(text, data[0] == 'b');
      break;
    case 'd':
    case 'n':
      check_overview(text, data[0] == 'n');
      break;
    case 'r':
    case 'o':
      check_result(text, data[0] == 'o');
      break;
    default:
      break;
  }
  return 0;
}
