// The loop over steps: what is due after each, and how a run ends.
#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "run/checkpoint.h"
#include "run/decay_trace.h"
#include "run/directory.h"
#include "run/log_command.h"
#include "run/seal.h"
#include "train/trainer.h"

namespace cautious::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One run from its first or next step to its end.
class Run {
 public:
  // The directory is the first rank's; null in others, which keep no files.
  Run(const RunRequest& request, const RunWatch& watch, ranks::World& world, Task& task, const run::RunDirectory* directory);
  RunResult go();

 private:
  void load();
  void begin_again();
  void load_from(const std::vector<run::CheckpointInfo>& saved);
  bool asked();
  std::string fault_now() const;
  void evaluate_now(run::MetricsRow& row);
  void log(const TrainStep& step, bool evaluating);
  void write(run::MetricsRow& row, const StepReport& report, bool evaluating);
  void save(bool best = false);
  bool score_now();
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
  ranks::World& world_;
  Task& task_;
  const run::Measures& measures_;
  const run::RunDirectory* directory_;
  std::vector<std::string> changed_;
  std::int64_t steps_;
  Trainer trainer_;
  Telemetry telemetry_;
  RunState state_;
  ranks::Traffic traffic_;  // of steps
  std::optional<run::MetricsWriter> metrics_;
  std::optional<run::DecayTraceWriter> trace_;
  std::optional<run::LogCommand> command_;
  Clock::time_point start_ = Clock::now(), saved_ = start_;
  bool redefined_ = false, overdue_ = false;    // the last checkpoint has other values; it is older than it should be
  std::int64_t first_step_ = 0, row_step_ = 0;  // steps done when this process began, and at the last row
  double earlier_ = 0;                          // seconds of earlier processes
  double training_ = 0, row_training_ = 0;      // seconds of this one in steps, and at the last row
};

Run::Run(const RunRequest& request, const RunWatch& watch, ranks::World& world, Task& task, const run::RunDirectory* directory)
    : config_(request.config),
      watch_(watch),
      world_(world),
      task_(task),
      measures_(run::measures_of(request.config.task)),
      directory_(directory),
      changed_(request.changed),
      steps_(steps_of(request.config)),
      trainer_(request.config, task, world),
      telemetry_(trainer_.names(), request.config.log.tensors),
      state_{run::start_of(request.config.task)} {
  state_.data = task.fingerprint();
  state_.config = run::computing_keys(config_);
  world.agree("data", fmt::format("fingerprint {}", state_.data));
  if (request.resume) load();
  earlier_ = state_.seconds;
  first_step_ = row_step_ = state_.step;
  if (directory == nullptr) return;
  if (request.resume) run::tidy_checkpoints(directory->checkpoints(), config_.checkpoint.keep);
  metrics_.emplace(directory->path(), columns_of(config_.task, telemetry_.columns()), state_.step, config_.log.tensorboard);
  if (config_.log.decay_trace) trace_.emplace(directory->path(), trainer_.names(), state_.step);
  if (!config_.log.command.empty()) {
    command_.emplace(config_, directory->path(), state_.step, [this](const std::string& line) { say(line); });
  }
}

// The first rank knows whether there is a checkpoint, and sends what is in it.
void Run::load() {
  std::vector<run::CheckpointInfo> saved;
  if (directory_ != nullptr) saved = run::list_checkpoints(directory_->checkpoints());
  if (world_.gather(saved.empty() ? 0 : 1).front() == 0) return begin_again();
  load_from(saved);
  watch_.say(fmt::format("continuing after step {} of {}", state_.step, steps_));
}

// A run that was killed before its first checkpoint.
void Run::begin_again() {
  if (directory_ == nullptr) return;
  const std::string changes = changes_since(directory_->config(), config_, changed_);
  if (!changes.empty()) base::write_atomically(directory_->config(), to_toml(config_));
  say("there is no checkpoint: starting with step 1" + (changes.empty() ? "" : "; " + changes));
}

