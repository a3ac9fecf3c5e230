// Language models: a Transformer, perhaps with adapters, sequences of tokens, and windows of the validation text.
#include "train/task.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"
#include "base/utf8_stream.h"
#include "data/mixture.h"
#include "data/sampler.h"
#include "data/tasks/results.h"
#include "data/tokenizer/tokenizer_json.h"
#include "model/adapters.h"
#include "model/benchmark.h"
#include "model/continuation.h"
#include "model/evaluate.h"
#include "model/family.h"
#include "model/weight_source.h"
#include "run/checkpoint.h"
#include "run/run_data.h"
#include "train/device.h"

namespace cautious::train {
namespace {

// Where the sequences come from: a stream of text, or conversations.
class TextSource {
 public:
  virtual ~TextSource() = default;

  virtual const data::Tokenizer& tokenizer() const = 0;
  virtual RunPlan plan() const = 0;
  virtual std::int64_t fingerprint() const = 0;
  virtual std::int64_t per_epoch() const = 0;  // sequences
  // Sequence `number` of a run, as a function of the seed and the number (data/sampler.h).
  virtual void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                        std::span<std::int64_t> starts) const = 0;
  virtual model::Windows validation() const = 0;
  virtual std::vector<std::string> notices() const = 0;
};

std::vector<data::Stream> streams_of(const data::Corpus& corpus) {
  std::vector<data::Stream> streams;
  for (const data::Share& share : corpus.shares) streams.push_back(share.train);
  if (streams.empty()) streams.push_back(corpus.train);
  return streams;
}

std::vector<double> weights_of(const data::Corpus& corpus) {
  std::vector<double> weights;
  for (const data::Share& share : corpus.shares) weights.push_back(share.weight);
  if (weights.empty()) weights.push_back(1);
  return weights;
}

class CorpusSource : public TextSource {
 public:
  CorpusSource(const run::RunConfig& config, run::RunData data)
      : data_(std::move(data)),
        length_(run::sequence_length(config)),
        evaluation_{
            &data_.corpus.validation,
            data::fixed_windows(data_.corpus.validation, length_, std::max<std::int64_t>(1, config.eval.tokens / length_)),
            length_, data_.tokenizer.lengths()},
        streams_(streams_of(data_.corpus)),
        mixture_(streams_, weights_of(data_.corpus), length_, config.train.seed) {}

  const data::Tokenizer& tokenizer() const override { return data_.tokenizer; }
  RunPlan plan() const override {
    RunPlan plan{data_.corpus.train.size(), data_.corpus.validation.size(), data_.corpus.split, {}};
    const std::vector<double> weights = weights_of(data_.corpus);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const data::Share& share : data_.corpus.shares)
      plan.shares.push_back({share.name, share.weight / sum, share.train.size()});
    return plan;
  }
  std::int64_t fingerprint() const override { return data_.corpus.train.fingerprint(); }
  std::int64_t per_epoch() const override { return mixture_.per_epoch(); }
  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                std::span<std::int64_t> starts) const override {
    mixture_.sequence(number, tokens, target, starts);
  }
  model::Windows validation() const override { return windows_of(evaluation_); }
  std::vector<std::string> notices() const override { return {}; }

 private:
  run::RunData data_;
  std::int64_t length_;
  model::EvaluationSet evaluation_;
  std::vector<data::Stream> streams_;
  data::Mixture mixture_;
};

class LessonSource : public TextSource {
 public:
  LessonSource(const run::RunConfig& config, run::LessonData data)
      : data_(std::move(data)), length_(run::sequence_length(config)) {}

  const data::Tokenizer& tokenizer() const override { return data_.tokenizer; }
  RunPlan plan() const override { return {data_.train.count() * length_, data_.validation.count() * length_, data_.split, {}}; }
  std::int64_t fingerprint() const override { return data_.train.fingerprint(); }
  std::int64_t per_epoch() const override { return data_.train.count(); }
  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                std::span<std::int64_t> starts) const override {
    data_.train.sequence(number, tokens, target, starts);
  }
  model::Windows validation() const override {
    return {data_.validation.count(), length_, data_.validation.largest(), data_.tokenizer.lengths(),
            [this](std::size_t row, auto tokens, auto target, auto starts) {
              data_.validation.row(static_cast<std::int64_t>(row), tokens, target, starts);
            }};
  }
  std::vector<std::string> notices() const override { return data_.notices; }

 private:
  run::LessonData data_;
  std::int64_t length_;
};

std::span<std::int64_t> row_of(const at::Tensor& rows, std::int64_t row) {
  const std::int64_t length = rows.size(1);
  return {rows.data_ptr<std::int64_t>() + row * length, static_cast<std::size_t>(length)};
}

std::int64_t count_targets(const at::Tensor& target) {
  const std::int64_t* values = target.data_ptr<std::int64_t>();
  return std::count_if(values, values + target.numel(), [](std::int64_t value) { return value >= 0; });
}

std::shared_ptr<model::Adapters> make_adapters(const run::RunConfig& config, const at::TensorOptions& place) {
  if (config.lora.rank == 0) return nullptr;
  return std::make_shared<model::Adapters>(config.model.shape, config.lora, config.train.seed, at::kFloat, place);
}

