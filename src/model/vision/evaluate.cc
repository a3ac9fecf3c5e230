#include "model/vision/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::model {
namespace {

// Evaluation mode and no gradients while it lives.
class Judging {
 public:
  explicit Judging(Classifier& model) : model_(model), training_(model.is_training()) { model_.eval(); }
  ~Judging() { model_.train(training_); }
  Judging(const Judging&) = delete;
  Judging& operator=(const Judging&) = delete;

 private:
  at::NoGradGuard no_grad_;
  Classifier& model_;
  bool training_;
};

Prediction judge_image(const float* logits, std::int64_t classes, std::int64_t label) {
  const float* const largest = std::max_element(logits, logits + classes);
  const auto most = static_cast<double>(*largest);
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(logits[i]) - most);
  Prediction result{.label = label, .predicted = largest - logits, .probability = 1 / sum};
  result.nats = std::log(sum) + most - static_cast<double>(logits[label]);
  for (std::int64_t i = 0; i < classes; ++i) {
    if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) ++result.rank;
  }
  return result;
}

void judge_batch(Classifier& model, const data::ImageBatch& batch, const data::View& view, Prediction* out) {
  const at::Tensor images = images_of(batch, view.size, channels(model.config())).to(model.parameters().front().device());
  const at::Tensor logits = model.logits(images).to(at::kCPU, at::kFloat).contiguous();
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const std::int64_t label = batch.label[static_cast<std::size_t>(i)];
    if (label >= 0) out[i] = judge_image(logits.data_ptr<float>() + i * logits.size(1), logits.size(1), label);
  }
}

void count(ImageEvaluation& all, const Prediction& one) {
  constexpr std::int64_t kTop = 5;
  all.predictions.push_back(one);
  if (one.label < 0) return;
  ++all.images;
  all.loss += one.nats;
  all.wrong += one.rank > 0 ? 1 : 0;
  all.wrong5 += one.rank >= kTop ? 1 : 0;
}

nlohmann::ordered_json mistake_json(const Prediction& one, std::int64_t index, const data::ImageSet& set) {
  data::Image image;
  set.read(index, image);
  return {{"name", set.name(index)},         {"label", one.label},
          {"predicted", one.predicted},      {"probability", one.probability},
          {"of_label", std::exp(-one.nats)}, {"png", base::to_base64(data::to_png(image))}};
}

}  // namespace

at::Tensor images_of(const data::ImageBatch& batch, std::int64_t size, std::int64_t channels) {
  return at::from_blob(const_cast<float*>(batch.pixels.data()), {batch.count, size, size, channels}, at::kFloat)
      .permute({0, 3, 1, 2});
}

at::Tensor probabilities(Classifier& model, const at::Tensor& images) {
  const Judging judging(model);
  return model.logits(images).softmax(1);
}

ImageEvaluation evaluate(Classifier& model, const data::ImageSet& set, const data::View& view, const EvaluationOptions& options,
                         const std::function<void(double fraction)>& between) {
  const Judging judging(model);
  const std::int64_t all = options.most > 0 ? std::min(options.most, set.size()) : set.size();
  ImageEvaluation result;
  const Share& share = options.share;
  for (std::int64_t first = 0; first < all; first += options.batch * share.ranks) {
    // A batch of each rank.
    const std::int64_t size = std::min(options.batch * share.ranks, all - first);
    std::vector<Prediction> round(static_cast<std::size_t>(size));
    std::vector<Piece> pieces;
    for (int rank = 0; rank * options.batch < size; ++rank) {
      const std::int64_t from = rank * options.batch, count_here = std::min(options.batch, size - from);
      Prediction* const own = round.data() + from;
      pieces.push_back({rank, own, static_cast<std::size_t>(count_here) * sizeof *own});
      if (rank == share.rank)
        judge_batch(model, data::plain_batch(set, first + from, count_here, view, options.workers), view, own);
    }
    if (share.ranks > 1) share.exchange(pieces, {});
    for (const Prediction& one : round) count(result, one);
    if (between) between(static_cast<double>(first + size) / static_cast<double>(all));
  }
  if (result.images == 0) throw Error(Fault::data, fmt::format("none of the {} validation images can be read", all));
  result.loss /= static_cast<double>(result.images);
  return result;
}

std::string to_json(const ImageEvaluation& evaluation, const data::ImageSet& set, std::size_t most) {
  const std::vector<Prediction>& all = evaluation.predictions;
  const std::size_t classes = set.classes().size();
  std::vector<std::vector<std::int64_t>> confusion(classes, std::vector<std::int64_t>(classes));
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto label = static_cast<std::size_t>(all[i].label), predicted = static_cast<std::size_t>(all[i].predicted);
    if (all[i].label < 0 || predicted >= classes) continue;  // a model may have more classes than the data
    ++confusion[label][predicted];
    if (label != predicted) wrong.push_back(i);
  }
  std::ranges::stable_sort(wrong, [&](std::size_t a, std::size_t b) { return all[a].nats > all[b].nats; });
  wrong.resize(std::min(wrong.size(), most));
  nlohmann::ordered_json json{{"classes", set.classes()}, {"confusion", confusion}, {"mistakes", nlohmann::json::array()}};
  for (const std::size_t i : wrong) json["mistakes"].push_back(mistake_json(all[i], static_cast<std::int64_t>(i), set));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace cautious::model
