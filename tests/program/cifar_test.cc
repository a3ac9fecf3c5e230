// CIFAR's .bin files and the package whose images are rows of PNG files, made by hand.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "data/images/image_set.h"
#include "data_fixture.h"
#include "png_by_hand.h"

namespace cautious::data {
namespace cifar_test {

// Of image `number`, at a pixel and a channel.
std::uint8_t value(int number, int pixel, int channel) {
  return static_cast<std::uint8_t>(base::mix64(static_cast<std::uint64_t>(number * 3072 + pixel * 3 + channel)));
}

std::string record(const std::string& labels, int number) {
  std::string bytes = labels;
  for (int channel = 0; channel < 3; ++channel) {
    for (int pixel = 0; pixel < 1024; ++pixel) bytes += static_cast<char>(value(number, pixel, channel));
  }
  return bytes;
}

void expect_image(const ImageSet& set, std::int64_t index, int number, std::int64_t label) {
  Image image;
  set.read(index, image);
  EXPECT_EQ(set.label(index), label);
  ASSERT_EQ(image.pixels.size(), 3072u);
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.width, 32);
  for (int pixel = 0; pixel < 1024; ++pixel) {
    for (int channel = 0; channel < 3; ++channel)
      ASSERT_EQ(image.pixels[static_cast<std::size_t>(pixel * 3 + channel)], value(number, pixel, channel)) << number;
  }
}

class CifarFiles : public DataFiles {
 protected:
  ImageSpec spec() const {
    ImageSpec images;
    images.path = {folder_.string()};
    return images;
  }
  std::string refusal() const {
    return line_of(Fault::data, [&] { open_images(spec(), {}); });
  }

  // Rows of the package; the images have numbers from `first` on.
  void rows(const std::string& name, int first, std::uint32_t count, std::uint32_t width = 1024) const {
    HandPng png{width, count};
    png.value = [&](std::uint32_t x, std::uint32_t y, int c) {
      return unsigned{value(first + static_cast<int>(y), static_cast<int>(x), c)};
    };
    write(name, png_by_hand(png));
  }
  void package() const {
    for (int i = 0; i < 5; ++i) rows(fmt::format("data_batch_{}.png", i + 1), 2 * i, 2);
    rows("test_batch.png", 10, 3);
    write("train_lables.json", "[0,1,2,3,4,5,6,7,8,9]");
    write("test_lables.json", "[9, 8, 7]");
  }
};

TEST_F(CifarFiles, TenFromBatches) {
  write("data_batch_1.bin", record("\x03", 0) + record("\x09", 1));
  write("data_batch_2.bin", record(std::string(1, '\0'), 2));
  write("test_batch.bin", record("\x05", 3));
  const ImageData data = open_images(spec(), {});
  ASSERT_EQ(data.train->size(), 3);
  EXPECT_EQ(data.train->channels(), 3);
  expect_image(*data.train, 0, 0, 3);
  expect_image(*data.train, 1, 1, 9);
  expect_image(*data.train, 2, 2, 0);
  expect_image(*data.validation, 0, 3, 5);
  EXPECT_EQ(data.train->name(2), "data_batch_2.bin image 0");
  EXPECT_EQ(data.train->classes()[5], "dog");
  EXPECT_EQ(image_facts(spec()).training, 3);
}

TEST_F(CifarFiles, HundredTakesTheFineLabel) {
  write("train.bin", record("\x13\x63", 0) + record(std::string("\x01\x00", 2), 1));
  write("test.bin", record("\x02\x07", 2));
  const ImageData data = open_images(spec(), {});
  ASSERT_EQ(data.train->size(), 2);
  expect_image(*data.train, 0, 0, 99);
  expect_image(*data.train, 1, 1, 0);
  expect_image(*data.validation, 0, 2, 7);
  EXPECT_EQ(data.train->classes()[99], "99");
  std::string names;
  for (int i = 0; i < 100; ++i) names += fmt::format("thing {}\r\n", i);
  write("fine_label_names.txt", names + "\n");
  EXPECT_EQ(open_images(spec(), {}).train->classes()[99], "thing 99");
  write("fine_label_names.txt", "apple\n");
  EXPECT_TRUE(has(refusal(), "fine_label_names.txt: 1 names, but there are 100 classes"));
}

TEST_F(CifarFiles, NamesOfTheTenComeFromTheirFile) {
  write("data_batch_1.bin", record("\x03", 0) + record("\x09", 1));
  write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(open_image_set(spec())->classes()[9], "j");
}

TEST_F(CifarFiles, SizesAndLabelsMustFit) {
  write("test_batch.bin", record("\x01", 0));
  const auto wrong = [&](const std::string& content) {
    write("data_batch_1.bin", content);
    return refusal();
  };
  EXPECT_TRUE(has(wrong(record("\x01", 0) + "x"), "data_batch_1.bin: not CIFAR's: its 3074 bytes are not a multiple of 3073"));
  EXPECT_TRUE(has(wrong(""), "data_batch_1.bin: not CIFAR's: its 0 bytes"));
  EXPECT_TRUE(has(wrong(record("\x01", 0) + record("\x0a", 1)), "data_batch_1.bin: image 1 has the label 10; valid: 0 to 9"));
  std::filesystem::remove(folder_ / "data_batch_1.bin");
  EXPECT_TRUE(has(refusal(), "has test images only"));
}

TEST_F(CifarFiles, RowsOfThePackageAreImages) {
  package();
  const ImageData data = open_images(spec(), {});
  ASSERT_EQ(data.train->size(), 10);
  ASSERT_EQ(data.validation->size(), 3);
  for (int i = 0; i < 10; ++i) expect_image(*data.train, i, i, i);
  for (int i = 0; i < 3; ++i) expect_image(*data.validation, i, 10 + i, 9 - i);
  EXPECT_EQ(data.train->name(7), "data_batch_4.png image 1");
  EXPECT_EQ(data.train->classes()[0], "airplane");
  EXPECT_EQ(image_facts(spec()).training, 10);
}

TEST_F(CifarFiles, APackageThatDoesNotFitIsRefused) {
  package();
  write("test_lables.json", "[9, 8]");
  EXPECT_TRUE(has(refusal(), "test_lables.json: 2 labels, but there are 3 images"));
  for (const char* label : {"10", "-1", "1.5", "\"cat\"", "256", "[1]"}) {
    write("test_lables.json", fmt::format("[9, {}, 7]", label));
    EXPECT_TRUE(has(refusal(), fmt::format("test_lables.json: image 1 has the label {}; valid: 0 to 9", label))) << refusal();
  }
  for (const char* json : {"", "{}", "[1,2", "7"}) {
    write("test_lables.json", json);
    EXPECT_TRUE(has(refusal(), "test_lables.json: not a list of labels in JSON"));
  }
  package();
  rows("data_batch_3.png", 0, 2, 1023);
  EXPECT_TRUE(has(refusal(), "data_batch_3.png: its rows have 1023 pixels; an image has 1024"));
  std::filesystem::remove(folder_ / "data_batch_3.png");
  EXPECT_TRUE(has(refusal(), "data_batch_3.png: cannot open: No such file"));
}

}  // namespace cifar_test
}  // namespace cautious::data
