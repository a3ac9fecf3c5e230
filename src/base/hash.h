// Hashes whose bits are part of results: data order, initial weights, sampled tokens, random decays. Never change them.
#pragma once

#include <cstdint>
#include <string_view>

namespace cautious::base {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, the step of SplitMix64

// The finalizer of SplitMix64: every bit of the result depends on every bit of x.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 64-bit FNV-1a.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace cautious::base
