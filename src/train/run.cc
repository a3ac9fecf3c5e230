// The loop over steps: what is due after each, and how a run ends.
#include "train/run.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "run/checkpoint.h"
#include "run/decay_trace.h"
#include "run/directory.h"
#include "train/trainer.h"

namespace cautious::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<std::string> tensor_names(const run::RunConfig& config) {
  std::vector<std::string> names;
  for (const model::Shape& shape : run::parameter_shapes(config)) names.push_back(shape.name);
  return names;
}

// Parameters, gradients, moments and the activations of one chunk of a step, in bytes.
double memory_needed(const run::RunConfig& config) {
  const std::int64_t chunk = config.train.batch_size / config.train.grad_accum;
  if (config.task == run::TaskKind::image) {
    const model::ImageModelSize size = size_of(config.model.image, chunk);
    return run::parameter_bytes(config) + static_cast<double>(size.activation_bytes);
  }
  const model::ModelSize size = size_of(config.model.shape, chunk, run::sequence_length(config), config.model.recompute);
  return run::parameter_bytes(config) + static_cast<double>(size.activation_bytes);
}

void check_memory(const run::RunConfig& config) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const double needed = memory_needed(config), available = memory_available();
  if (needed <= available) return;
  const bool image = config.task == run::TaskKind::image;
  throw Error(
      Fault::usage,
      fmt::format(
          "train.batch_size {} in {} chunk{}{} needs about {:.1f} GiB, but {:.1f} GiB are available; raise "
          "train.grad_accum, {}",
          config.train.batch_size, config.train.grad_accum, config.train.grad_accum == 1 ? "" : "s",
          image ? "" : fmt::format(" of {} tokens", run::sequence_length(config)), needed / kGiB, available / kGiB,
          image ? "or lower train.batch_size" : "set model.recompute=true, or lower train.batch_size or train.seq_len"));
}

// What the task is made from: when a run continues, weights and tokenizer are those of its checkpoint, and the model that it
// started from is not needed, except under adapters.
run::RunConfig with_checkpoint(const RunRequest& request) {
  run::RunConfig config = request.config;
  if (!request.resume || config.model.from.empty() || config.lora.rank > 0) return config;
  const auto saved = run::list_checkpoints(request.out / "checkpoints");
  if (saved.empty()) return config;
  config.model.from.clear();
  config.data.tokenizer = (saved.back().path / "tokenizer.json").string();
  return config;
}

// One run from its first or next step to its end.
class Run {
 public:
  Run(const RunRequest& request, const RunWatch& watch, Task& task, const run::RunDirectory& directory);
  RunResult go();

 private:
  void load(const std::vector<run::CheckpointInfo>& saved);
  std::string fault_now() const;
  void evaluate_now(run::MetricsRow& row);
  void log(const TrainStep& step, bool evaluating);
  void save();
  bool score_now();
  std::vector<std::string> columns() const;
  // Tokens or images per second since `step`, when training_ was `seconds`.
  double rate(std::int64_t step, double seconds) const {
    return static_cast<double>((trainer_.done() - step) * run::units_per_step(config_)) / (training_ - seconds);
  }
  double elapsed() const { return earlier_ + seconds_since(start_); }
  std::string validation_text() const;
  void say(const std::string& line);
  RunResult end(Outcome outcome, std::string reason = {});
  RunResult diverged(std::int64_t step, const std::string& fault);

  const run::RunConfig& config_;
  const RunWatch& watch_;
  Task& task_;
  const Measures& measures_;
  const run::RunDirectory& directory_;
  std::int64_t steps_;
  Trainer trainer_;
  Telemetry telemetry_;
  RunState state_;
  std::optional<run::MetricsWriter> metrics_;
  std::optional<run::DecayTraceWriter> trace_;
  Clock::time_point start_ = Clock::now();
  std::int64_t first_step_ = 0, row_step_ = 0;  // steps done when this process began, and at the last row
  double earlier_ = 0;                          // seconds of earlier processes
  double training_ = 0, row_training_ = 0;      // seconds of this one in steps, and at the last row
};

Run::Run(const RunRequest& request, const RunWatch& watch, Task& task, const run::RunDirectory& directory)
    : config_(request.config),
      watch_(watch),
      task_(task),
      measures_(measures_of(request.config.task)),
      directory_(directory),
      steps_(steps_of(request.config)),
      trainer_(request.config, task),
      telemetry_(trainer_.names(), request.config.log.tensors),
      state_(start_of(request.config.task)) {
  const std::vector<run::CheckpointInfo> saved = run::list_checkpoints(directory.checkpoints());
  state_.data = task.fingerprint();
  if (!saved.empty()) {
    load(saved);
    watch.say(fmt::format("continuing after step {} of {}", state_.step, steps_));
  }
  earlier_ = state_.seconds;
  first_step_ = row_step_ = state_.step;
  metrics_.emplace(directory.path(), columns(), state_.step, config_.log.tensorboard);
  if (config_.log.decay_trace) trace_.emplace(directory.path(), trainer_.names(), state_.step);
}