std::shared_ptr<model::Transformer> make_model(const run::RunConfig& config, const model::Adapters* adapters,
                                               const at::TensorOptions& place) {
  const bool plain = config.train.precision == run::Precision::mixed;  // which the fused operations do not know
  const model::RunOptions options{.path = plain ? model::ops::Path::plain : model::ops::Path::fused,
                                  .recompute = config.model.recompute,
                                  .adapters = adapters,
                                  .place = place};
  const model::ModelConfig& shape = config.model.shape;
  if (config.model.from.empty()) return std::make_shared<model::Transformer>(shape, config.train.seed, options);
  const auto source = model::open_weights(run::find_checkpoint(config.model.from));
  return std::make_shared<model::Transformer>(*source, shape, options);
}

std::vector<model::Benchmark> benchmarks_of(const run::RunConfig& config) {
  const run::RunConfig::Eval& eval = config.eval;
  if (eval.tasks.empty()) return {};
  return model::read_benchmarks(
      {.tasks = eval.tasks, .data = run::benchmark_files(config), .shots = eval.shots, .limit = eval.limit});
}

// What the user should know. A model that is taught in other tokens than its own begins with vectors that mean something else.
std::vector<std::string> notices_of(const run::RunConfig& config, const TextSource& source) {
  std::vector<std::string> notices = source.notices();
  if (config.model.from.empty()) return notices;
  const std::filesystem::path own = run::tokenizer_beside(run::find_checkpoint(config.model.from));
  if (own == config.data.tokenizer) return notices;
  try {
    if (data::Tokenizer::read(own).fingerprint() == source.tokenizer().fingerprint()) return notices;
    notices.push_back(fmt::format("data.tokenizer is not the one that {} was trained with: its tokens mean something else",
                                  config.model.from));
  } catch (const Error&) {  // the model comes without one
  }
  return notices;
}

std::unique_ptr<const TextSource> open_source(const run::RunConfig& config, const Progress& progress) {
  if (config.task == run::TaskKind::instruct) return std::make_unique<LessonSource>(config, run::open_lessons(config));
  run::RunData data = run::open_data(config, progress);
  data::check_length(data.corpus, run::sequence_length(config));
  return std::make_unique<CorpusSource>(config, std::move(data));
}

class TextTask : public Task {
 public:
  TextTask(const run::RunConfig& config, ranks::World& world, std::unique_ptr<const TextSource> source)
      : config_(config),
        world_(world),
        rows_(rows_of(config, world)),
        source_(std::move(source)),
        length_(run::sequence_length(config)),
        device_(device_of(config, world)),
        adapters_(make_adapters(config, place_of(config, device_))),
        model_(make_model(config, adapters_.get(), place_of(config, device_))),
        benchmarks_(benchmarks_of(config)),
        notices_(notices_of(config, *source_)) {}

  ::torch::nn::Module& model() override {
    if (adapters_) return *adapters_;
    return *model_;
  }
  const char* weights_file() const override { return adapters_ ? model::kAdapterWeights : Task::weights_file(); }
  RunPlan plan() const override { return source_->plan(); }
  std::int64_t fingerprint() const override { return source_->fingerprint(); }
  double epochs(std::int64_t steps) const override {
    return static_cast<double>(steps * config_.train.batch_size) / static_cast<double>(source_->per_epoch());
  }
  double add_gradients(std::int64_t step) override;
  run::Evaluation evaluate() override;
  void describe(const std::filesystem::path& folder) const override;
  void finish(const std::filesystem::path&) const override {}
  std::vector<Score> score(const std::filesystem::path& directory, const std::function<void(double)>& show) override;
  std::string sample() override;
  std::vector<std::string> notices() override { return std::exchange(notices_, {}); }

 private:
  at::Tensor loss_of(const at::Tensor& tokens, const at::Tensor& target, const at::Tensor& starts);

  run::RunConfig config_;
  ranks::World& world_;
  Rows rows_;
  std::unique_ptr<const TextSource> source_;
  std::int64_t length_;
  at::Device device_;
  std::shared_ptr<model::Adapters> adapters_;
  std::shared_ptr<model::Transformer> model_;
  std::vector<model::Benchmark> benchmarks_;
  std::vector<std::string> notices_;
};

run::Evaluation TextTask::evaluate() {
  const Precise precise(config_, device_);
  if (adapters_) adapters_->eval();
  const model::Evaluation found = model::evaluate(*model_, source_->validation(), rows_.chunk, {}, world_.share());
  if (adapters_) adapters_->train();
  return {{found.loss, found.bits_per_byte, found.accuracy}, found.targets};
}

