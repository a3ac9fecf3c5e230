// What a rule, a decay, options or a schedule say about themselves. Their fields: name, member, valid range, help. This is the
// only list there is; command line, configuration, saved state and docs are derived from it (src/base/fields.h). And whether a
// rule shapes its direction.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cautious {

// The name of an enumerator, for every enumeration with an array names_of(Enum) in its namespace; std::out_of_range for a value
// that is none of its enumerators.
template <class Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view name_of(Enum value) { return names_of(value).at(static_cast<std::size_t>(value)); }

struct Range {
  double low, high;
  bool low_open, high_open;
  constexpr bool contains(long double value) const {  // every double and 64-bit integer, exactly; false for NaN
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
};

inline constexpr double kLargest = 1e300;
inline constexpr Range kMomentum{0, 1, false, true};            // [0, 1)
inline constexpr Range kFraction{0, 1, false, false};           // [0, 1]
inline constexpr Range kNonnegative{0, kLargest, false, true};  // [0, inf)
inline constexpr Range kFinite{-kLargest, kLargest, true, true};
inline constexpr Range kPositive{0, kLargest, true, true};  // (0, inf)

template <class Owner, class Value>
struct Field {
  std::string_view name;
  Value Owner::*member;  // double or an integer
  Range range;
  std::string_view help;
};

template <class Owner, class Value>
Field(std::string_view, Value Owner::*, Range, std::string_view) -> Field<Owner, Value>;

// A field whose value is one of an enumeration's names.
template <class Owner, class Enum>
struct Choice {
  std::string_view name;
  Enum Owner::*member;
  std::string_view help;
  std::span<const Enum> only = {};  // the values that are valid; empty: all
};

template <class Owner, class Enum>
Choice(std::string_view, Enum Owner::*, std::string_view) -> Choice<Owner, Enum>;
template <class Owner, class Enum>
Choice(std::string_view, Enum Owner::*, std::string_view, std::type_identity_t<std::span<const Enum>>) -> Choice<Owner, Enum>;

// A field that is true or false.
template <class Owner>
struct Flag {
  std::string_view name;
  bool Owner::*member;
  std::string_view help;
};

template <class Owner>
Flag(std::string_view, bool Owner::*, std::string_view) -> Flag<Owner>;

// A list of finite numbers, written 1,2,3.
template <class Owner>
struct Numbers {
  std::string_view name;
  std::vector<double> Owner::*member;
  std::string_view help;
};

template <class Owner>
Numbers(std::string_view, std::vector<double> Owner::*, std::string_view) -> Numbers<Owner>;

// A member with fields of its own, which count as the owner's; check(Inner) says whether they go together.
template <class Owner, class Inner>
struct Part {
  Inner Owner::*member;
};

template <class Owner, class Inner>
Part(Inner Owner::*) -> Part<Owner, Inner>;

enum class FieldKind { number, whole, choice, flag, numbers };

// A field and its present value as text, for help, files and checks.
struct FieldInfo {
  std::string name;
  std::string value;  // as set() takes it; numbers round-trip exactly
  std::string valid;  // "[0, 1)" or "l1, l2, ..."
  std::string help;
  FieldKind kind;
};

// When a rule's direction is more than an elementwise formula: the kernel yields z, then z becomes u. A rule that needs it
// offers, beside its formula, `Shaping shaping(const R&)` and
//   tile    entry by entry           void shape<T>(const R&, Z& z);  in place, on any part of a tensor (lion_k.h is an example)
//   tensor  needs all of z           the same, on the whole tensor
//   matrix  the orthogonal factor    const Polar& polar_of(const R&);
enum class Shaping { none, tile, tensor, matrix };

}  // namespace cautious