void Run::load_from(const std::vector<run::CheckpointInfo>& saved) try {
  const std::filesystem::path folder = saved.empty() ? "" : saved.back().path;
  if (directory_ != nullptr) {
    const run::SavedState before = read_checkpoint(saved.back(), config_, state_.data);
    if (const std::string changes = changes_since(before, config_, changed_); !changes.empty()) {
      base::write_atomically(directory_->config(), to_toml(config_));
      say(changes + (before.step == steps_ ? "; no step is left" : ""));
      redefined_ = true;
    }
    static_cast<run::SavedState&>(state_) = before;
    state_.config = run::computing_keys(config_);
  }
  // What the other ranks go by.
  state_.step = world_.gather(state_.step).front();
  state_.start_norm = world_.gather(state_.start_norm).front();
  trainer_.load(folder, state_.step);
} catch (const Error& error) {
  if (error.fault() != Fault::data || saved.size() < 2) throw;
  throw Error(Fault::data, fmt::format("{}; to continue from step {}, move {} elsewhere", error.what(), saved.rbegin()[1].step,
                                       saved.back().path.string()));
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
  if (directory_ != nullptr && !config_.log.prompt.empty()) row.sample = trainer_.sample();
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
  if (directory_ != nullptr) write(row, *step.report, evaluating);
  state_.loss_sum = 0;
  state_.losses = 0;
  row_step_ = trainer_.done();
  row_training_ = training_;
}

void Run::write(run::MetricsRow& row, const StepReport& report, bool evaluating) {
  telemetry_.append(report, row.values);
  metrics_->add(row);
  if (watch_.row) watch_.row(row);
  if (command_) command_->send(to_json(row));
  if (evaluating && config_.task == run::TaskKind::image) {
    base::write_atomically(directory_->path() / "summary.csv", summary_csv(run::read_metrics(directory_->metrics())));
  }
}

void Run::save(bool best) {
  saved_ = Clock::now();
  state_.step = trainer_.done();
  state_.seconds = elapsed();
  if (directory_ == nullptr) return trainer_.save({});
  directory_->check_there();
  try {
    // A checkpoint needs all that was written before it.
    metrics_->sync();
    if (trace_) trace_->sync();
    run::write_checkpoint(
        directory_->checkpoints(), state_.step, {config_.checkpoint.keep, best}, [&](const std::filesystem::path& aside) {
          trainer_.save(aside);
          task_.describe(aside);
          base::write_atomically(aside / "state.json", run::sealed(run::to_json(state_, config_.task), aside));
        });
  } catch (const Error& error) {
    const std::vector<run::CheckpointInfo> saved = run::list_checkpoints(directory_->checkpoints());
    throw Error(error.fault(), fmt::format("{}; {}; when this is fixed, continue with: {}", error.what(),
                                           saved.empty() ? "there is no checkpoint yet"
                                                         : "the newest checkpoint is " + saved.back().path.string(),
                                           resume_command(directory_->path())));
  }
  directory_->log(fmt::format("checkpoint of step {}", state_.step));
}

