// Batches of images: every image once an epoch, the same bytes whoever prepares them, unreadable images left out and counted.
#include "data/images/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data_fixture.h"
#include "memory_images.h"

namespace cautious::data {
namespace loader_test {

using Labels = std::vector<std::int64_t>;

// Value 0 is 0 and 255 is 1.
View unit_view(std::int64_t size, std::size_t channels) {
  return {size, {std::vector<float>(channels, 0.0F), std::vector<float>(channels, 1.0F)}};
}

Augment everything() {
  Augment augment;
  augment.crop = Crop::resized;
  augment.flip = 0.5;
  augment.jitter = 0.3;
  augment.randaugment = 2;
  augment.erase = 0.5;
  augment.mixup = 0.8;
  augment.cutmix = 1;
  return augment;
}

LoaderSpec spec_of(std::int64_t batch, std::int64_t workers, const Augment& augment = {}, std::size_t channels = 3) {
  return {unit_view(6, channels), augment, batch, 11, workers, 0};
}

void expect_equal(const ImageBatch& one, const ImageBatch& two) {
  EXPECT_EQ(one.count, two.count);
  EXPECT_EQ(one.pixels, two.pixels);
  EXPECT_EQ(one.label, two.label);
  EXPECT_EQ(one.other, two.other);
  EXPECT_EQ(one.share, two.share);
}

TEST(Loaders, TheNumberOfWorkersChangesNothing) {
  for (const std::int64_t channels : {1, 3}) {
    const MemoryImages set(23, 8, channels);
    for (const std::int64_t batch : {1, 5, 40}) {
      const auto spec = [&](std::int64_t workers) {
        return spec_of(batch, workers, everything(), static_cast<std::size_t>(channels));
      };
      Loader none(set, spec(0)), one(set, spec(1)), three(set, spec(3));
      for (std::int64_t number = 0; number < 12; ++number) {
        const ImageBatch& expected = none.batch(number);
        expect_equal(expected, one.batch(number));
        expect_equal(expected, three.batch(number));
      }
    }
  }
}

TEST(Loaders, AnyBatchMayBeAskedFor) {
  MemoryImages set(17, 6, 3);
  Loader straight(set, spec_of(4, 0, everything()));
  std::vector<ImageBatch> all;
  std::set<float> shares;
  for (std::int64_t number = 0; number < 30; ++number) {
    all.push_back(straight.batch(number));
    shares.insert(all.back().share.front());
  }
  EXPECT_GT(shares.size(), 10u);               // every batch draws its own
  set.pause = std::chrono::microseconds(500);  // a jump meets workers at work
  for (const std::int64_t workers : {0, 1, 3}) {
    Loader loader(set, spec_of(4, workers, everything()));
    for (const std::size_t number : {9u, 10u, 10u, 9u, 11u, 13u, 0u, 29u, 1u, 2u, 3u, 20u, 18u, 19u, 17u}) {
      expect_equal(all[number], loader.batch(static_cast<std::int64_t>(number)));
    }
  }
}

TEST(Loaders, SeedsAndEpochsDiffer) {
  const MemoryImages set(64, 6, 1);
  LoaderSpec spec = spec_of(64, 0, {}, 1);
  Loader one(set, spec);
  spec.seed = 12;
  Loader two(set, spec);
  const Labels first = one.batch(0).label, second = one.batch(1).label;
  EXPECT_NE(first, second);
  EXPECT_NE(first, two.batch(0).label);
}

TEST(Loaders, EveryEpochVisitsEveryImageOnce) {
  for (const std::int64_t size : {1, 2, 7, 100}) {
    const MemoryImages set(size, 6, 1);
    Loader loader(set, spec_of(3, 2, {}, 1));
    Labels visited;
    for (std::int64_t number = 0; static_cast<std::int64_t>(visited.size()) < 4 * size; ++number) {
      const ImageBatch& batch = loader.batch(number);
      visited.insert(visited.end(), batch.label.begin(), batch.label.end());
    }
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      const std::set<std::int64_t> seen(visited.begin() + epoch * size, visited.begin() + (epoch + 1) * size);
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size);
    }
  }
}

