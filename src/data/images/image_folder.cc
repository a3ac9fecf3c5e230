// A folder of PNG and JPEG files per class, or folders train and val with such folders each. Files are opened when they are
// read; before, only their first bytes are looked at.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <system_error>
#include <utility>

#include <cautious/error.h>
#include "base/files.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "data/images/decode.h"
#include "data/images/formats.h"

namespace cautious::data {
namespace {

using FolderPath = std::filesystem::path;

constexpr std::array<const char*, 4> kHeldOut = {"val", "valid", "validation", "test"};

struct FolderImage {
  std::string name;  // below the folder of all classes
  std::int64_t label;
};

class FolderSet final : public ImageSet {
 public:
  FolderSet(FolderPath root, std::vector<std::string> classes, std::vector<FolderImage> images)
      : root_(std::move(root)), classes_(std::move(classes)), images_(std::move(images)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  std::int64_t label(std::int64_t index) const override { return at(index).label; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t channels() const override { return 3; }
  void read(std::int64_t index, Image& image) const override { read_image(root_ / at(index).name, 3, image); }
  std::string name(std::int64_t index) const override { return at(index).name; }

  // Of all names, so that the folder may move, and of the sizes of some files.
  std::int64_t fingerprint() const override {
    constexpr std::size_t kSizes = 1024;
    std::uint64_t hash = images_.size();
    for (std::size_t i = 0; i < images_.size(); ++i) {
      hash = base::mix64(hash + base::kGolden + base::hash_of(images_[i].name));
      if (i % (images_.size() / kSizes + 1) != 0) continue;
      std::error_code none;
      hash = base::mix64(hash + std::filesystem::file_size(root_ / images_[i].name, none));
    }
    return static_cast<std::int64_t>(hash >> 1);
  }

 private:
  const FolderImage& at(std::int64_t index) const { return images_[static_cast<std::size_t>(index)]; }

  FolderPath root_;
  std::vector<std::string> classes_;
  std::vector<FolderImage> images_;
};

bool has_image_suffix(const FolderPath& file) {
  std::string suffix = file.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

bool is_hidden(const FolderPath& path) { return path.filename().string().starts_with('.'); }

std::vector<std::string> class_folders(const FolderPath& root) {
  std::vector<std::string> names;
  for (const auto& entry : base::entries_of(root)) {
    if (entry.is_directory() && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  }
  return names;
}

// A link to an image of the same folder would be the same image twice, perhaps once to train on and once to be tested on.
bool repeats(const std::filesystem::directory_entry& entry, const FolderPath& root) {
  if (!entry.is_symlink() || !entry.exists()) return false;
  std::error_code none;
  const FolderPath target = std::filesystem::weakly_canonical(entry.path(), none).lexically_relative(root);
  return !target.empty() && *target.begin() != "..";
}

// Why a file is not an image, by its first bytes.
std::optional<std::string> why_not(const FolderPath& file) try {
  const base::MappedFile mapped(file);
  if (is_png(mapped.bytes()) || is_jpeg(mapped.bytes())) return std::nullopt;
  return mapped.bytes().empty() ? "is empty" : "not a PNG or JPEG file";
} catch (const Error& error) {
  return error.message();
}

class FolderScan {
 public:
  explicit FolderScan(const FolderPath& root) try : root_(std::filesystem::canonical(root)), classes_(class_folders(root)) {
    if (classes_.empty())
      base::refuse_content(root.string(),
                           "no images: neither idx nor CIFAR files, nor a folder of PNG or JPEG files per class");
    for (std::size_t label = 0; label < classes_.size(); ++label) look_into(static_cast<std::int64_t>(label));
    leave_out();
    check_classes();
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(Fault::data, fmt::format("{}: cannot read the folder: {}", error.path1().string(), error.code().message()));
  }

  std::int64_t size() const { return static_cast<std::int64_t>(images_.size()); }
  std::int64_t classes() const { return static_cast<std::int64_t>(classes_.size()); }
  const std::vector<std::string>& notices() const { return notices_; }
  std::shared_ptr<const ImageSet> set() { return std::make_shared<FolderSet>(root_, std::move(classes_), std::move(images_)); }

 private:
  void look_into(std::int64_t label) {
    const FolderPath folder = root_ / classes_[static_cast<std::size_t>(label)];
    const std::size_t first = images_.size();
    for (const auto& entry : base::entries_below(folder)) {
      if (is_hidden(entry.path()) || !has_image_suffix(entry.path()) || entry.is_directory()) continue;
      if (repeats(entry, root_)) {
        ++links_;
      } else {
        images_.push_back({entry.path().lexically_relative(root_).string(), label});
      }
    }
    std::sort(images_.begin() + static_cast<std::ptrdiff_t>(first), images_.end(),
              [](const FolderImage& a, const FolderImage& b) { return a.name < b.name; });
  }

  void leave_out() {
    std::vector<std::optional<std::string>> reasons(images_.size());
    base::parallel_for(images_.size(), base::default_threads(),
                       [&](std::size_t i) { reasons[i] = why_not(root_ / images_[i].name); });
    const auto first = std::find_if(reasons.begin(), reasons.end(), [](const auto& reason) { return reason.has_value(); });
    if (first != reasons.end()) {
      const auto count = std::count_if(first, reasons.end(), [](const auto& reason) { return reason.has_value(); });
      const std::string& name = images_[static_cast<std::size_t>(first - reasons.begin())].name;
      notices_.push_back(count == 1 ? fmt::format("a file is left out: {}: {}", (root_ / name).string(), **first)
                                    : fmt::format("{} files that are not images are left out, the first is {}: {}", count,
                                                  (root_ / name).string(), **first));
    }
    std::size_t at = 0;
    std::erase_if(images_, [&](const FolderImage&) { return reasons[at++].has_value(); });
    if (links_ != 0) notices_.push_back(fmt::format("{} links to images of {} itself are left out", links_, root_.string()));
  }

  void check_classes() const {
    std::vector<bool> seen(classes_.size());
    for (const FolderImage& image : images_) seen[static_cast<std::size_t>(image.label)] = true;
    const auto none = std::find(seen.begin(), seen.end(), false);
    if (none == seen.end()) return;
    const std::string& name = classes_[static_cast<std::size_t>(none - seen.begin())];
    base::refuse_content((root_ / name).string(),
                         "a class without PNG or JPEG files; every folder is a class: add images or remove it");
  }

  FolderPath root_;
  std::vector<std::string> classes_;
  std::vector<FolderImage> images_;
  std::vector<std::string> notices_;
  std::int64_t links_ = 0;
};

bool holds_folders(const FolderPath& path) {
  std::error_code none;
  for (const auto& entry : base::entries_of(path, none)) {
    if (entry.is_directory(none)) return true;
  }
  return false;
}

// Training images, and those held out where there are any. A folder train without folders is a class of railway pictures.
std::pair<FolderPath, FolderPath> split_folders(const FolderPath& path) {
  std::error_code none;
  if (!holds_folders(path / "train")) return {path, {}};
  for (const char* name : kHeldOut) {
    if (std::filesystem::is_directory(path / name, none)) return {path / "train", path / name};
  }
  return {path / "train", {}};
}

}  // namespace

bool is_image_folder(const FolderPath& path) { return std::filesystem::is_directory(path); }

Splits open_image_folder(const FolderPath& path) {
  const auto [train, test] = split_folders(path);
  Splits splits;
  const auto open = [&](const FolderPath& root) -> std::shared_ptr<const ImageSet> {
    if (root.empty()) return nullptr;
    FolderScan scan(root);
    splits.notices.insert(splits.notices.end(), scan.notices().begin(), scan.notices().end());
    return scan.set();
  };
  splits.train = open(train);
  splits.test = open(test);
  return splits;
}

ImageFacts facts_of_image_folder(const FolderPath& path) {
  const FolderScan scan(split_folders(path).first);
  return {scan.size(), 0, 3, scan.classes()};
}

}  // namespace cautious::data
