// Names to sets, and which of their images are trained on.
#include "data/images/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include <cautious/detail/field.h>
#include <cautious/error.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/images/formats.h"
#include "data/sets/catalog.h"

namespace cautious::data {
namespace {

using SetPath = std::filesystem::path;
using SharedSet = std::shared_ptr<const ImageSet>;
using SetProgress = std::function<void(const std::string& what, double fraction)>;

// Some images of some sets that are alike.
class Selection final : public ImageSet {
 public:
  struct Pick {
    std::size_t set;
    std::int64_t index;
  };
  Selection(std::vector<SharedSet> sets, std::vector<Pick> picks) : sets_(std::move(sets)), picks_(std::move(picks)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(picks_.size()); }
  std::int64_t label(std::int64_t index) const override { return set(index).label(pick(index).index); }
  const std::vector<std::string>& classes() const override { return sets_.front()->classes(); }
  std::int64_t channels() const override { return sets_.front()->channels(); }
  void read(std::int64_t index, Image& image) const override { set(index).read(pick(index).index, image); }
  std::string name(std::int64_t index) const override { return set(index).name(pick(index).index); }
  std::int64_t fingerprint() const override {
    std::uint64_t hash = picks_.size();
    for (const SharedSet& one : sets_) hash = base::mix64(hash + static_cast<std::uint64_t>(one->fingerprint()));
    for (const Pick& one : picks_)
      hash = base::mix64(hash + (one.set + 1) * base::kGolden + static_cast<std::uint64_t>(one.index));
    return static_cast<std::int64_t>(hash >> 1);
  }

 private:
  const Pick& pick(std::int64_t index) const { return picks_[static_cast<std::size_t>(index)]; }
  const ImageSet& set(std::int64_t index) const { return *sets_[pick(index).set]; }

  std::vector<SharedSet> sets_;
  std::vector<Pick> picks_;
};

SharedSet joined(const std::vector<SharedSet>& sets) {
  if (sets.size() < 2) return sets.empty() ? nullptr : sets.front();
  std::vector<Selection::Pick> picks;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    for (std::int64_t i = 0; i < sets[set]->size(); ++i) picks.push_back({set, i});
  }
  return std::make_shared<Selection>(sets, std::move(picks));
}

// All images of a set in an order that looks random and is always the same.
std::vector<std::int64_t> drawn_order(std::int64_t count) {
  constexpr std::uint64_t kKey = base::hash_of("the images that are held out");
  std::vector<std::pair<std::uint64_t, std::int64_t>> keyed;
  for (std::int64_t i = 0; i < count; ++i)
    keyed.emplace_back(base::mix64(kKey + static_cast<std::uint64_t>(i) * base::kGolden), i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int64_t> order;
  for (const auto& [key, index] : keyed) order.push_back(index);
  return order;
}

// Of the drawn order, [first, last); in the order of the set.
SharedSet drawn(const SharedSet& set, std::int64_t first, std::int64_t last) {
  const std::vector<std::int64_t> order = drawn_order(set->size());
  std::vector<Selection::Pick> picks;
  for (std::int64_t i = first; i < last; ++i) picks.push_back({0, order[static_cast<std::size_t>(i)]});
  std::sort(picks.begin(), picks.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  return std::make_shared<Selection>(std::vector{set}, std::move(picks));
}

std::int64_t held_out(std::int64_t images, double fraction) {
  base::check_range("data.val_fraction", fraction, {0, 1, false, true});
  const std::int64_t count = std::llround(fraction * static_cast<double>(images));
  if (fraction > 0 && (count < 1 || count >= images))
    throw Error(Fault::usage, fmt::format("data.val_fraction {} of {} images leaves {} images to {}", fraction, images,
                                          count < 1 ? "no" : "none of the", count < 1 ? "validate on" : "train on"));
  return count;
}

std::int64_t checked_train_images(std::int64_t wanted, std::int64_t images) {
  if (wanted >= 0 && wanted <= images) return wanted == 0 ? images : wanted;
  throw Error(Fault::usage,
              fmt::format("data.train_images is {}, but there are {} training images; valid: 0 for all, or 1 to {}", wanted,
                          images, images));
}

struct Format {
  bool (*is)(const SetPath&);
  Splits (*open)(const SetPath&);
  ImageFacts (*facts)(const SetPath&);
};
constexpr std::array kFormats = {Format{is_idx, open_idx, facts_of_idx}, Format{is_cifar, open_cifar, facts_of_cifar},
                                 Format{is_cifar_rows, open_cifar_rows, facts_of_cifar_rows},
                                 Format{is_image_folder, open_image_folder, facts_of_image_folder}};

const Format& format_of(const SetPath& path) {
  const auto format = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& one) { return one.is(path); });
  if (format != kFormats.end()) return *format;
  base::refuse_content(path.string(),
                       "not a set of images; valid: a folder of PNG or JPEG files per class, an idx file "
                       "whose name contains images-idx3-ubyte, a .bin file of CIFAR, a folder of these");
}

bool is_there(const std::string& name) {
  std::error_code none;
  return std::filesystem::exists(name, none);
}

void check_names(const std::vector<std::string>& names, const std::string& key) {
  if (names.empty())
    throw Error(Fault::usage, fmt::format("{} is empty; it takes files, folders or the name of a set of `cautious data`", key));
  std::set<SetPath> seen;
  for (const std::string& name : names) {
    std::error_code none;
    if (!seen.insert(std::filesystem::weakly_canonical(name, none)).second)
      throw Error(Fault::usage, fmt::format("{} names {} twice", key, name));
  }
}

// What a user knows as the one set is compared with what is known as the other.
void check_alike(const ImageSet& one, const std::string& name, const ImageSet& other, const std::string& other_name) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Fault::data, fmt::format("{} and {} do not go together: {}", name, other_name, what));
  };
  if (one.channels() != other.channels())
    refuse(fmt::format("their images have {} and {} channels", one.channels(), other.channels()));
  if (one.classes() == other.classes()) return;
  for (const auto& [set, rest, has] : {std::tuple(&one, &other, &name), std::tuple(&other, &one, &other_name)}) {
    const auto& known = rest->classes();
    for (const std::string& label : set->classes()) {
      if (std::find(known.begin(), known.end(), label) == known.end())
        refuse(fmt::format("only {} has the class {}", *has, base::in_quotes(label)));
    }
  }
  refuse("the same classes in another order");
}

