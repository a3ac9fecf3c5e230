// Folders of PNG and JPEG files per class, and what open_images makes of any sets: splits, draws, errors.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/images/image_set.h"
#include "data_fixture.h"
#include "png_by_hand.h"

namespace cautious::data {
namespace image_folder_test {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string jpeg() { return base::read_file(fs::path(TEST_DATA) / "fuzz/corpus/jpeg/valid_444"); }

Names names_in(const ImageSet& set) {
  Names names;
  for (std::int64_t i = 0; i < set.size(); ++i) names.push_back(set.name(i));
  return names;
}

class ImageFolder : public DataFiles {
 protected:
  // Classes cat and dog, `count` images each, every image of its own colour.
  void animals(const std::string& below, unsigned count) const {
    for (unsigned i = 0; i < count; ++i) {
      write(fmt::format("{}/cat/{:02}.png", below, i), plain_png(2 + i % 3, 3, i, 0, 1));
      write(fmt::format("{}/dog/{:02}.png", below, i), plain_png(4, 2, i, 1, 0));
    }
  }
  ImageSpec spec(const std::string& below) const {
    ImageSpec images;
    images.path = {(folder_ / below).string()};
    images.cache = folder_ / "cache";
    return images;
  }
  static std::string refusal(const ImageSpec& images, Fault fault = Fault::data) {
    return line_of(fault, [&] { open_images(images, {}); });
  }
  std::string refusal(const std::string& below) const {
    ImageSpec images = spec(below);
    images.val_fraction = 0.5;
    return refusal(images);
  }
};

TEST_F(ImageFolder, EveryFolderIsAClassAndFilesAreSorted) {
  write("set/dog/b.PNG", plain_png(1, 2, 10, 20, 30));
  write("set/dog/a/deep/z.jpeg", jpeg());
  write("set/cat/10.jpg", jpeg());
  write("set/cat/9.png", plain_png(1, 1, 1, 2, 3));
  write("set/cat/.hidden.png", "x");
  write("set/cat/notes.txt", "x");
  write("set/loose.png", plain_png(1, 1, 1, 2, 3));
  write("set/.git/x.png", "x");
  const auto set = open_image_set(spec("set"));
  EXPECT_EQ(set->classes(), (Names{"cat", "dog"}));
  EXPECT_EQ(names_in(*set), (Names{"cat/10.jpg", "cat/9.png", "dog/a/deep/z.jpeg", "dog/b.PNG"}));
  EXPECT_EQ(set->label(1), 0);
  EXPECT_EQ(set->label(2), 1);
  EXPECT_EQ(set->channels(), 3);
  Image image;
  set->read(2, image);
  EXPECT_EQ(image.width, 16);
  set->read(3, image);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{10, 20, 30, 10, 20, 30}));
  EXPECT_EQ(image_facts(spec("set")).training, 4);
}

TEST_F(ImageFolder, TrainAndValAreASplit) {
  animals("set/train", 3);
  for (const char* name : {"test", "validation", "valid", "val"}) {  // the last one named wins
    animals(fmt::format("set/{}", name), name == std::string("val") ? 2 : 1);
    const ImageData data = open_images(spec("set"), {});
    EXPECT_EQ(data.train->size(), 6);
    EXPECT_EQ(data.validation->size(), name == std::string("val") ? 4 : 2) << name;
    EXPECT_EQ(data.split, fmt::format("{} test images of {}", data.validation->size(), (folder_ / "set").string()));
  }
  EXPECT_EQ(image_facts(spec("set")).training, 6);
  EXPECT_EQ(open_image_set(spec("set"))->size(), 4);
}

TEST_F(ImageFolder, TrainsMayBeAClass) {
  for (const char* name : {"bus", "train", "val"}) write(fmt::format("set/{}/a.png", name), plain_png(1, 1, 1, 2, 3));
  EXPECT_EQ(open_image_set(spec("set"))->classes(), (Names{"bus", "train", "val"}));
}

TEST_F(ImageFolder, WhatIsNotAnImageIsLeftOutAndNamed) {
  animals("set", 3);
  ImageSpec images = spec("set");
  images.val_fraction = 0.5;
  EXPECT_EQ(open_images(images, {}).notices, Names{});
  write("set/cat/bad.png", "GIF89a");
  const std::string root = fs::canonical(folder_ / "set").string();
  EXPECT_EQ(open_images(images, {}).notices,
            Names{fmt::format("a file is left out: {}/cat/bad.png: not a PNG or JPEG file", root)});
  write("set/cat/01.jpg", "");
  write("set/dog/gone.png", "");
  fs::remove(folder_ / "set/dog/gone.png");
  fs::create_symlink("nowhere", folder_ / "set/dog/gone.png");
  const ImageData data = open_images(images, {});
  ASSERT_EQ(data.notices.size(), 1u);
  EXPECT_EQ(data.notices[0],
            fmt::format("3 files that are not images are left out, the first is {}/cat/01.jpg: is empty", root));
  EXPECT_EQ(data.train->size() + data.validation->size(), 6);
  EXPECT_EQ(image_facts(images).training, data.train->size());
}

