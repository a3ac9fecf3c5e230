// Idx files as they come, with lying headers, and as gzip, by the system's own gzip.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/image_set.h"
#include "data_fixture.h"

namespace cautious::data {
namespace idx_test {

// The dimensions after 00 00 08 0n, big-endian.
std::string idx(const std::vector<std::int64_t>& dimensions, const std::string& values) {
  std::string file = std::string("\0\0\x08", 3) + static_cast<char>(dimensions.size());
  for (const std::int64_t dimension : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(dimension >> shift & 0xff);
  }
  return file + values;
}

std::string counting(std::size_t count) {
  std::string values;
  for (std::size_t i = 0; i < count; ++i) values += static_cast<char>(i * 7 % 251);
  return values;
}

std::string labels(const std::vector<int>& numbers) {
  std::string values;
  for (const int number : numbers) values += static_cast<char>(number);
  return idx({static_cast<std::int64_t>(numbers.size())}, values);
}

class Idx : public DataFiles {
 protected:
  // Five training images of 3 x 2 pixels and two test images.
  void put() const {
    write("train-images-idx3-ubyte", idx({5, 2, 3}, counting(30)));
    write("train-labels-idx1-ubyte", labels({0, 9, 3, 3, 1}));
    write("t10k-images-idx3-ubyte", idx({2, 2, 3}, counting(12)));
    write("t10k-labels-idx1-ubyte", labels({4, 0}));
  }
  void zip(const std::string& name) const {
    ASSERT_EQ(std::system(fmt::format("gzip -f '{}'", (folder_ / name).string()).c_str()), 0);
  }
  ImageSpec spec() const {
    ImageSpec images;
    images.path = {folder_.string()};
    images.cache = folder_ / "cache";
    return images;
  }
  std::string refusal() const {
    return line_of(Fault::data, [&] { open_images(spec(), {}); });
  }
};

void expect_the_five(const ImageData& data) {
  ASSERT_EQ(data.train->size(), 5);
  ASSERT_EQ(data.validation->size(), 2);
  EXPECT_EQ(data.train->channels(), 1);
  EXPECT_EQ(data.train->label(1), 9);
  EXPECT_EQ(data.validation->label(0), 4);
  Image image;
  data.train->read(4, image);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.channels, 1);
  const std::string whole = counting(30);
  EXPECT_EQ(image.pixels, std::vector<std::uint8_t>(whole.begin() + 24, whole.end()));
}

TEST_F(Idx, PlainAndCompressedAreTheSame) {
  put();
  const ImageData plain = open_images(spec(), {});
  expect_the_five(plain);
  EXPECT_EQ(plain.train->name(3), "train-images-idx3-ubyte image 3");
  EXPECT_EQ(plain.split, fmt::format("2 test images of {}", folder_.string()));
  zip("train-images-idx3-ubyte");
  zip("t10k-labels-idx1-ubyte");
  const ImageData mixed = open_images(spec(), {});
  expect_the_five(mixed);
  EXPECT_EQ(mixed.train->name(3), "train-images-idx3-ubyte.gz image 3");
  EXPECT_EQ(mixed.train->fingerprint(), plain.train->fingerprint());
  EXPECT_NE(mixed.train->fingerprint(), mixed.validation->fingerprint());
  EXPECT_GE(mixed.train->fingerprint(), 0);
  EXPECT_EQ(image_facts(spec()).training, 5);
}

TEST_F(Idx, FilesAloneAreTrainingSets) {
  put();
  ImageSpec images = spec();
  images.path = {(folder_ / "t10k-images-idx3-ubyte").string(), (folder_ / "train-images-idx3-ubyte").string()};
  images.val_fraction = 0.3;
  const ImageData data = open_images(images, {});
  EXPECT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.validation->size(), 2);
  EXPECT_EQ(image_facts(images).training, 5);
  images.path = {folder_.string()};
  EXPECT_EQ(open_image_set(images)->size(), 2) << "test images where there are some";
}

TEST_F(Idx, ClassesHaveNamesWhereTheFolderSaysWhatItIs) {
  put();
  EXPECT_EQ(open_images(spec(), {}).train->classes()[9], "9");
  const auto fashion = folder_.parent_path() / (folder_.filename().string() + " Fashion");
  std::filesystem::create_directory_symlink(folder_, fashion);
  ImageSpec images = spec();
  images.path = {fashion.string()};
  EXPECT_EQ(open_images(images, {}).train->classes()[9], "Ankle boot");
  std::filesystem::remove(fashion);
}