void check_sizes(const Splits& one, const std::string& name, const Splits& other, const std::string& other_name) {
  if (one.height == 0 || other.height == 0 || (one.height == other.height && one.width == other.width)) return;
  throw Error(Fault::data, fmt::format("{} and {} do not go together: their images are {} x {} and {} x {} pixels", name,
                                       other_name, one.width, one.height, other.width, other.height));
}

Splits open_all(const std::vector<std::string>& names, const std::string& key, const SetPath& cache,
                const SetProgress& progress) {
  check_names(names, key);
  std::vector<SharedSet> train, test;
  Splits all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (progress) progress("reading " + names[i], static_cast<double>(i) / static_cast<double>(names.size()));
    const SetPath path = is_there(names[i]) ? SetPath(names[i]) : place_named(names[i], Content::images, key, cache);
    const Splits splits = format_of(path).open(path);
    check_sizes(all, names[0], splits, names[i]);
    for (const SharedSet& set : {splits.train, splits.test}) {
      const SharedSet& first = !train.empty() ? train.front() : !test.empty() ? test.front() : set;
      if (set != nullptr && first != nullptr) check_alike(*first, names[0], *set, names[i]);
      if (set != nullptr) (set == splits.train ? train : test).push_back(set);
    }
    if (splits.height != 0) std::tie(all.height, all.width) = std::pair(splits.height, splits.width);
    all.notices.insert(all.notices.end(), splits.notices.begin(), splits.notices.end());
  }
  if (progress) progress("reading " + names.back(), 1);
  all.train = joined(train);
  all.test = joined(test);
  return all;
}

const SharedSet& test_if_any(const Splits& splits) { return splits.test != nullptr ? splits.test : splits.train; }