void Run::load(const std::vector<run::CheckpointInfo>& saved) try {
  const RunState before = read_state(saved.back().path / "state.json", config_.task);
  if (before.data != state_.data) {
    throw Error(Fault::usage,
                fmt::format("data.path is not what {} was trained on: {} changed; restore it, or start a new run with another "
                            "--out",
                            saved.back().path.string(),
                            config_.task == run::TaskKind::image ? "the images have" : "the text or the tokenizer has"));
  }
  state_ = before;
  trainer_.load(saved.back().path, state_.step);
} catch (const Error& error) {
  if (error.fault() != Fault::data || saved.size() < 2) throw;
  throw Error(Fault::data, fmt::format("{}; to continue from step {}, move {} elsewhere", error.what(), saved.rbegin()[1].step,
                                       saved.back().path.string()));
}

std::vector<std::string> Run::columns() const {
  const std::string unit(run::unit_of(config_.task));
  std::vector<std::string> all{"step", unit, "epoch", "loss"};
  const auto add = [&](const std::vector<std::string>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(measures_.columns);
  add({"lr", "weight_decay", "grad_norm", "clip_scale", unit + "_per_s", "seconds", "time"});
  add(telemetry_.columns());
  return all;
}

// Of what the next checkpoint would hold.
std::string Run::fault_now() const {
  const std::string fault = fault_of(state_.last);
  return fault.empty() ? fault_of_parameters(trainer_.rms(), state_.start_norm) : fault;
}

void Run::evaluate_now(run::MetricsRow& row) {
  state_.last = trainer_.evaluate();
  const double objective = state_.last.numbers[measures_.objective];
  if (objective < state_.best || std::isnan(state_.best)) {
    state_.best = objective;
    state_.best_step = trainer_.done();
  }
  for (std::size_t i = 0; i < measures_.columns.size(); ++i) {
    row.values.emplace_back(measures_.columns[i], state_.last.numbers[i]);
  }
}

void Run::log(const TrainStep& step, bool evaluating) {
  const Tally& total = step.report->total;
  const std::string unit(run::unit_of(config_.task));
  run::MetricsRow row{trainer_.done(),
                      {{unit, static_cast<double>(trainer_.done() * run::units_per_step(config_))},
                       {"epoch", task_.epochs(trainer_.done())},
                       {"loss", state_.loss_sum / static_cast<double>(state_.losses)}}};
  if (evaluating) evaluate_now(row);
  row.values.insert(row.values.end(), {{"lr", step.lr},
                                       {"weight_decay", step.weight_decay},
                                       {"grad_norm", std::sqrt(total.g2)},
                                       {"clip_scale", step.report->clip_scale},
                                       {unit + "_per_s", rate(row_step_, row_training_)},
                                       {"seconds", elapsed()},
                                       {"time", static_cast<double>(std::time(nullptr))}});
  telemetry_.append(*step.report, row.values);
  metrics_->add(row);
  if (watch_.row) watch_.row(row);
  if (evaluating && config_.task == run::TaskKind::image) {
    base::write_atomically(directory_.path() / "summary.csv", summary_csv(run::read_metrics(directory_.metrics())));
  }
  state_.loss_sum = 0;
  state_.losses = 0;
  row_step_ = trainer_.done();
  row_training_ = training_;
}

void Run::save() {
  state_.step = trainer_.done();
  state_.seconds = elapsed();
  try {
    run::write_checkpoint(directory_.checkpoints(), state_.step, config_.checkpoint.keep,
                          [&](const std::filesystem::path& aside) {
                            trainer_.save(aside);
                            task_.describe(aside);
                            base::write_atomically(aside / "state.json", to_json(state_, config_.task));
                          });
  } catch (const Error& error) {
    const std::vector<run::CheckpointInfo> saved = run::list_checkpoints(directory_.checkpoints());
    throw Error(error.fault(), fmt::format("{}; {}; when this is fixed, continue with: {}", error.what(),
                                           saved.empty() ? "there is no checkpoint yet"
                                                         : "the newest checkpoint is " + saved.back().path.string(),
                                           resume_command(directory_.path())));
  }
  directory_.log(fmt::format("checkpoint of step {}", state_.step));
}

// Whether it came to its end. The last checkpoint is saved by then, so a run that is stopped here has lost no step.
bool Run::score_now() {
  struct Stopped {};
  try {
    state_.scores = trainer_.score(directory_.path(), [&](double fraction) {
      if (watch_.stop()) throw Stopped{};
      watch_.live.show_fraction(fraction, "benchmarks");
    });
  } catch (const Stopped&) {
    return false;
  }
  return true;
}

RunResult Run::end(Outcome outcome, std::string reason) {
  state_.step = trainer_.done();
  state_.seconds = elapsed();
  base::write_atomically(directory_.summary(), summary_json(config_, state_, outcome));
  return {outcome, state_, std::move(reason)};
}

RunResult Run::diverged(std::int64_t step, const std::string& fault) {
  std::string reason = fmt::format("in step {}: {}", step, fault);
  directory_.log("diverged " + reason);
  return end(Outcome::diverged, std::move(reason));
}

// Both into the log and before the user's eyes.
void Run::say(const std::string& line) {
  directory_.log(line);
  watch_.say(line);
}

std::string Run::validation_text() const {
  const double objective = state_.last.numbers[measures_.objective];
  if (std::isnan(objective)) return "";
  return config_.task == run::TaskKind::image ? fmt::format("  val error {:.2f}%", objective)
                                              : fmt::format("  val {:.4f}", objective);
}

RunResult Run::go() {
  const auto due = [this](std::int64_t every) { return every > 0 && trainer_.done() % every == 0; };
  std::int64_t saved = trainer_.done();
  watch_.live.begin_at(saved);
  while (trainer_.done() < steps_) {
    if (watch_.stop()) {
      if (saved == trainer_.done()) return end(Outcome::stopped);
      if (const std::string fault = fault_now(); !fault.empty()) return diverged(trainer_.done(), fault);
      save();
      return end(Outcome::stopped);
    }
    const Clock::time_point before = Clock::now();
    const std::int64_t number = trainer_.done() + 1;
    const TrainStep step = trainer_.step();
    training_ += seconds_since(before);
    if (const std::string fault = fault_of(step, state_.start_norm); !fault.empty()) return diverged(number, fault);
    if (state_.start_norm == 0) state_.start_norm = step.report->total.rms_x();
    state_.loss_sum += step.loss;
    state_.losses += 1;
    state_.decay_budget += step.report->total.budget;
    if (trace_) trace_->add(*step.report);
    const bool last = number == steps_, evaluating = last || due(config_.eval.every);
    const bool saving = last || due(config_.checkpoint.every);
    if (evaluating || due(config_.log.every)) log(step, evaluating);
    if (last) task_.finish(directory_.path());
    if (evaluating || saving) {
      if (const std::string fault = fault_now(); !fault.empty()) return diverged(number, fault);
    }
    if (saving) {
      save();
      saved = number;
    }
    for (const std::string& notice : task_.notices()) say(notice);
    watch_.live.show(
        number, steps_,
        fmt::format("loss {:.4f}{}  lr {:.2e}  {} {}", step.loss, validation_text(), step.lr,
                    base::count_text(rate(first_step_, 0)), config_.task == run::TaskKind::image ? "img/s" : "tok/s"));
  }
  return end(score_now() ? Outcome::done : Outcome::stopped);
}

}  // namespace