TEST_F(Idx, HeadersThatLieAreRefused) {
  const auto images = [&](const std::string& content) {
    put();
    write("train-images-idx3-ubyte", content);
    const std::string line = refusal();
    EXPECT_TRUE(has(line, "train-images-idx3-ubyte: ")) << line;
    return line;
  };
  EXPECT_TRUE(has(images(idx({5, 2, 3}, counting(29))), "says 5 images of 3 x 2, 46 bytes in all, but it has 45"));
  EXPECT_TRUE(has(images(idx({5, 2, 3}, counting(31))), "says 5 images of 3 x 2, 46 bytes in all, but it has 47"));
  EXPECT_TRUE(has(images(idx({4294967295, 8192, 8192}, counting(30))), "but it has 46"));
  EXPECT_TRUE(has(images(idx({5, 4294967295, 4294967295}, counting(30))), "an image has 1 to 67108864 pixels"));
  EXPECT_TRUE(has(images(idx({0, 2, 3}, "")), "says 0 images of 3 x 2"));
  EXPECT_TRUE(has(images(idx({5, 0, 3}, "")), "says 5 images of 3 x 0"));
  EXPECT_TRUE(has(images(idx({5, 2, 3}, "").substr(0, 10)), "ends within its header, after 10 bytes"));
  EXPECT_TRUE(has(images(labels({1, 2})), "not an idx file of images: its first bytes are not 00 00 08 03"));
  EXPECT_TRUE(has(images(""), "not an idx file of images"));
  EXPECT_TRUE(has(images("\x1f\x8b"), "damaged gzip file"));
}

TEST_F(Idx, LabelsMustFit) {
  const auto wrong = [&](const std::string& content) {
    put();
    write("train-labels-idx1-ubyte", content);
    return refusal();
  };
  EXPECT_TRUE(has(wrong(labels({1, 2, 3, 4})), "train-labels-idx1-ubyte: 4 labels, but train-images-idx3-ubyte has 5 images"));
  EXPECT_TRUE(has(wrong(labels({1, 2, 10, 4, 5})), "train-labels-idx1-ubyte: image 2 has the label 10; valid: 0 to 9"));
  EXPECT_TRUE(has(wrong(labels({7, 7, 7, 7, 7})), "5 training images, all of the class '7'; at least two classes"));
  EXPECT_TRUE(has(wrong(idx({6}, "12345")), "its header says 6 labels, 14 bytes in all, but it has 13"));
  std::filesystem::remove(folder_ / "train-labels-idx1-ubyte");
  EXPECT_TRUE(has(refusal(), "no file of its labels beside it: train-labels-idx1-ubyte[.gz]"));
}

TEST_F(Idx, SetsMustGoTogether) {
  put();
  write("t10k-images-idx3-ubyte", idx({2, 3, 3}, counting(18)));
  EXPECT_TRUE(has(refusal(), "t10k-images-idx3-ubyte: images of 3 x 3, but those of train-images-idx3-ubyte are 3 x 2"));
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}) std::filesystem::remove(folder_ / name);
  EXPECT_TRUE(has(refusal(), "has test images only")) << refusal();
  EXPECT_EQ(line_of(Fault::data, [&] { image_facts(spec()); }), refusal());
}

TEST_F(Idx, ImagesOfAnotherSizeDoNotGoTogether) {
  put();
  write("other/train-images-idx3-ubyte", idx({2, 4, 5}, counting(40)));
  write("other/train-labels-idx1-ubyte", labels({4, 0}));
  ImageSpec images = spec();
  images.val_path = {(folder_ / "other").string()};
  EXPECT_EQ(line_of(Fault::data, [&] { open_images(images, {}); }),
            "data.path and data.val_path do not go together: their images are 3 x 2 and 5 x 4 pixels");
  images.path.push_back(images.val_path.front());
  EXPECT_EQ(
      line_of(Fault::data, [&] { open_images(images, {}); }),
      fmt::format("{} and {} do not go together: their images are 3 x 2 and 5 x 4 pixels", images.path[0], images.path[1]));
}

TEST_F(Idx, ProgressComesToItsEnd) {
  put();
  std::vector<std::string> lines;
  open_images(spec(), [&](const std::string& what, double fraction) { lines.push_back(fmt::format("{} {}", what, fraction)); });
  EXPECT_EQ(lines, (std::vector<std::string>{"reading " + folder_.string() + " 0", "reading " + folder_.string() + " 1"}));
}

TEST_F(Idx, ABombIsNotDecompressed) {
  put();
  write("bomb", idx({5, 2, 3}, ""));
  const auto make = [&](const std::string& head, const std::string& zeros) {
    const std::string to = (folder_ / "train-images-idx3-ubyte.gz").string();
    std::filesystem::remove(folder_ / "train-images-idx3-ubyte");
    ASSERT_EQ(std::system(
                  fmt::format("(cat '{}'; head -c {} /dev/zero) | gzip > '{}'", (folder_ / head).string(), zeros, to).c_str()),
              0);
  };
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak();
  make("bomb", "30M");
  EXPECT_TRUE(has(refusal(), "says 5 images of 3 x 2, 46 bytes in all, but it has more")) << refusal();
  write("claims", idx({1000000, 1000, 1000}, ""));
  make("claims", "10M");
  EXPECT_TRUE(has(refusal(), "compressed, which cannot become so many")) << refusal();
  write("claims", idx({1050, 100, 100}, ""));
  make("claims", "10M");
  EXPECT_TRUE(has(refusal(), "says 1050 images of 100 x 100, 10500016 bytes in all, but it has 10485776")) << refusal();
  EXPECT_LT(peak() - before, 40 * 1024);
}

}  // namespace idx_test
}  // namespace cautious::data
