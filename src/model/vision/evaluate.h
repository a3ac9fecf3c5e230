// How well a classifier does on a set of images, and which ones it takes for something else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "data/images/loader.h"
#include "model/vision/classifier.h"

namespace cautious::model {

// Of one image. Of equal logits the first counts.
struct Prediction {
  std::int64_t label = -1;  // -1: the image cannot be read, and does not count
  std::int64_t predicted = 0;
  std::int64_t rank = 0;   // of the label among the classes, from 0
  double nats = 0;         // -log of the label's probability
  double probability = 0;  // of what is predicted
};

struct ImageEvaluation {
  double loss = 0;  // mean, nats per image
  std::int64_t images = 0, wrong = 0, wrong5 = 0;
  std::vector<Prediction> predictions = {};  // in the order of the set

  double error() const { return 100.0 * static_cast<double>(wrong) / static_cast<double>(images); }  // in percent
  double top5_error() const { return 100.0 * static_cast<double>(wrong5) / static_cast<double>(images); }
};

struct EvaluationOptions {
  std::int64_t batch = 128;
  std::int64_t most = 0;  // of the images, the first; 0: all
  std::int64_t workers = 1;
  Share share = {};  // ranks take turns, with the same result
};

// In evaluation mode; the model's mode is restored. `between` is called between batches with the fraction done. No image that
// can be read is an Error(Fault::data).
ImageEvaluation evaluate(Classifier& model, const data::ImageSet& set, const data::View& view, const EvaluationOptions& options,
                         const std::function<void(double fraction)>& between = {});

// The class probabilities of images [N, channels, size, size], in evaluation mode; f32 [N, classes].
at::Tensor probabilities(Classifier& model, const at::Tensor& images);

// A batch as a tensor of the model, channels last, on the batch's memory.
at::Tensor images_of(const data::ImageBatch& batch, std::int64_t size, std::int64_t channels);

// evaluation.json of a run: the classes, the confusion matrix (row: label, column: predicted) and the `most` worst mistakes
// with their images as PNG in base64.
std::string to_json(const ImageEvaluation& evaluation, const data::ImageSet& set, std::size_t most);

}  // namespace cautious::model