std::unique_ptr<Task> make_task(const run::RunConfig& config, const Progress& progress) {
  return config.task == run::TaskKind::image ? make_image_task(config, progress) : make_text_task(config, progress);
}

std::string resume_command(const std::filesystem::path& out) {
  return fmt::format("cautious train --out {} --resume", base::shell_word(out));
}

double memory_available() {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    double kilobytes = 0;
    if (word == "MemAvailable:" && info >> kilobytes) return kilobytes * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

RunResult run_training(const RunRequest& request, const RunWatch& watch, const std::function<void(const RunPlan&)>& planned) {
  const run::RunConfig& config = request.config;
  at::set_num_threads(config.train.threads);
  check_memory(config);
  const std::unique_ptr<Task> task = make_task(with_checkpoint(request), [&](const std::string& what, double fraction) {
    watch.preparing();
    watch.live.show_fraction(fraction, what);
  });
  watch.live.finish();
  reference_run(config, tensor_names(config));
  const run::RunDirectory directory =
      request.resume ? run::RunDirectory::open(request.out) : run::RunDirectory::create(request.out, to_toml(config));
  planned(task->plan());
  directory.log(request.resume ? "continued" : "started");
  Run run(request, watch, *task, directory);
  RunResult result = run.go();
  watch.live.finish();
  return result;
}

}  // namespace cautious::train
