// Checks, the lists of tensors, and sizes. As for the Transformer, the module, the counts and the initial values all come from
// the lists.
#include "model/vision/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"
#include "model/vision/stages.h"

namespace cautious::model {
namespace {

constexpr double kMostEntries = 1e15;  // keeps every count inside 64 bits
constexpr Range kStages{1, 8, false, false}, kBlocks{1, 1000, false, false};

void add_both(std::vector<Shape>& list, const std::string& name, const std::vector<std::int64_t>& weight, std::int64_t out) {
  list.push_back({name + ".weight", weight});
  list.push_back({name + ".bias", {out}});
}

std::int64_t patches_of(const VitConfig& c) { return (c.image_size / c.patch) * (c.image_size / c.patch); }
std::int64_t tokens_of(const VitConfig& c) { return patches_of(c) + (c.pool == Pool::token ? 1 : 0); }

std::vector<Shape> list_tensors(const VitConfig& c) {
  std::vector<Shape> list;
  if (c.pool == Pool::token) list.push_back({"cls_token", {1, 1, c.width}});
  if (c.positions == Positions::learned) list.push_back({"pos_embed", {1, tokens_of(c), c.width}});
  add_both(list, "patch_embed.proj", {c.width, c.channels, c.patch, c.patch}, c.width);
  for (std::int64_t number = 0; number < c.layers; ++number) {
    const std::string block = fmt::format("blocks.{}.", number);
    add_both(list, block + "norm1", {c.width}, c.width);
    add_both(list, block + "attn.qkv", {3 * c.width, c.width}, 3 * c.width);
    add_both(list, block + "attn.proj", {c.width, c.width}, c.width);
    add_both(list, block + "norm2", {c.width}, c.width);
    add_both(list, block + "mlp.fc1", {c.hidden, c.width}, c.hidden);
    add_both(list, block + "mlp.fc2", {c.width, c.hidden}, c.width);
  }
  add_both(list, c.pool == Pool::token ? "norm" : "fc_norm", {c.width}, c.width);
  add_both(list, "head", {c.classes, c.width}, c.classes);
  return list;
}

std::vector<Shape> list_tensors(const ResNetConfig& c) {
  std::vector<Shape> list;
  const auto add = [&](const Conv& conv) {
    list.push_back({conv.name + ".weight", {conv.out, conv.in, conv.kernel, conv.kernel}});
    add_both(list, conv.norm, {conv.out}, conv.out);
  };
  add(stem_of(c));
  for (const Residual& residual : residuals_of(c)) {
    for (const Conv& conv : residual.branch) add(conv);
    if (residual.shortcut) add(*residual.shortcut);
  }
  add_both(list, "fc", {c.classes, width_of_features(c)}, c.classes);
  return list;
}

void check_numbers(const VitConfig& c) {
  const auto refuse = [](const char* key, const std::string& what) { throw Error(Fault::usage, what, {.key = key}); };
  base::check_fields(c);
  if (c.image_size % c.patch != 0)
    refuse("patch", fmt::format("patch of the model is {}, which does not divide image_size {}", c.patch, c.image_size));
  if (c.width % c.heads != 0)
    refuse("heads", fmt::format("heads of the model is {}, which does not divide width {}", c.heads, c.width));
  if (c.positions == Positions::sincos && c.width % 4 != 0)
    refuse("width", fmt::format("width of the model is {}; positions sincos need a multiple of 4", c.width));
}

void check_numbers(const ResNetConfig& c) {
  base::check_fields(c);
  base::check_range("the number of stages in blocks of the model", static_cast<double>(c.blocks.size()), kStages, "blocks");
  for (const double blocks : c.blocks) {
    if (!kBlocks.contains(blocks) || std::floor(blocks) != blocks)
      throw Error(Fault::usage,
                  fmt::format("blocks of the model has the number {}; valid: whole numbers in {}", base::to_text(blocks),
                              to_string(kBlocks)),
                  {.key = "blocks"});
  }
}

// Forward multiplications per image, and numbers per image that the fused operations keep for the backward pass and then have
// beside them. Each tensor counts once, however many operations keep it.
struct PerImage {
  double products = 0, kept = 0;
};

PerImage per_image(const VitConfig& c) {
  const auto width = static_cast<double>(c.width), hidden = static_cast<double>(c.hidden),
             layers = static_cast<double>(c.layers);
  const auto patches = static_cast<double>(patches_of(c)), tokens = static_cast<double>(tokens_of(c));
  const auto input = static_cast<double>(c.channels * c.patch) * static_cast<double>(c.patch);
  PerImage sum;
  sum.products += patches * input * width + static_cast<double>(c.classes) * width;
  sum.products += layers * tokens * (4 * width * width + 2 * width * hidden);
  sum.products += layers * 2 * tokens * tokens * width;
  sum.kept += patches * input;
  // Inputs of the norms with mean and factor, and their outputs; q, k, v, what was attended, logarithms of the softmax's sums;
  // the hidden row before and after its activation.
  sum.kept += layers * tokens * (2 * (width + 2 + width) + 4 * width + static_cast<double>(c.heads) + 2 * hidden);
  sum.kept += 2 * tokens * hidden;  // gradients of a hidden row
  return sum;
}

PerImage per_image(const ResNetConfig& c) {
  PerImage sum;
  double largest = 0;
  const auto add = [&](const Conv& conv) {
    const auto area = static_cast<double>(conv.size_after) * static_cast<double>(conv.size_after);
    const auto out = static_cast<double>(conv.out);
    sum.products +=
        area * out * static_cast<double>(conv.in) * static_cast<double>(conv.kernel) * static_cast<double>(conv.kernel);
    sum.kept += 2 * area * out;  // before and after its norm
    largest = std::max(largest, area * out);
  };
  add(stem_of(c));
  for (const Residual& residual : residuals_of(c)) {
    for (const Conv& conv : residual.branch) add(conv);
    if (residual.shortcut) add(*residual.shortcut);
  }
  sum.kept += static_cast<double>(c.channels) * static_cast<double>(c.image_size) * static_cast<double>(c.image_size);
  sum.kept += 4 * largest;  // gradients around a norm
  sum.products += static_cast<double>(c.classes * width_of_features(c));
  return sum;
}

std::int64_t whole_count(double number) { return static_cast<std::int64_t>(std::min(number, 9e18)); }

}  // namespace

std::int64_t image_size(const ImageModel& model) {
  return std::visit([](const auto& c) { return c.image_size; }, model);
}
std::int64_t channels(const ImageModel& model) {
  return std::visit([](const auto& c) { return c.channels; }, model);
}
std::int64_t classes(const ImageModel& model) {
  return std::visit([](const auto& c) { return c.classes; }, model);
}

void check(const ImageModel& model) {
  double parameters = 0;
  std::visit(
      [&](const auto& c) {
        check_numbers(c);
        for (const Shape& shape : list_tensors(c)) parameters += entries(shape);
      },
      model);
  if (parameters > kMostEntries) {
    throw Error(Fault::usage,
                fmt::format("the model would have {:.3g} parameters; valid: at most {:.3g}", parameters, kMostEntries));
  }
}

std::vector<Shape> parameter_shapes(const ImageModel& model) {
  check(model);
  return std::visit([](const auto& c) { return list_tensors(c); }, model);
}

std::vector<Shape> buffer_shapes(const ImageModel& model) {
  check(model);
  const auto* const resnet = std::get_if<ResNetConfig>(&model);
  if (resnet == nullptr) return {};
  std::vector<Shape> list;
  const auto add = [&](const Conv& conv) {
    list.push_back({conv.norm + ".running_mean", {conv.out}});
    list.push_back({conv.norm + ".running_var", {conv.out}});
    list.push_back({conv.norm + ".num_batches_tracked", {}});
  };
  add(stem_of(*resnet));
  for (const Residual& residual : residuals_of(*resnet)) {
    for (const Conv& conv : residual.branch) add(conv);
    if (residual.shortcut) add(*residual.shortcut);
  }
  return list;
}

ImageModelSize size_of(const ImageModel& model, std::int64_t batch) {
  base::check_range("batch", static_cast<double>(batch), {1, 1e9, false, false});
  double parameters = 0;
  for (const Shape& shape : parameter_shapes(model)) parameters += entries(shape);
  const PerImage sum = std::visit([](const auto& c) { return per_image(c); }, model);
  return {whole_count(parameters), 6 * sum.products, whole_count(16 * parameters),
          whole_count(4 * static_cast<double>(batch) * sum.kept)};
}

}  // namespace cautious::model
