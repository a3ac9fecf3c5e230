// Shared by the tests of the core: repeatable values, buffers with fences, every rule and decay by name, and a run of some
// steps whose result can be compared bit by bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cautious/cautious.h>
#include <gtest/gtest.h>

namespace fixture {

using cautious::Bf16;

// A repeatable sequence (Weyl steps through a 64-bit finalizer), not the library's.
class Values {
 public:
  explicit Values(std::uint64_t seed) : state_(seed * 0xd1342543de82ef95ull + 1) {}
  double uniform() {  // in (0, 1)
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ull;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ull;
    return (static_cast<double>((z ^ (z >> 32)) >> 11) + 0.5) * 0x1p-53;
  }
  // Continuous, of either sign, magnitudes from 0.003 to 3.
  double weight() { return (uniform() < 0.5 ? -1 : 1) * std::exp(std::log(3e-3) + uniform() * std::log(1e3)); }
  // The same with one exact zero in sixteen.
  double weight_or_zero() { return uniform() < 1.0 / 16 ? 0 : weight(); }

 private:
  std::uint64_t state_;
};

inline float widen(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
inline double to_double(float value) { return value; }
inline double to_double(double value) { return value; }
inline double to_double(Bf16 value) { return widen(value); }

// The nearest T; for bf16 by cutting, which is a value like any other.
template <class T>
T to_element(double value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return {static_cast<std::uint16_t>(bits >> 16)};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::vector<T> elements(std::size_t n, const std::function<double()>& next) {
  std::vector<T> all(n);
  for (T& value : all) value = to_element<T>(next());
  return all;
}
template <class T>
std::vector<T> weights(std::size_t n, std::uint64_t seed) {
  Values values(seed);
  return elements<T>(n, [&] { return values.weight_or_zero(); });
}
template <class T>
std::vector<T> constant(std::size_t n, double value) {
  return std::vector<T>(n, to_element<T>(value));
}
template <class T>
std::vector<std::vector<T>> gradients(std::size_t steps, std::size_t n, std::uint64_t seed) {
  std::vector<std::vector<T>> all;
  for (std::size_t t = 0; t < steps; ++t) all.push_back(weights<T>(n, seed + 1000 * (t + 1)));
  return all;
}

// n elements at `offset` elements from a 64-byte boundary, with fences before and after.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t n, std::size_t offset)
      : first_(kFence + offset), size_(n), lines_((n + offset + 2 * kFence) * sizeof(T) / 64 + 1) {
    std::memset(static_cast<void*>(lines_.data()), kMark, lines_.size() * sizeof(Line));
  }
  T* data() { return reinterpret_cast<T*>(lines_.data()) + first_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  bool intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(lines_.data());
    const std::size_t begin = first_ * sizeof(T), end = begin + size_ * sizeof(T);
    for (std::size_t i = 0; i < lines_.size() * sizeof(Line); ++i) {
      if ((i < begin || i >= end) && bytes[i] != kMark) return false;
    }
    return true;
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  static constexpr std::size_t kFence = 64;
  static constexpr unsigned char kMark = 0xa5;
  std::size_t first_, size_;
  std::vector<Line> lines_;
};

// Those that this processor has.
inline std::vector<cautious::Isa> isas() {
  std::vector<cautious::Isa> all{cautious::Isa::portable};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(cautious::Isa::avx2);
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) all.push_back(cautious::Isa::avx512);
#elif defined(__aarch64__)
  all.push_back(cautious::Isa::neon);
#endif
  return all;
}

struct RuleName {
  std::string rule, k;
  std::string text() const { return k.empty() ? rule : rule + "_" + k; }
};
inline void PrintTo(const RuleName& rule, std::ostream* out) { *out << rule.text(); }
inline std::vector<RuleName> every_rule() {
  return {{"sgd", ""},
          {"sgdm", ""},
          {"adam", ""},
          {"lion", ""},
          {"lion-k", "l1"},
          {"lion-k", "l2"},
          {"lion-k", "lp"},
          {"lion-k", "huber"},
          {"lion-k", "relativistic"},
          {"lion-k", "threshold"},
          {"lion-k", "topk"}};
}
// Those whose direction is made from a matrix.
inline std::vector<RuleName> matrix_rules() { return {{"lion-k", "nuclear"}, {"muon", ""}}; }
// Those that shape their direction, so that the mask of cautious decay may go by the momentum.
inline std::vector<RuleName> shaping_rules() {
  std::vector<RuleName> rules = matrix_rules();
  for (const RuleName& rule : every_rule()) {
    if (!rule.k.empty()) rules.push_back(rule);
  }
  return rules;
}
inline std::vector<std::string> every_decay() {
  return {"none", "decoupled", "cautious", "opposed", "gradient", "random", "shuffled", "layerwise", "selective", "anchored"};
}
// Whether u of a coordinate depends on that coordinate alone.
inline bool is_elementwise(const RuleName& rule) { return rule.k != "l2" && rule.k != "lp" && rule.k != "topk"; }
inline bool is_elementwise(std::string_view decay) {
  return decay != "shuffled" && decay != "layerwise" && decay != "selective";
}

inline cautious::Recipe make(const RuleName& rule, std::string_view decay, double weight_decay = 0.1) {
  cautious::Recipe made = cautious::recipe(rule.rule);
  if (!rule.k.empty()) {
    for (const auto& [field, value] :
         {std::pair<std::string, std::string>{"k", rule.k}, {"p", "2.5"}, {"e", "0.2"}, {"fraction", "0.25"}}) {
      cautious::set(made, field, value);
    }
  }
  made.decay = cautious::decay(decay);
  made.coupling = cautious::Coupling::plain;
  made.weight_decay = weight_decay;
  return made;
}

inline cautious::Recipe by_momentum(const RuleName& rule, std::string_view decay = "cautious") {
  cautious::Recipe made = make(rule, decay);
  cautious::set(made, "mask", "momentum");
  return made;
}

inline std::size_t bytes_of(std::string_view type) { return type == "F64" ? 8 : type == "F32" ? 4 : 2; }

template <class T>
std::vector<unsigned char> bytes(const T* data, std::size_t n) {
  std::vector<unsigned char> copy(n * sizeof(T));
  if (n > 0) std::memcpy(copy.data(), data, copy.size());
  return copy;
}
template <class T>
std::vector<unsigned char> bytes(const std::vector<T>& data) {
  return bytes(data.data(), data.size());
}

// All state of a tensor of n coordinates as (name and type, bytes).
inline std::vector<std::pair<std::string, std::vector<unsigned char>>> state_bytes(const cautious::Optimizer& optimizer,
                                                                                   std::size_t tensor, std::size_t n) {
  std::vector<std::pair<std::string, std::vector<unsigned char>>> all;
  for (const auto& piece : optimizer.state(tensor)) {
    all.emplace_back(piece.name + " " + piece.type,
                     bytes(static_cast<const unsigned char*>(piece.data), n * bytes_of(piece.type)));
  }
  return all;
}

inline bool same(const cautious::Tally& a, const cautious::Tally& b) {
  return a.count == b.count && a.decayed == b.decayed && a.active == b.active && a.nonfinite == b.nonfinite && a.x2 == b.x2 &&
         a.g2 == b.g2 && a.u2 == b.u2 && a.budget == b.budget;
}

// Learning rate, its peak and the decay factor of step t (from 0): all vary.
inline cautious::StepInput rates(std::size_t t) {
  return {.lr = 0.02 / (1 + static_cast<double>(t)), .lr_max = 0.02, .decay_factor = 1 - 0.1 * static_cast<double>(t)};
}

// One tensor through all its gradients.
template <class T>
struct Run {
  std::vector<T> x;
  std::vector<std::pair<std::string, std::vector<unsigned char>>> state;
  std::vector<cautious::StepReport> reports;
};
template <class T>
Run<T> run(const cautious::Recipe& recipe, std::vector<T> x, const std::vector<std::vector<T>>& g,
           const cautious::Options& options = {}, const std::function<cautious::StepInput(std::size_t)>& input = rates,
           const std::vector<T>& anchor = {}) {
  cautious::Optimizer optimizer(recipe, options);
  optimizer.add("x", {static_cast<std::int64_t>(x.size())}, x.data(), g.empty() ? nullptr : g[0].data());
  if (!anchor.empty()) optimizer.set_anchor(0, anchor.data());
  Run<T> result;
  for (std::size_t t = 0; t < g.size(); ++t) {
    optimizer.bind(0, x.data(), g[t].data());
    result.reports.push_back(optimizer.step(input(t)));
  }
  result.state = state_bytes(optimizer, 0, x.size());
  result.x = std::move(x);
  return result;
}

// Parameters, moments and step reports, all bits.
template <class T>
void expect_same(const Run<T>& a, const Run<T>& b) {
  EXPECT_EQ(bytes(a.x), bytes(b.x)) << "parameters differ";
  EXPECT_EQ(a.state, b.state) << "state differs";
  ASSERT_EQ(a.reports.size(), b.reports.size());
  for (std::size_t t = 0; t < a.reports.size(); ++t) {
    EXPECT_TRUE(same(a.reports[t].total, b.reports[t].total)) << "total of step " << t << " differs";
  }
}

// `action` must throw an Error of one non-empty line that contains every fragment.
inline void expect_error(const std::function<void()>& action, std::initializer_list<std::string_view> fragments) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one that names '" << (fragments.size() > 0 ? *fragments.begin() : "") << "'";
  } catch (const cautious::Error& error) {
    const std::string message = error.what();
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string_view fragment : fragments) {
      EXPECT_NE(message.find(fragment), std::string::npos) << "'" << fragment << "' is not in: " << message;
    }
  }
}

}  // namespace fixture