// Whether it came to its end. The last checkpoint is saved by then, so a run that is stopped here has lost no step.
bool Run::score_now() {
  if (directory_ == nullptr) return true;
  struct Stopped {};
  try {
    state_.scores = trainer_.score(directory_->path(), [&](double fraction) {
      if (watch_.stop()) throw Stopped{};
      world_.at_step(trainer_.done());
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
  state_.ranks = world_.ranks();
  state_.optimizer_bytes = trainer_.optimizer_bytes();
  if (const std::int64_t steps = state_.step - first_step_; steps > 0) state_.traffic = traffic_ / steps;
  if (directory_ != nullptr) {
    directory_->check_there();
    const std::string summary = summary_json(config_, state_, outcome);
    base::write_atomically(directory_->summary(), summary);
    if (command_) command_->finish(summary, outcome == Outcome::stopped);
  }
  return {outcome, state_, std::move(reason)};
}

RunResult Run::diverged(std::int64_t step, const std::string& fault) {
  std::string reason = fmt::format("in step {}: {}", step, fault);
  if (directory_ != nullptr) directory_->log("diverged " + reason);
  return end(Outcome::diverged, std::move(reason));
}

// Both into the log and before the user's eyes.
void Run::say(const std::string& line) {
  if (directory_ != nullptr) directory_->log(line);
  watch_.say(line);
}

std::string Run::validation_text() const {
  const double objective = state_.last.numbers[measures_.objective];
  const char* const text = config_.task == run::TaskKind::image ? "  val error {:.2f}%" : "  val {:.4f}";
  return std::isnan(objective) ? "" : fmt::format(fmt::runtime(text), objective);
}

// Whether any rank is asked to stop; and, by the clock of the first, whether it is time to save.
bool Run::asked() {
  struct Asked {
    bool stop, overdue;
  };
  const double minutes = config_.checkpoint.minutes;
  const std::vector<Asked> all = world_.gather(Asked{watch_.stop(), minutes > 0 && seconds_since(saved_) > 60 * minutes});
  overdue_ = all.front().overdue;
  return std::ranges::any_of(all, &Asked::stop);
}

RunResult Run::go() {
  const auto due = [this](std::int64_t every) { return every > 0 && trainer_.done() % every == 0; };
  std::int64_t saved = trainer_.done();
  watch_.live.begin_at(saved);
  if (world_.gather(redefined_ ? 1 : 0).front() != 0) save();  // so that the next process knows it from the checkpoint
  while (trainer_.done() < steps_) {
    if (asked()) {
      if (saved == trainer_.done()) return end(Outcome::stopped);
      if (const std::string fault = fault_now(); !fault.empty()) return diverged(trainer_.done(), fault);
      save();
      return end(Outcome::stopped);
    }
    const Clock::time_point before = Clock::now();
    const std::int64_t number = trainer_.done() + 1;
    world_.at_step(number);
    const ranks::Traffic sent = world_.traffic();
    const TrainStep step = trainer_.step();
    traffic_ += world_.traffic() - sent;
    training_ += seconds_since(before);
    if (const std::string fault = fault_of(step, state_.start_norm); !fault.empty()) return diverged(number, fault);
    if (state_.start_norm == 0) state_.start_norm = step.report->total.rms_x();
    state_.loss_sum += step.loss;
    state_.losses += 1;
    state_.decay_budget += step.report->total.budget;
    if (trace_) trace_->add(*step.report);
    const bool last = number == steps_, evaluating = last || due(config_.eval.every);
    if (evaluating || due(config_.log.every)) log(step, evaluating);
    const bool best = config_.checkpoint.best && evaluating && state_.best_step == number;
    const bool saving = last || best || overdue_ || due(config_.checkpoint.every);
    if (last && directory_ != nullptr) task_.finish(directory_->path());
    if (evaluating || saving) {
      if (const std::string fault = fault_now(); !fault.empty()) return diverged(number, fault);
    }
    if (saving) {
      save(best);
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

RunResult run_training(const RunRequest& request, const RunWatch& watch, ranks::World& world,
                       const std::function<void(const RunPlan&)>& planned) {
  const run::RunConfig& config = request.config;
  const std::unique_ptr<Task> task = prepare(request, watch, world);
  std::optional<run::RunDirectory> directory;
  if (world.first()) {
    directory.emplace(request.resume ? run::RunDirectory::open(request.out)
                                     : run::RunDirectory::create(request.out, to_toml(config)));
    planned(task->plan());
    directory->log(request.resume ? "continued" : "started");
  }
  Run run(request, watch, world, *task, directory ? &*directory : nullptr);
  RunResult result = run.go();
  watch.live.finish();
  return result;
}

}  // namespace cautious::train