// Order and chance must never change: a run that is continued with a later version keeps the same ones. Numbers of another
// implementation, in Python.
TEST(Loaders, OrderAndChanceAreFixed) {
  struct Sample {
    std::int64_t index, top, left;
    bool flipped;
  };
  const std::vector<Sample> samples = {{9, -1, -1, false}, {2, 1, -1, false},  {8, 1, 1, true},   {5, -1, 0, false},
                                       {6, -2, 1, false},  {0, -2, -2, false}, {4, -2, 0, false}, {7, 1, 0, false},
                                       {3, 0, -2, true},   {1, -1, -2, true},  {8, 2, -1, false}, {3, 0, 1, false}};
  const MemoryImages set(10, 6, 1);
  Augment augment;
  augment.crop = Crop::pad;
  augment.pad = 2;
  augment.flip = 0.5;
  LoaderSpec spec = spec_of(12, 0, augment, 1);
  spec.seed = 1;
  const ImageBatch batch = Loader(set, spec).batch(0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    EXPECT_EQ(batch.label[i], sample.index);
    Image image;
    set.read(sample.index, image);
    for (std::int64_t y = 0; y < 6; ++y) {
      for (std::int64_t x = 0; x < 6; ++x) {
        const std::int64_t old_y = y + sample.top, old_x = (sample.flipped ? 5 - x : x) + sample.left;
        const bool inside = old_y >= 0 && old_y < 6 && old_x >= 0 && old_x < 6;
        const double expected = inside ? image.pixels[static_cast<std::size_t>(old_y * 6 + old_x)] / 255.0 : 0;
        ASSERT_NEAR(batch.pixels[i * 36 + static_cast<std::size_t>(y * 6 + x)], expected, 1e-6) << i;
      }
    }
  }
}

TEST(Loaders, WithoutAugmentationTheImagesAreThere) {
  const MemoryImages set(20, 6, 3);
  LoaderSpec spec = spec_of(7, 1);
  spec.view.normalization = {{0.1F, 0.2F, 0.3F}, {0.5F, 0.25F, 2.0F}};
  Loader loader(set, spec);
  for (std::int64_t number = 0; number < 5; ++number) {
    const ImageBatch& batch = loader.batch(number);
    EXPECT_EQ(batch.other, batch.label);
    EXPECT_EQ(batch.share, std::vector<float>(7, 1.0F));
    for (std::size_t i = 0; i < 7; ++i) {
      Image image;
      set.read(batch.label[i], image);
      for (std::size_t j = 0; j < image.pixels.size(); ++j) {
        const auto& [mean, deviation] = spec.view.normalization;
        ASSERT_NEAR(batch.pixels[i * image.pixels.size() + j], (image.pixels[j] / 255.0 - mean[j % 3]) / deviation[j % 3],
                    1e-6);
      }
    }
  }
}

TEST(Loaders, UnreadableImagesAreLeftOutAndNamedOnce) {
  MemoryImages set(10, 6, 3);
  set.unreadable = {2, 5};
  for (const std::int64_t workers : {0, 1, 3}) {
    LoaderSpec spec = spec_of(5, workers, everything());
    spec.most_bad = 2;
    Loader loader(set, spec);
    std::vector<std::string> met;
    for (std::int64_t number = 0; number < 8; ++number) {
      const ImageBatch& batch = loader.batch(number);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(batch.label[i] < 0, batch.other[i] < 0);
        EXPECT_FALSE(set.unreadable.contains(batch.label[i]) || set.unreadable.contains(batch.other[i]));
        if (batch.label[i] >= 0) continue;
        EXPECT_EQ(batch.share[i], 1);
        EXPECT_TRUE(std::all_of(batch.pixels.begin() + static_cast<std::ptrdiff_t>(i) * 108,
                                batch.pixels.begin() + static_cast<std::ptrdiff_t>(i + 1) * 108,
                                [](float x) { return x == 0; }));
        EXPECT_EQ(batch.other[4 - i], batch.label[4 - i]);  // the partner, unmixed
        EXPECT_EQ(batch.share[4 - i], 1);
      }
    }
    met = loader.bad();
    std::sort(met.begin(), met.end());
    EXPECT_EQ(met, (std::vector<std::string>{"2.png: truncated", "5.png: truncated"}));
  }
}

TEST(Loaders, UnreadableImagesComeInTheOrderOfTheBatch) {
  MemoryImages set(40, 6, 3);
  for (std::int64_t i = 0; i < set.size(); ++i) set.unreadable.insert(i);
  set.pause = std::chrono::microseconds(500);
  const auto bad = [&](std::int64_t workers) {
    LoaderSpec spec = spec_of(20, workers);
    spec.most_bad = 40;
    Loader loader(set, spec);
    loader.batch(0);
    EXPECT_EQ(loader.bad().size(), 20u);  // those of the batch, however much is ready
    loader.batch(1);
    return loader.bad();
  };
  const std::vector<std::string> expected = bad(0);
  EXPECT_EQ(expected.size(), 40u);
  EXPECT_EQ(bad(1), expected);
  EXPECT_EQ(bad(3), expected);
}

