// The vision transformer against a naive one in double precision, the two paths against each other, skipped layers, first
// values.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "classifier_fixture.h"

namespace cautious {
namespace vit_test {

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using fixture::images;
using fixture::shake;
using model::ops::Path;

model::VitConfig tiny() {
  model::VitConfig c;
  c.image_size = 6, c.channels = 2, c.classes = 5, c.patch = 2;
  c.width = 12, c.layers = 3, c.heads = 3, c.hidden = 20;
  return c;
}

std::map<std::string, model::VitConfig> configs() {
  model::VitConfig mean = tiny(), sincos = tiny();
  mean.pool = model::Pool::mean;
  sincos.positions = model::Positions::sincos;
  sincos.channels = 1;
  return {{"token", tiny()}, {"mean", mean}, {"sincos", sincos}};
}

// The model once more, in loops over numbers.
class Naive {
 public:
  Naive(const model::Classifier& model, const model::VitConfig& config) : c_(config) {
    for (const auto& item : model.named_parameters()) all_[item.key()] = item.value().detach().contiguous();
  }

  Row logits(const at::Tensor& image) const {  // [channels, size, size]
    Rows x;
    if (c_.pool == model::Pool::token) x.push_back(vector("cls_token"));
    const std::int64_t side = c_.image_size / c_.patch;
    for (std::int64_t i = 0; i < side; ++i)
      for (std::int64_t j = 0; j < side; ++j) x.push_back(patch(image, i, j));
    for (std::size_t t = 0; t < x.size(); ++t) add(x[t], position(t));
    for (std::int64_t l = 0; l < c_.layers; ++l) layer("blocks." + std::to_string(l) + ".", x);
    Row row = x[0];
    if (c_.pool == model::Pool::mean) {
      row.assign(row.size(), 0);
      for (const Row& token : x)
        for (std::size_t i = 0; i < row.size(); ++i) row[i] += token[i] / static_cast<double>(x.size());
    }
    return linear("head", norm(c_.pool == model::Pool::token ? "norm" : "fc_norm", row));
  }

 private:
  Row vector(const std::string& name) const {
    const at::Tensor& t = all_.at(name);
    return {t.data_ptr<double>(), t.data_ptr<double>() + t.numel()};
  }
  static void add(Row& to, const Row& by) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by[i];
  }
  Row position(std::size_t token) const {
    const auto width = static_cast<std::size_t>(c_.width);
    if (c_.positions == model::Positions::learned) {
      const Row all = vector("pos_embed");
      return {all.begin() + static_cast<std::ptrdiff_t>(token * width),
              all.begin() + static_cast<std::ptrdiff_t>((token + 1) * width)};
    }
    Row row(width, 0.0);
    if (c_.pool == model::Pool::token && token == 0) return row;
    const std::size_t patch = token - (c_.pool == model::Pool::token ? 1 : 0);
    const auto side = static_cast<std::size_t>(c_.image_size / c_.patch);
    const std::size_t place[2] = {patch / side, patch % side}, quarter = width / 4;
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t i = 0; i < quarter; ++i) {
        const double angle =
            static_cast<double>(place[half]) / std::pow(10000, static_cast<double>(i) / static_cast<double>(quarter));
        row[half * 2 * quarter + i] = std::sin(angle);
        row[half * 2 * quarter + quarter + i] = std::cos(angle);
      }
    return row;
  }
  Row patch(const at::Tensor& image, std::int64_t i, std::int64_t j) const {
    const at::Tensor& weight = all_.at("patch_embed.proj.weight");
    Row out = vector("patch_embed.proj.bias");
    for (std::int64_t o = 0; o < c_.width; ++o)
      for (std::int64_t ch = 0; ch < c_.channels; ++ch)
        for (std::int64_t a = 0; a < c_.patch; ++a)
          for (std::int64_t b = 0; b < c_.patch; ++b)
            out[static_cast<std::size_t>(o)] +=
                weight[o][ch][a][b].item<double>() * image[ch][i * c_.patch + a][j * c_.patch + b].item<double>();
    return out;
  }
  Row linear(const std::string& name, const Row& x) const {
    Row y = vector(name + ".bias");
    const Row w = vector(name + ".weight");
    for (std::size_t o = 0; o < y.size(); ++o)
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
  }
  Row norm(const std::string& name, const Row& x) const {
    const Row scale = vector(name + ".weight"), bias = vector(name + ".bias");
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(variance + c_.norm_eps) * scale[i] + bias[i];
    return y;
  }
  void layer(const std::string& name, Rows& x) const {
    const auto width = static_cast<std::size_t>(c_.width), size = width / static_cast<std::size_t>(c_.heads);
    Rows qkv;
    for (const Row& row : x) qkv.push_back(linear(name + "attn.qkv", norm(name + "norm1", row)));
    Rows mixed(x.size(), Row(width, 0.0));
    for (std::size_t h = 0; h < width; h += size)
      for (std::size_t t = 0; t < x.size(); ++t) {
        Row chance;
        double sum = 0;
        for (std::size_t s = 0; s < x.size(); ++s) {
          double score = 0;
          for (std::size_t i = h; i < h + size; ++i) score += qkv[t][i] * qkv[s][width + i];
          chance.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          sum += chance.back();
        }
        for (std::size_t s = 0; s < x.size(); ++s)
          for (std::size_t i = h; i < h + size; ++i) mixed[t][i] += chance[s] / sum * qkv[s][2 * width + i];
      }
    for (std::size_t t = 0; t < x.size(); ++t) {
      add(x[t], linear(name + "attn.proj", mixed[t]));
      Row hidden = linear(name + "mlp.fc1", norm(name + "norm2", x[t]));
      for (double& v : hidden) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
      add(x[t], linear(name + "mlp.fc2", hidden));
    }
  }

