// What a file or folder of images may be: one reader per format, each with the same three functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/images/image_set.h"

namespace cautious::data {

struct Splits {
  std::shared_ptr<const ImageSet> train, test;  // one of them may be missing
  std::int64_t height = 0, width = 0;           // of every image; 0: any
  std::vector<std::string> notices = {};
};

// Whether a path is of that format, by names alone; its images; what can be said of those to train on by headers and names. An
// idx or .bin file alone is a training set.
bool is_idx(const std::filesystem::path& path);
Splits open_idx(const std::filesystem::path& path);
ImageFacts facts_of_idx(const std::filesystem::path& path);

bool is_cifar(const std::filesystem::path& path);
Splits open_cifar(const std::filesystem::path& path);
ImageFacts facts_of_cifar(const std::filesystem::path& path);

// Of the package, whose images are rows of PNG files.
bool is_cifar_rows(const std::filesystem::path& path);
Splits open_cifar_rows(const std::filesystem::path& path);
ImageFacts facts_of_cifar_rows(const std::filesystem::path& path);

bool is_image_folder(const std::filesystem::path& path);
Splits open_image_folder(const std::filesystem::path& path);
ImageFacts facts_of_image_folder(const std::filesystem::path& path);

// "airplane" to "truck".
const std::vector<std::string>& cifar_10_classes();

}  // namespace cautious::data
