// Keys of the random streams: a pure function of (seed, purpose, step, tensor), docs/spec.md, "Random bits".
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/kernels.h"

namespace cautious::optim {

enum class Purpose : std::uint64_t { decay = 1, rounding = 2 };

constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// 64-bit FNV-1a: a tensor keeps its stream when others come or go.
constexpr std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

constexpr kernels::Stream random_key(std::uint64_t seed, Purpose purpose, std::int64_t t, std::uint64_t tensor) {
  std::uint64_t key = mix64(seed + 0x9e3779b97f4a7c15u);
  key = mix64(key + static_cast<std::uint64_t>(purpose));
  key = mix64(key + static_cast<std::uint64_t>(t));
  key = mix64(key + tensor);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

}  // namespace cautious::optim