  model::VitConfig c_;
  std::map<std::string, at::Tensor> all_;
};

TEST(Vit, BothPathsAreTheNaiveModel) {
  for (const auto& [name, config] : configs()) {
    for (const Path path : {Path::plain, Path::fused}) {
      const auto model = model::make_classifier(config, 3, path, at::kDouble);
      shake(*model);
      const at::Tensor x = images(config, 2, at::kDouble), got = model->logits(x);
      for (std::int64_t n = 0; n < 2; ++n) {
        Row expected = Naive(*model, config).logits(x[n]);
        const at::Tensor row = at::from_blob(expected.data(), {config.classes}, at::kDouble);
        EXPECT_LE(fixture::distance(got[n], row), 1e-12) << name;
      }
    }
  }
}

TEST(Vit, TheFusedPathIsThePlainOne) {
  for (auto [name, config] : configs()) {
    config.drop_path = 0.4;
    for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-12}, std::pair{at::kFloat, 2e-5}}) {
      const auto run = [&, &c = config, of = type](Path path) {
        const auto model = model::make_classifier(c, 3, path, of);
        shake(*model);
        model->set_random(17);
        return fixture::passed(*model, images(c, 4, of));
      };
      const auto plain = run(Path::plain), fused = run(Path::fused);
      EXPECT_LE(fixture::distance(fused[0], plain[0]), tolerance) << name;
      for (std::size_t i = 1; i < plain.size(); ++i)
        EXPECT_LE(fixture::distance(fused[i], plain[i], 1e-3), 10 * tolerance) << name << " " << i;
    }
  }
}

TEST(Vit, BitsDoNotDependOnThreads) {
  const auto run = [](int threads) {
    at::set_num_threads(threads);
    model::VitConfig config = tiny();
    config.width = 48, config.hidden = 96, config.image_size = 16;
    const auto model = model::make_classifier(config, 3);
    return fixture::passed(*model, images(config, 9, at::kFloat).contiguous(at::MemoryFormat::ChannelsLast));
  };
  const int before = at::get_num_threads();
  const auto one = run(1), two = run(2), again = run(2);
  at::set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(fixture::same_bits(two[i], again[i])) << i;
    EXPECT_TRUE(fixture::same_bits(one[i], two[i])) << i;
  }
}

