// Not a program: the vectorization guard compiles this and reads the instructions of each probe. A probe is one kernel at the
// full tile's compile-time trip count, so that the scalar end of the general loop is out of sight.
#include "kernels/kernels.cc"

namespace cautious::CAUTIOUS_ISA {

using Terms = kernels::Terms<float>;
using Streams = kernels::Streams<float>;

[[gnu::flatten]] void probe_fill_adam(const Prepared& rule, const float* __restrict g, float* __restrict m, float* __restrict v,
                                      float* __restrict u) {
  fill<Adam, float>(rule, g, m, v, u, kTile);
}
[[gnu::flatten]] void probe_fill_lion(const Prepared& rule, const float* __restrict g, float* __restrict m, float* __restrict v,
                                      float* __restrict u) {
  fill<Lion, float>(rule, g, m, v, u, kTile);
}
[[gnu::flatten]] void probe_fill_sgdm(const Prepared& rule, const float* __restrict g, float* __restrict m, float* __restrict v,
                                      float* __restrict u) {
  fill<Sgdm, float>(rule, g, m, v, u, kTile);
}
[[gnu::flatten]] void probe_apply_cautious(const Terms& terms, const Streams& at, Counted& counted) {
  apply<Cautious, false, float>(terms, at, kTile, counted);
}
[[gnu::flatten]] void probe_apply_cautious_sums(const Terms& terms, const Streams& at, Counted& counted) {
  apply<Cautious, true, float>(terms, at, kTile, counted);
}
[[gnu::flatten]] void probe_apply_decoupled(const Terms& terms, const Streams& at, Counted& counted) {
  apply<Decoupled, false, float>(terms, at, kTile, counted);
}
[[gnu::flatten]] void probe_apply_random(const Terms& terms, const Streams& at, Counted& counted) {
  apply<Random, false, float>(terms, at, kTile, counted);
}
[[gnu::flatten]] void probe_store_stochastic(const float* __restrict in, std::uint16_t* __restrict out,
                                             kernels::Stream stream) {
  store_stochastic(in, out, kTile, stream, 0);
}
[[gnu::flatten]] double probe_sum_squares(const float* p) {
  return sum_lanes<float>(p, [](float sum, float value) { return fma(value, value, sum); });
}
[[gnu::flatten]] double probe_sum_abs(const float* p) {
  return sum_lanes<float>(p, [](float sum, float value) { return sum + abs(value); });
}

}  // namespace cautious::CAUTIOUS_ISA
