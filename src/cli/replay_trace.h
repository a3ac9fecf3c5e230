// A recorded run: starting point, gradients and, if they were recorded, learning rates and an anchor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "base/safetensors.h"

namespace cautious::cli {

struct Trace {
  base::Safetensors file;                   // owns the bytes below
  std::vector<std::int64_t> shape;        // of x
  std::size_t size = 0;                   // elements of x
  std::int64_t steps = 0;                 // T
  Element element = Element::f32;         // of x and x0
  Element gradient = Element::f32;        // of g: x's, or f32 beside bf16
  std::span<const std::byte> x;           // [*shape]
  std::span<const std::byte> g;           // [T, *shape]
  std::span<const std::byte> x0;          // [*shape]; empty if there is none
  std::optional<std::vector<double>> lr;  // [T]
};

// Everything is checked: types, shapes, and that learning rates are finite and not negative.
Trace read_trace(const std::filesystem::path& path);

// Densities of the random decay, one per step: the tensor `ratio` of an earlier replay. An empty x may have any.
std::vector<double> read_densities(const std::filesystem::path& path, const Trace& trace);

// "F64", "F32" or "BF16".
std::string type_of(Element element);
std::string text_of(std::span<const std::int64_t> shape);

}  // namespace cautious::cli
