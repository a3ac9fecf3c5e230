// Fields by name of options and schedules, the context of errors, and the loop that exceptions leave alive.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <cautious/optimizer.h>
#include <cautious/schedule.h>

#include "base/fields.h"
#include "base/parallel.h"
#include "optim/work.h"
#include "usage_message.h"

namespace cautious {
namespace {

// What fields() prints, set() takes, and nothing changes; no two fields have one name.
template <class Owner>
void expect_round_trip(const Owner& owner) {
  Owner again;
  std::set<std::string> names;
  for (const FieldInfo& field : fields(owner)) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.valid.empty() || field.help.empty()) << field.name;
    set(again, field.name, field.value);
  }
  EXPECT_EQ(base::to_line(fields(again)), base::to_line(fields(owner)));
}

TEST(FieldsByName, RoundTrip) {
  expect_round_trip(Options{});
  expect_round_trip(Options{.moments = Element::bf16,
                            .rounding = Rounding::split,
                            .nonfinite = Nonfinite::skip,
                            .norms = Norms::off,
                            .grad_clip = 0.1 + 0.2,
                            .update_rms_clip = 1e-300,
                            .seed = ~std::uint64_t{0},
                            .threads = 7,
                            .parallel_for = {},
                            .isa = Isa::portable});
  expect_round_trip(Schedule{.kind = ScheduleKind::wsd, .lr = 1.0 / 3, .steps = 1LL << 60, .cooldown_curve = Curve::cosine});
  expect_round_trip(DecaySchedule{.curve = Curve::linear, .steps = 9, .final = 0.5});
}

TEST(FieldsByName, OfOptions) {
  EXPECT_EQ(
      base::to_line(fields(Options{})),
      "moments=f32 rounding=nearest seed=0 grad_clip=0 update_rms_clip=0 nonfinite=propagate norms=on threads=0 isa=best");
  const auto failure = [](std::string_view field, std::string_view value) {
    Options options;
    return message([&] { set(options, field, value); });
  };
  EXPECT_EQ(failure("moments", "f64"), "no moments named 'f64'; choices: f32, bf16");
  EXPECT_EQ(failure("seed", "-1"), "seed is '-1'; valid: [0, 2^64)");
  EXPECT_EQ(failure("seed", "18446744073709551616"), "seed is '18446744073709551616'; valid: [0, 2^64)");
  EXPECT_EQ(failure("seed", "18446744073709551615"), "");
  EXPECT_EQ(failure("threads", "1.5"), "threads is '1.5', not a whole number; valid: [0, 4096]");
  EXPECT_EQ(failure("grad_clip", "nan"), "grad_clip is 'nan'; valid: [0, inf)");
  EXPECT_EQ(failure("norm", "on"),
            "no option of the optimizer named 'norm'; did you mean 'norms'? choices: moments, rounding, seed, grad_clip, "
            "update_rms_clip, nonfinite, norms, threads, isa");
  EXPECT_EQ(message([] { check(Options{.moments = Element::f64}); }), "no moments named 'f64'; choices: f32, bf16");
  EXPECT_EQ(message([] { check(Options{.threads = -2}); }), "threads is -2; valid: [0, 4096]");
}

TEST(FieldsByName, OfSchedules) {
  Schedule schedule;
  EXPECT_EQ(message([&] { set(schedule, "warmup_ratio", "2"); }), "warmup_ratio is '2'; valid: [0, 1]");
  EXPECT_EQ(message([&] { set(schedule, "kind", "cosin"); }),
            "no kind named 'cosin'; did you mean 'cosine'? choices: constant, linear, cosine, wsd");
  DecaySchedule decay;
  EXPECT_EQ(message([&] { set(decay, "lr", "1"); }),
            "no field of a weight-decay schedule named 'lr'; choices: curve, steps, final");
}

TEST(FieldsByName, AreCopiedByName) {
  struct Few {
    double grad_clip = 3;
    int seed = 5;  // of another type: stays
    static constexpr auto fields() {
      return std::tuple{Field{"seed", &Few::seed, kNonnegative, ""}, Field{"grad_clip", &Few::grad_clip, kNonnegative, ""}};
    }
  } few;
  Options options;
  base::copy_fields(few, options);
  EXPECT_EQ(options.grad_clip, 3);
  EXPECT_EQ(options.seed, 0u);
  EXPECT_EQ(base::to_line(base::fields_of(few, Options::identity())), "seed=5 grad_clip=3");
}

TEST(Error, HasContext) {
  const Error plain(Fault::usage, "lr is 2");
  EXPECT_STREQ(plain.what(), "lr is 2");
  EXPECT_EQ(plain.key() + plain.where(), "");
  const Error inner = Error(Fault::usage, "lr is 2", {.key = "lr", .where = "line 3"});
  const Error outer = inner.within("run.toml", Fault::data);
  EXPECT_STREQ(outer.what(), "run.toml: line 3: lr is 2");
  EXPECT_EQ(outer.message(), "lr is 2");
  EXPECT_EQ(outer.where(), "run.toml: line 3");
  EXPECT_EQ(outer.key(), "lr");
  EXPECT_EQ(outer.fault(), Fault::data);
}

TEST(ParallelFor, RunsEveryBodyOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> seen(count);
    base::parallel_for(count, 3, [&](std::size_t i) { ++seen[i]; });
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; })) << count;
  }
}

// Of a step's region: with OpenMP, with the caller's threads, and a loop of one.
TEST(ParallelFor, CarriesTheFirstExceptionOut) {
  const ParallelFor own = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  };
  for (const Options& options : {Options{.threads = 2}, Options{.threads = 1}, Options{.parallel_for = own}}) {
    for (const std::size_t count : {1, 2, 50}) {
      for (int again = 0; again < 3; ++again) {
        std::atomic<int> begun = 0;
        const auto work = [&] {
          optim::parallel(options, count, [&](std::size_t i) {
            ++begun;
            if (i % 2 == 0) throw Error(Fault::data, "body " + std::to_string(i));
          });
        };
        try {
          work();
          ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
          EXPECT_EQ(error.message().rfind("body ", 0), 0u);
        }
        EXPECT_GE(begun, 1);
      }
    }
    std::atomic<int> sum = 0;  // and the threads still work
    optim::parallel(options, 10, [&](std::size_t i) { sum += static_cast<int>(i); });
    EXPECT_EQ(sum, 45);
  }
}

}  // namespace
}  // namespace cautious