TEST_F(ImageFolder, LinksCountUnlessTheyLeadIntoTheSet) {
  animals("set", 2);
  animals("elsewhere", 1);
  fs::create_symlink("../cat/00.png", folder_ / "set/dog/again.png");
  fs::create_symlink(folder_ / "elsewhere/cat/00.png", folder_ / "set/dog/other.png");
  fs::create_directory_symlink(folder_ / "elsewhere/dog", folder_ / "set/fox");
  ImageSpec images = spec("set");
  images.val_fraction = 0.4;
  const ImageData data = open_images(images, {});
  EXPECT_EQ(data.train->size() + data.validation->size(), 6);
  EXPECT_EQ(data.train->classes(), (Names{"cat", "dog", "fox"}));
  EXPECT_EQ(data.notices,
            Names{fmt::format("1 links to images of {} itself are left out", fs::canonical(folder_ / "set").string())});
}

TEST_F(ImageFolder, ADamagedImageIsAnErrorWhenItIsRead) {
  animals("set", 1);
  write("set/cat/half.png", plain_png(8, 8, 1, 2, 3).substr(0, 60));
  const auto set = open_image_set(spec("set"));
  ASSERT_EQ(set->size(), 3);
  Image image;
  const std::string line = line_of(Fault::data, [&] { set->read(1, image); });
  EXPECT_TRUE(has(line, "set/cat/half.png: damaged PNG file: ")) << line;
}

TEST_F(ImageFolder, AFingerprintIsOfTheFilesNotOfTheirPosition) {
  animals("set", 3);
  animals("copy/of", 3);
  const std::int64_t print = open_image_set(spec("set"))->fingerprint();
  EXPECT_GE(print, 0);
  EXPECT_EQ(print, open_image_set(spec("copy/of"))->fingerprint());
  write("copy/of/cat/01.png", plain_png(50, 50, 1, 1, 1));
  EXPECT_NE(print, open_image_set(spec("copy/of"))->fingerprint());
}

TEST_F(ImageFolder, FoldersThatAreNotSetsAreRefused) {
  fs::create_directories(folder_ / "empty");
  EXPECT_TRUE(
      has(refusal("empty"), "empty: no images: neither idx nor CIFAR files, nor a folder of PNG or JPEG files per class"));
  write("loose/a.png", plain_png(1, 1, 1, 1, 1));
  EXPECT_TRUE(has(refusal("loose"), "loose: no images"));
  animals("hole", 1);
  fs::create_directories(folder_ / "hole/bird");
  EXPECT_TRUE(
      has(refusal("hole"), "hole/bird: a class without PNG or JPEG files; every folder is a class: add images or remove it"));
  write("one/cat/a.png", plain_png(1, 1, 1, 1, 1));
  write("one/cat/b.png", plain_png(1, 1, 1, 1, 2));
  EXPECT_TRUE(has(refusal("one"), "one: 1 training image, all of the class 'cat'; at least two classes are needed"));
  EXPECT_TRUE(
      has(refusal("one/cat/a.png"), "one/cat/a.png: not a set of images; valid: a folder of PNG or JPEG files per class"));
}

TEST_F(ImageFolder, TheDrawIsAlwaysTheSameAndDisjoint) {
  animals("set", 20);
  ImageSpec images = spec("set");
  images.val_fraction = 0.25;
  const ImageData data = open_images(images, {}), again = open_images(images, {});
  EXPECT_EQ(data.split, fmt::format("10 of the 40 training images of {}, drawn at random", (folder_ / "set").string()));
  const Names train = names_in(*data.train), validation = names_in(*data.validation);
  EXPECT_EQ(train, names_in(*again.train));
  EXPECT_EQ(data.train->fingerprint(), again.train->fingerprint());
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  std::set<std::string> all(train.begin(), train.end());
  all.insert(validation.begin(), validation.end());
  EXPECT_EQ(all.size(), 40u);
  EXPECT_EQ(train.size(), 30u);
  const auto cats =
      std::count_if(validation.begin(), validation.end(), [](const auto& name) { return name.starts_with("cat"); });
  EXPECT_TRUE(cats > 0 && cats < 10) << cats;
  for (std::int64_t i = 0; i < 30; ++i) EXPECT_EQ(data.train->label(i), data.train->name(i).starts_with("dog"));
  Image image;
  data.train->read(29, image);
  EXPECT_EQ(image.width, 4);
}

