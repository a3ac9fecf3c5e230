// The orthogonal factor of a matrix, by Newton-Schulz iterations on its singular values:
//   X = M / norm,   X <- a X + (b A + c A^2) X  with  A = X X^T,   one (a, b, c) per step.
// M = U S V^T goes to about U V^T; how close is the schedule's band. docs/spec.md, section 3, has the coefficients.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <cautious/detail/field.h>

namespace cautious {

// paper is Jordan's quintic, as in Muon's own code, and has his name too; quintic is You's, with other coefficients in every
// step. exact is the singular value decomposition; custom takes its steps from `coefficients`.
enum class NewtonSchulz { paper, quintic, polar_express, polar_express_8, cans, turbo, exact, custom, jordan = paper };

constexpr auto names_of(NewtonSchulz) {
  return std::array<std::string_view, 8>{"paper", "quintic", "polar-express", "polar-express-8",
                                         "cans",  "turbo",   "exact",         "custom"};
}
constexpr auto aliases_of(NewtonSchulz) {
  return std::array{std::pair<std::string_view, NewtonSchulz>{"jordan", NewtonSchulz::jordan}};
}

// none: 1. jordan: sqrt(max(1, rows / cols)). rms: 0.2 sqrt(max(rows, cols)), about the RMS of AdamW's direction.
enum class MatrixScale { none, jordan, rms };

constexpr auto names_of(MatrixScale) { return std::array<std::string_view, 3>{"none", "jordan", "rms"}; }

struct Quintic {
  double a, b, c;
};

inline constexpr Range kSteps{0, 100, false, false};
inline constexpr Range kBlocks{1, 1e9, false, false};

// How a matrix becomes its orthogonal factor.
struct Polar {
  static constexpr std::string_view name = "the polar factor";
  NewtonSchulz schedule = NewtonSchulz::paper;
  std::int64_t steps = 0;  // 0: the schedule's own; more than it has repeat its last
  MatrixScale scale = MatrixScale::none;
  double eps = 0;                         // a smaller norm counts as this one
  std::int64_t blocks = 1;                // matrices stacked along the first side, each with its own factor
  std::vector<double> coefficients = {};  // of custom: a, b, c of the first step, then of the second, ...
  bool operator==(const Polar&) const = default;
  static constexpr auto fields() {
    return std::tuple{Choice{"schedule", &Polar::schedule, "Newton-Schulz coefficients; paper is also called jordan"},
                      Field{"steps", &Polar::steps, kSteps, "Newton-Schulz steps; 0: the schedule's own"},
                      Choice{"scale", &Polar::scale, "factor on the direction from the matrix's shape"},
                      Field{"eps", &Polar::eps, kNonnegative, "least norm of the matrix"},
                      Field{"blocks", &Polar::blocks, kBlocks, "matrices stacked along the first side"},
                      Numbers{"coefficients", &Polar::coefficients, "a,b,c of each step of schedule custom"}};
  }
};

// Throws an Error if the fields do not go together.
void check(const Polar& how);

// The steps as they will be done; none for exact.
std::vector<Quintic> quintics(const Polar& how);

// Where singular values end up that are at least `from` times the norm the schedule divides by.
struct Band {
  double low, high;
};
Band band(const Polar& how, double from);

// Replaces the rows x cols matrix (row after row) by scale times its orthogonal factor. A zero matrix stays zero; one with a
// NaN or an infinite entry becomes NaN. threads: 0 is OpenMP's default.
void polar(std::span<float> matrix, std::int64_t rows, std::int64_t cols, const Polar& how = {}, int threads = 0);
void polar(std::span<double> matrix, std::int64_t rows, std::int64_t cols, const Polar& how = {}, int threads = 0);

// The sum of the singular values, K of Lion-K's nuclear.
double nuclear_norm(std::span<const double> matrix, std::int64_t rows, std::int64_t cols);

}  // namespace cautious
