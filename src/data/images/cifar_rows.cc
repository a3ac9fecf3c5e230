// CIFAR-10 as a package for browsers has it: PNG files whose rows are images, labels in JSON. The spelling is the package's.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/images/decode.h"
#include "data/images/formats.h"
#include "data/images/packed.h"

namespace cautious::data {
namespace {

using RowsPath = std::filesystem::path;

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

struct RowFiles {
  std::vector<std::string> images;
  std::string labels;
};
RowFiles training_rows() {
  return {{"data_batch_1.png", "data_batch_2.png", "data_batch_3.png", "data_batch_4.png", "data_batch_5.png"},
          "train_lables.json"};
}
RowFiles test_rows() { return {{"test_batch.png"}, "test_lables.json"}; }

std::vector<std::uint8_t> labels_in(const RowsPath& file) {
  const auto json = base::parse_json(base::read_file(file));
  if (!json.is_array()) base::refuse_content(file.string(), "not a list of labels in JSON");
  std::vector<std::uint8_t> labels;
  for (const auto& label : json) {
    if (!label.is_number_unsigned() || label >= cifar_10_classes().size())
      base::refuse_content(file.string(), fmt::format("image {} has the label {}; valid: 0 to 9", labels.size(),
                                                      base::in_one_line(label.dump(-1, ' ', true, kReplace))));
    labels.push_back(label.get<std::uint8_t>());
  }
  return labels;
}

void read_rows(const RowsPath& file, Packed& rows) {
  Image image;
  read_image(file, 3, image);
  if (image.width != kCifarPlane)
    base::refuse_content(file.string(), fmt::format("its rows have {} pixels; an image has {}", image.width, kCifarPlane));
  rows = {kCifarSide, kCifarSide, 3, std::move(image.pixels)};
}

// Each file gets its part of the labels.
void share_labels(std::vector<PackedFile>& files, const RowsPath& file) {
  const std::vector<std::uint8_t> labels = labels_in(file);
  constexpr std::size_t kBytes = static_cast<std::size_t>(3 * kCifarPlane);
  std::size_t rows = 0;
  for (const PackedFile& one : files) rows += one.images.pixels.size() / kBytes;
  if (rows != labels.size())
    base::refuse_content(file.string(), fmt::format("{} labels, but there are {} images", labels.size(), rows));
  auto next = labels.begin();
  for (PackedFile& one : files) {
    const auto end = next + static_cast<std::ptrdiff_t>(one.images.pixels.size() / kBytes);
    one.images.labels.assign(next, end);
    next = end;
  }
}

}  // namespace

bool is_cifar_rows(const RowsPath& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path / training_rows().labels, none);
}

Splits open_cifar_rows(const RowsPath& path) {
  std::vector<PackedFile> train, test;
  for (const std::string& name : training_rows().images) train.push_back({path / name, {}});
  for (const std::string& name : test_rows().images) test.push_back({path / name, {}});
  base::parallel_for(train.size() + test.size(), base::default_threads(), [&](std::size_t i) {
    PackedFile& file = i < train.size() ? train[i] : test[i - train.size()];
    read_rows(file.path, file.images);
  });
  share_labels(train, path / training_rows().labels);
  share_labels(test, path / test_rows().labels);
  return {packed_set(std::move(train), cifar_10_classes()), packed_set(std::move(test), cifar_10_classes()), kCifarSide,
          kCifarSide};
}

ImageFacts facts_of_cifar_rows(const RowsPath& path) {
  const auto count = static_cast<std::int64_t>(labels_in(path / training_rows().labels).size());
  return {count, kCifarSide, 3, static_cast<std::int64_t>(cifar_10_classes().size())};
}

}  // namespace cautious::data