TEST_F(ImageFolder, FewerTrainingImagesArePartOfMore) {
  animals("set", 20);
  ImageSpec images = spec("set");
  images.val_fraction = 0.25;
  const Names all = names_in(*open_images(images, {}).train);
  std::set<std::string> larger(all.begin(), all.end());
  for (const std::int64_t count : {30, 12, 5}) {
    images.train_images = count;
    const ImageData data = open_images(images, {});
    const Names names = names_in(*data.train);
    EXPECT_EQ(static_cast<std::int64_t>(names.size()), count);
    EXPECT_EQ(image_facts(images).training, count);
    for (const std::string& name : names) EXPECT_TRUE(larger.contains(name)) << name;
    larger = {names.begin(), names.end()};
  }
  images.train_images = 31;
  EXPECT_EQ(refusal(images, Fault::usage),
            "data.train_images is 31, but there are 30 training images; valid: 0 for all, or 1 to 30");
  EXPECT_EQ(message([&] { image_facts(images); }), refusal(images, Fault::usage));
  images.train_images = -1;
  EXPECT_TRUE(has(refusal(images, Fault::usage), "data.train_images is -1"));
}

TEST_F(ImageFolder, WithoutTestImagesTheUserMustSayWhatToValidateOn) {
  animals("set", 2);
  ImageSpec images = spec("set");
  EXPECT_TRUE(has(refusal(images, Fault::usage),
                  "set has no test images; hold some out with --data.val_fraction=0.1, or name others with --data.val_path"));
  for (const double fraction : {-0.1, 1.0, 1.5}) {
    images.val_fraction = fraction;
    EXPECT_TRUE(has(refusal(images, Fault::usage), "data.val_fraction")) << fraction;
  }
  images.val_fraction = 0.01;
  EXPECT_EQ(refusal(images, Fault::usage), "data.val_fraction 0.01 of 4 images leaves no images to validate on");
  images.val_fraction = 0.9;
  EXPECT_EQ(refusal(images, Fault::usage), "data.val_fraction 0.9 of 4 images leaves none of the images to train on");
}

TEST_F(ImageFolder, ValidationFromElsewhereMustGoWithTheTrainingImages) {
  animals("set", 2);
  animals("other", 1);
  ImageSpec images = spec("set");
  const auto with = [&](const std::string& below) {
    images.val_path = {(folder_ / below).string()};
    return refusal(images);
  };
  EXPECT_EQ(with("other"), "");
  EXPECT_EQ(open_images(images, {}).split, fmt::format("2 images of {}", (folder_ / "other").string()));
  EXPECT_EQ(image_facts(images).training, 4);
  write("more/cow/a.png", plain_png(1, 1, 1, 1, 1));
  animals("more", 1);
  EXPECT_EQ(with("more"), "data.path and data.val_path do not go together: only data.val_path has the class 'cow'");
  write("set/emu/a.png", plain_png(1, 1, 1, 1, 1));
  EXPECT_EQ(with("other"), "data.path and data.val_path do not go together: only data.path has the class 'emu'");
  images.val_path = images.path;
  EXPECT_EQ(refusal(images, Fault::usage), "data.val_path has the same images as data.path");
  write("gray/train-images-idx3-ubyte", std::string("\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x01x", 17));
  write("gray/train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x01\x05", 9));
  EXPECT_EQ(with("gray"), "data.path and data.val_path do not go together: their images have 3 and 1 channels");
}

TEST_F(ImageFolder, NamesOfKnownSets) {
  ImageSpec images = spec("");
  images.path = {"fashion-mnis"};
  EXPECT_EQ(refusal(images, Fault::usage).substr(0, 90),
            "data.path: no file, folder or known set named 'fashion-mnis'; did you mean 'fashion-mnist'");
  images.path = {"cifar10"};
  const std::string line = refusal(images);
  EXPECT_TRUE(has(line, "'cifar10' is not in ") && has(line, "; get it: cautious data get cifar10 --cache ")) << line;
  EXPECT_EQ(image_facts(images).training, 50000) << "before it is fetched";
  images.val_fraction = 0.1;
  EXPECT_EQ(image_facts(images).training, 45000);
  images.path = {"gcide"};
  EXPECT_EQ(refusal(images, Fault::usage), "'gcide' is a set of text, not of images");
  images.path = {"./nothing"};
  EXPECT_EQ(refusal(images),
            fmt::format("data.path: no file or folder './nothing' (looked in {})", std::filesystem::current_path().string()));
  images.path = {"/nothing"};
  EXPECT_EQ(refusal(images), "data.path: no file or folder '/nothing'");
  images.path = {};
  EXPECT_TRUE(has(refusal(images, Fault::usage), "data.path is empty; it takes files, folders or the name of a set"));
  images.path = {folder_.string(), (folder_ / ".").string()};
  EXPECT_TRUE(has(refusal(images, Fault::usage), "twice"));
}

}  // namespace image_folder_test
}  // namespace cautious::data