std::string in_a_list(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

[[noreturn]] void refuse_test_images(const std::vector<std::string>& names) {
  throw Error(Fault::data, fmt::format("{} has test images only", in_a_list(names)));
}

void take_validation(const ImageSpec& spec, const Splits& own, const SetProgress& progress, ImageData& data) {
  const std::string from = in_a_list(spec.path);
  if (!spec.val_path.empty()) {
    const Splits other = open_all(spec.val_path, "data.val_path", spec.cache, progress);
    data.validation = test_if_any(other);
    check_alike(*data.train, "data.path", *data.validation, "data.val_path");
    check_sizes(own, "data.path", other, "data.val_path");
    if (data.train->fingerprint() == data.validation->fingerprint())
      throw Error(Fault::usage, "data.val_path has the same images as data.path");
    data.notices.insert(data.notices.end(), other.notices.begin(), other.notices.end());
    data.split = fmt::format("{} images of {}", data.validation->size(), in_a_list(spec.val_path));
  } else if (spec.val_fraction != 0) {
    const std::int64_t count = held_out(own.train->size(), spec.val_fraction);
    data.validation = drawn(own.train, 0, count);
    data.train = drawn(own.train, count, own.train->size());
    data.split = fmt::format("{} of the {} training images of {}, drawn at random", count, own.train->size(), from);
  } else if (own.test != nullptr) {
    data.validation = own.test;
    data.split = fmt::format("{} test images of {}", own.test->size(), from);
  } else {
    throw Error(Fault::usage, fmt::format("{} has no test images; hold some out with --data.val_fraction=0.1, or name others "
                                          "with --data.val_path",
                                          from));
  }
}

void check_two_classes(const ImageSet& set, const std::string& name) {
  for (std::int64_t i = 1; i < set.size(); ++i) {
    if (set.label(i) != set.label(0)) return;
  }
  throw Error(Fault::data,
              fmt::format("{}: {} training image{}, all of the class {}; at least two classes are needed", name, set.size(),
                          set.size() == 1 ? "" : "s", base::in_quotes(set.classes()[static_cast<std::size_t>(set.label(0))])));
}

// A study asks once for each of its runs, and a folder may have a million files.
ImageFacts facts_named(const std::string& name, const SetPath& cache) {
  const KnownSet* const known = is_there(name) ? nullptr : known_set_if_any(name);
  if (known != nullptr && known->content == Content::images) {
    return {known->train_images, known->image_size, known->channels, known->classes};
  }
  const SetPath path = is_there(name) ? SetPath(name) : place_named(name, Content::images, "data.path", cache);
  static std::map<SetPath, ImageFacts> seen;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto found = seen.find(path);
  return found != seen.end() ? found->second : seen.emplace(path, format_of(path).facts(path)).first->second;
}

}  // namespace

ImageData open_images(const ImageSpec& spec, const SetProgress& progress) {
  Splits own = open_all(spec.path, "data.path", spec.cache, progress);
  if (own.train == nullptr) refuse_test_images(spec.path);
  ImageData data{own.train, nullptr, "", own.notices};
  take_validation(spec, own, progress, data);
  const std::int64_t images = data.train->size();
  const std::int64_t wanted = checked_train_images(spec.train_images, images);
  if (wanted < images) {
    // The last of the drawn order, as the first are held out.
    const std::int64_t all = own.train->size();
    data.train = drawn(own.train, all - wanted, all);
  }
  check_two_classes(*data.train, in_a_list(spec.path));
  return data;
}

SharedSet open_image_set(const ImageSpec& spec) { return test_if_any(open_all(spec.path, "--data", spec.cache, {})); }

ImageFacts image_facts(const ImageSpec& spec) {
  check_names(spec.path, "data.path");
  ImageFacts all{0, -1, 0, 0};
  for (const std::string& name : spec.path) {
    const ImageFacts own = facts_named(name, spec.cache);
    all = {all.training + own.training, all.size == -1 || all.size == own.size ? own.size : 0, own.channels, own.classes};
  }
  if (all.training == 0) refuse_test_images(spec.path);
  const std::int64_t others = all.training - (spec.val_path.empty() ? held_out(all.training, spec.val_fraction) : 0);
  all.training = checked_train_images(spec.train_images, others);
  return all;
}

}  // namespace cautious::data