std::vector<Score> TextTask::score(const std::filesystem::path& directory, const std::function<void(double)>& show) {
  if (benchmarks_.empty()) return {};
  std::size_t items = 0, done = 0;
  for (const model::Benchmark& benchmark : benchmarks_) items += benchmark.items.size();
  if (adapters_) adapters_->eval();
  std::vector<data::TaskResult> results;
  for (const model::Benchmark& benchmark : benchmarks_) {
    std::map<std::size_t, data::TaskAnswer> answers;
    model::ask(*model_, source_->tokenizer(), benchmark, benchmark.items, 0, config_.train.threads,
               [&](std::size_t item, const std::vector<double>& sums, bool) {
                 answers.emplace(item, data::judge_answer(benchmark.task.docs[item], sums));
                 show(static_cast<double>(++done) / static_cast<double>(items));
               });
    std::ranges::move(data::results_of(benchmark.task, benchmark.shots, answers), std::back_inserter(results));
  }
  if (adapters_) adapters_->train();
  base::write_atomically(directory / "results.json", data::to_json(results).dump(2) + "\n");
  std::vector<Score> scores;
  for (const data::TaskResult& result : results) {
    if (result.alias != result.name) continue;  // a subset
    for (const data::TaskMetric& metric : result.metrics) {
      scores.push_back(
          {fmt::format("eval/{}/{}", result.name, metric.name), metric.value, metric.error.value_or(RunState::kNone)});
    }
  }
  return scores;
}

std::string TextTask::sample() {
  if (adapters_) adapters_->eval();
  const data::Tokenizer& tokenizer = source_->tokenizer();
  base::Utf8Stream characters;
  std::string text;
  model::continue_text(*model_, tokenizer, model::prompt_tokens(config_.log.prompt, tokenizer), {.seed = config_.train.seed},
                       config_.log.prompt_tokens, [&](std::string_view piece) { text += characters.add(piece); });
  if (adapters_) adapters_->train();
  return text + characters.finish();
}

void TextTask::describe(const std::filesystem::path& folder) const {
  const data::Tokenizer& tokenizer = source_->tokenizer();
  if (adapters_) {
    const std::string base = std::filesystem::absolute(run::find_checkpoint(config_.model.from)).string();
    base::write_atomically(folder / model::kAdapterConfig, to_adapter_json({config_.lora, base}, config_.model.shape));
  } else {
    const data::Token end = tokenizer.document_end(), begin = tokenizer.beginning().value_or(end);
    base::write_atomically(folder / "config.json", model::to_config_json(config_.model.shape, begin, end));
  }
  base::write_atomically(folder / "tokenizer.json", tokenizer.to_json());
  constexpr const char* kMore = "tokenizer_config.json";
  std::string more = data::to_tokenizer_config(tokenizer, config_.model.shape.context, "").dump(2) + "\n";
  if (config_.data.tokenizer != "bytes") {  // that of the tokenizer goes before ours: it may have a chat template
    const auto own = base::read_file_if_any(run::tokenizer_beside(config_.data.tokenizer) / kMore);
    more = own.value_or(more);
  }
  base::write_atomically(folder / kMore, more);
}

at::Tensor TextTask::loss_of(const at::Tensor& tokens, const at::Tensor& target, const at::Tensor& starts) {
  const Precise precise(config_, device_);
  return model_->loss(tokens.to(device_), target.to(device_), starts.to(device_));
}

// The chunks' losses weigh as their targets: whatever the chunks, the gradient is that of the mean over the whole batch.
double TextTask::add_gradients(std::int64_t step) {
  const std::int64_t begin = step * config_.train.batch_size + rows_.first;
  const at::Tensor sequences = at::empty({3, rows_.count, length_}, at::kLong);
  const at::Tensor tokens = sequences[0], target = sequences[1], starts = sequences[2];
  for (std::int64_t row = 0; row < rows_.count; ++row) {
    source_->sequence(begin + row, row_of(tokens, row), row_of(target, row), row_of(starts, row));
  }
  std::int64_t all = 0;
  for (const std::int64_t targets : world_.gather(count_targets(target))) all += targets;
  if (all == 0) {
    throw Error(Fault::data, fmt::format("step {}: none of its {} tokens has a target, because each ends a document or is "
                                         "only read; remove empty documents from the data",
                                         step + 1, config_.train.batch_size * length_));
  }
  double loss = 0;
  for (std::int64_t first = 0; first < rows_.count; first += rows_.chunk) {
    const auto part = [&](const at::Tensor& of) { return of.narrow(0, first, rows_.chunk); };
    const std::int64_t targets = count_targets(part(target));
    if (targets == 0) continue;
    if (adapters_) adapters_->draw(static_cast<std::uint64_t>(begin + first));
    const at::Tensor chunk_loss = loss_of(part(tokens), part(target), part(starts));
    const double weight = static_cast<double>(targets) / static_cast<double>(all);
    loss += weight * chunk_loss.item<double>();
    if (!std::isfinite(loss)) return loss;
    chunk_loss.backward(at::full_like(chunk_loss, weight));
  }
  return loss;
}

}  // namespace

std::unique_ptr<Task> make_text_task(const run::RunConfig& config, ranks::World& world, const Progress& progress) {
  return std::make_unique<TextTask>(config, world, open_source(config, progress));
}

RunPlan plan_of_text(const run::RunConfig& config, const Progress& progress) {
  (void)benchmarks_of(config);
  return open_source(config, progress)->plan();
}

}  // namespace cautious::train