// With the last layer skipped almost always and the other not at all, most images come out as if it did not exist, and what is
// left counts so much more that the mean stays.
TEST(Vit, SkippedLayers) {
  model::VitConfig config = tiny();
  config.layers = 2;
  config.drop_path = 0.5;
  const auto model = model::make_classifier(config, 3, Path::fused, at::kDouble);
  shake(*model);
  const at::Tensor one = images(config, 1, at::kDouble), x = one.expand({64, -1, -1, -1});
  model->set_random(1);
  const at::Tensor first = model->logits(x), again = model->logits(x);
  EXPECT_TRUE(fixture::same_bits(first, again));
  model->set_random(2);
  EXPECT_FALSE(fixture::same_bits(first, model->logits(x)));
  // Two branches of the second layer, each skipped or not: four outcomes.
  std::vector<at::Tensor> seen;
  std::vector<int> times;
  for (std::int64_t n = 0; n < 64; ++n) {
    std::size_t i = 0;
    while (i < seen.size() && fixture::distance(first[n], seen[i]) > 1e-9) ++i;
    if (i == seen.size()) seen.push_back(first[n]), times.push_back(0);
    ++times[i];
  }
  EXPECT_EQ(seen.size(), 4U);
  for (const int count : times) EXPECT_GE(count, 6);
  model->eval();
  const at::Tensor calm = model->logits(x);
  EXPECT_LE(fixture::distance(calm[63], calm[0]), 1e-12);
  config.drop_path = 0;
  const auto other = model::make_classifier(config, 3, Path::fused, at::kDouble);
  shake(*other);
  EXPECT_TRUE(fixture::same_bits(other->logits(x), calm));
}

TEST(Vit, FirstValues) {
  const model::ImageModel config = model::image_preset("vit-tiny-4");
  const auto model = model::make_classifier(config, 7), again = model::make_classifier(config, 7),
             other = model::make_classifier(config, 8), doubles = model::make_classifier(config, 7, Path::plain, at::kDouble);
  const auto all = model->named_parameters();
  EXPECT_EQ(all.size(), model::parameter_shapes(config).size());
  for (const auto& item : all) {
    const at::Tensor& x = item.value();
    const std::string& name = item.key();
    EXPECT_TRUE(fixture::same_bits(x, *again->named_parameters().find(name)));
    EXPECT_TRUE(fixture::same_bits(x, doubles->named_parameters().find(name)->to(at::kFloat)));
    const double mean = x.mean().item<double>(), deviation = x.std(false).item<double>();
    if (name.find("norm") != std::string::npos) {
      EXPECT_EQ(mean, name.ends_with("weight") ? 1 : 0) << name;
    } else if (name.starts_with("patch_embed")) {
      EXPECT_NEAR(deviation, 1 / std::sqrt(3.0 * 48), 0.012) << name;
    } else if (name == "cls_token") {
      EXPECT_NEAR(deviation, 1e-6, 2e-7);
    } else if (name.ends_with("bias")) {
      EXPECT_EQ(x.abs().max().item<double>(), 0) << name;
    } else {
      EXPECT_NEAR(deviation, 0.0197, 0.001) << name;  // cut off at three deviations
      EXPECT_LE(x.abs().max().item<double>(), 0.0600001);
      EXPECT_FALSE(fixture::same_bits(x, *other->named_parameters().find(name)));
    }
  }
}

TEST(Vit, OtherImagesAreRefused) {
  const auto model = model::make_classifier(tiny(), 1);
  try {
    model->logits(fixture::values({2, 3, 6, 6}, 1, at::kFloat));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "images are [2, 3, 6, 6]; the model takes [N, 2, 6, 6]");
  }
}

}  // namespace vit_test
}  // namespace cautious
