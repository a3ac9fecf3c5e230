// Weights with adapters added: W + scale B A, matrix by matrix as they are read.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/safetensors.h"
#include "linear/multiply.h"
#include "model/lora.h"
#include "model/weight_files.h"

namespace cautious::model {
namespace {

class Merged : public WeightSource {
 public:
  Merged(std::unique_ptr<const WeightSource> base, const std::filesystem::path& folder)
      : base_(std::move(base)), folder_(folder), file_(base::Safetensors::read(folder / kAdapterWeights)) {
    const std::filesystem::path description = folder / kAdapterConfig;
    lora_ = from_adapter_json(base::read_file(description), description.string()).lora;
    std::set<std::string> used;
    for (const Shape& shape : shapes_of(description)) {
      used.insert(held_against(file_, shape, kRealTypes, folder / kAdapterWeights).name);
      parts_[adapted_weight(shape.name)].push_back(shape);
    }
    for (const base::TensorInfo& tensor : file_.tensors()) {
      if (!used.contains(tensor.name)) refuse_left_over(tensor, folder / kAdapterWeights);
    }
  }

  const ModelConfig& config() const override { return base_->config(); }
  const std::filesystem::path& path() const override { return folder_; }
  void read(const Shape& shape, std::span<float> values) const override {
    base_->read(shape, values);
    const auto found = parts_.find(shape.name);
    if (found == parts_.end()) return;
    const std::vector<float> a = adapter(found->second[0]), b = adapter(found->second[1]);
    const int out = static_cast<int>(shape.sides[0]), in = static_cast<int>(shape.sides[1]),
              rank = static_cast<int>(lora_.rank);
    using linear::Block, linear::Transpose;
    linear::multiply(static_cast<float>(scale_of(lora_)), Block<const float>{b.data(), out, rank, rank}, Transpose::no,
                     Block<const float>{a.data(), rank, in, in}, Transpose::no, linear::Into::add,
                     Block<float>{values.data(), out, in, in});
  }

 private:
  std::vector<Shape> shapes_of(const std::filesystem::path& description) const try {
    return adapter_shapes(base_->config(), lora_);
  } catch (const Error& error) {
    throw Error(Fault::data, fmt::format("{}: {}; it is for another model than {}", description.string(), error.what(),
                                         base_->path().string()));
  }

  std::vector<float> adapter(const Shape& shape) const {
    std::vector<float> values(static_cast<std::size_t>(entries(shape)));
    read_stored(file_, file_.require(shape.name), 0, values);
    check_finite(shape, values, folder_ / kAdapterWeights);
    return values;
  }

  std::unique_ptr<const WeightSource> base_;
  std::filesystem::path folder_;
  base::Safetensors file_;
  LoraConfig lora_;
  std::map<std::string, std::vector<Shape>> parts_;  // A and B of each matrix
};

}  // namespace

std::unique_ptr<const WeightSource> with_adapters(std::unique_ptr<const WeightSource> base,
                                                  const std::filesystem::path& folder) {
  return std::make_unique<const Merged>(std::move(base), folder);
}

}  // namespace cautious::model
