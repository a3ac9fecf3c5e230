// What does not need an optimizer: versions, errors, orthogonal factors.
#include <exception>
#include <new>
#include <span>

#include <fmt/format.h>

#include <cautious/optimizer.h>
#include <cautious/polar.h>

#include "c/border.h"

#define CAUTIOUS_TEXT(number) #number
#define CAUTIOUS_DOTTED(major, minor, patch) CAUTIOUS_TEXT(major) "." CAUTIOUS_TEXT(minor) "." CAUTIOUS_TEXT(patch)

namespace cautious::c {
namespace {

thread_local std::string kept;
thread_local const char* last_error = "";

cautious_status fail(cautious_status status, const char* message) noexcept {
  try {
    kept = message;
    last_error = kept.c_str();
  } catch (...) {
    last_error = "out of memory";
  }
  return status;
}

cautious_status status_of(Fault fault) {
  return fault == Fault::usage ? CAUTIOUS_USAGE : fault == Fault::data ? CAUTIOUS_DATA : CAUTIOUS_FAILURE;
}

template <class T>
void polar_at(void* matrix, std::int64_t rows, std::int64_t cols, const Polar& how, int threads) {
  // A product that does not fit is refused by polar(), which divides.
  const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  polar(std::span(static_cast<T*>(matrix), count), rows, cols, how, threads);
}

}  // namespace

cautious_status caught() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(status_of(error.fault()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(CAUTIOUS_FAILURE, "out of memory");
  } catch (const std::exception& error) {
    return fail(CAUTIOUS_FAILURE, error.what());
  } catch (...) {
    return fail(CAUTIOUS_FAILURE, "an exception that is not a std::exception");
  }
}

void refuse(const std::string& message) { throw Error(Fault::usage, message); }

}  // namespace cautious::c

using namespace cautious;

const char* cautious_version() {
  return CAUTIOUS_DOTTED(CAUTIOUS_VERSION_MAJOR, CAUTIOUS_VERSION_MINOR, CAUTIOUS_VERSION_PATCH);
}

cautious_status cautious_check_abi(int abi) {
  return c::call([&] {
    if (abi == CAUTIOUS_ABI) return;
    c::refuse(
        fmt::format("the program wants ABI {} of cautious, this library, version {}, has ABI {}; compile the program again",
                    abi, cautious_version(), CAUTIOUS_ABI));
  });
}

const char* cautious_last_error() { return c::last_error; }

cautious_status cautious_polar(cautious_element element, void* matrix, int64_t rows, int64_t cols, const char* how,
                               int threads) {
  return c::call([&] {
    const auto fields = c::parse_fields<Polar>(how, "how", "field of the polar factor");
    if (rows < 0 || cols < 0) c::refuse(fmt::format("a matrix of {} x {}: sides must not be negative", rows, cols));
    if (rows > 0 && cols > 0) c::at(static_cast<char*>(matrix), "matrix");
    if (element == CAUTIOUS_F32) {
      c::polar_at<float>(matrix, rows, cols, fields, threads);
    } else if (element == CAUTIOUS_F64) {
      c::polar_at<double>(matrix, rows, cols, fields, threads);
    } else {
      base::check_choice(static_cast<Element>(element), "the element type of the matrix");
      c::refuse("a matrix of bf16 has no orthogonal factor here; valid: f32, f64");
    }
  });
}