TEST(Loaders, TooManyUnreadableImagesAreAnError) {
  MemoryImages set(10, 6, 3);
  set.unreadable = {2, 5, 6};
  for (const std::int64_t workers : {0, 2}) {
    LoaderSpec spec = spec_of(10, workers);
    spec.most_bad = 2;
    Loader loader(set, spec);
    const std::string line = line_of(Fault::data, [&] { loader.batch(0); });
    ASSERT_EQ(loader.bad().size(), 3u);
    EXPECT_EQ(line, "3 images cannot be read, the last is " + loader.bad().back() +
                        "; at most 2 are left out: repair or remove them, or raise data.most_bad");
    EXPECT_EQ(line_of(Fault::data, [&] { loader.batch(1); }), line);
  }
}

TEST(Loaders, OtherErrorsOfWorkersReachTheCaller) {
  MemoryImages set(10, 6, 3);
  for (const std::int64_t workers : {0, 1, 3}) {
    set.broken = 4;
    Loader loader(set, spec_of(10, workers));
    EXPECT_EQ(line_of(Fault::failure, [&] { loader.batch(0); }), "the disk is gone");
    set.broken = -1;
    Loader sound(set, spec_of(10, 0));
    // Batches ahead may have failed before the disk came back.
    while (line_of(Fault::failure, [&] { expect_equal(loader.batch(1), sound.batch(1)); }) != "") continue;
    expect_equal(loader.batch(0), sound.batch(0));
  }
}

TEST(Loaders, Refusals) {
  const MemoryImages set(10, 6, 3);
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { Loader(set, spec_of(0, 1)); }), "batches of 0 images"));
  EXPECT_TRUE(
      has(line_of(Fault::usage, [&] { Loader(set, spec_of(2, 1, {}, 1)); }), "1 means and 1 deviations for images of 3"));
  Loader loader(set, spec_of(2, 1));
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { loader.batch(-1); }), "batch number -1"));
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { plain_batch(set, 8, 3, unit_view(6, 3), 1); }), "3 images from 8 on"));
}

TEST(PlainBatches, ImagesOfTheViewsSizeStayAndOthersAreLeftOut) {
  MemoryImages set(9, 6, 3);
  set.unreadable = {4};
  for (const std::int64_t workers : {0, 1, 3}) {
    const ImageBatch batch = plain_batch(set, 2, 5, unit_view(6, 3), workers);
    EXPECT_EQ(batch.label, (Labels{2, 3, -1, 5, 6}));
    EXPECT_EQ(batch.other, batch.label);
    EXPECT_EQ(batch.share, std::vector<float>(5, 1.0F));
    for (std::size_t i = 0; i < 5; ++i) {
      Image image{6, 6, 3, std::vector<std::uint8_t>(108)};
      if (batch.label[i] >= 0) set.read(batch.label[i], image);
      std::vector<float> pixels(108);
      put_plain(image, unit_view(6, 3), pixels.data());
      for (std::size_t j = 0; j < 108; ++j) {
        ASSERT_EQ(pixels[j], static_cast<float>(image.pixels[j] / 255.0));
        ASSERT_EQ(batch.pixels[i * 108 + j], pixels[j]);
      }
    }
  }
}

TEST(Normalizations, AreThoseOfThePixels) {
  MemoryImages set(50, 5, 3);
  double sum[3] = {}, squares[3] = {};
  for (std::int64_t index = 0; index < set.size(); ++index) {
    if (index == 7) continue;
    Image image;
    set.read(index, image);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      sum[i % 3] += image.pixels[i] / 255.0 / (49 * 25);
      squares[i % 3] += std::pow(image.pixels[i] / 255.0, 2) / (49 * 25);
    }
  }
  set.unreadable = {7};
  const Normalization normalization = normalization_of(set);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(normalization.mean[c], sum[c], 1e-6);
    EXPECT_NEAR(normalization.deviation[c], std::sqrt(squares[c] - sum[c] * sum[c]), 1e-6);
  }
  // Of one colour: finite numbers all the same.
  const MemoryImages black(std::vector<Image>(3, Image{2, 2, 1, std::vector<std::uint8_t>(4)}));
  EXPECT_EQ(normalization_of(black).mean, std::vector<float>{0});
  EXPECT_GT(normalization_of(black).deviation[0], 0);
  for (std::int64_t i = 0; i < set.size(); ++i) set.unreadable.insert(i);
  EXPECT_NE(line_of(Fault::data, [&] { normalization_of(set); }), "");
}

}  // namespace loader_test
}  // namespace cautious::data
