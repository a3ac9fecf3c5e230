// AdamW with cautious weight decay as a C++ programmer writes it: one fused loop over the tensor. Compiled twice, under the
// names that CMakeLists.txt gives: with -O2 as compilers come, and with -O3 for AVX2 and FMA.
#include <math.h>
#include <stddef.h>

namespace cautious::bench {

static void loop(float* x, const float* g, float* m, float* v, size_t n, float lr, int t) {
  const float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0.1f;
  const float scale1 = 1 / (1 - powf(beta1, static_cast<float>(t))), scale2 = 1 / (1 - powf(beta2, static_cast<float>(t)));
  for (size_t i = 0; i < n; ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    const float u = m[i] * scale1 / (sqrtf(v[i] * scale2) + eps);
    const float decay = u * x[i] >= 0 ? weight_decay : 0;
    x[i] -= lr * (u + decay * x[i]);
  }
}

void CAUTIOUS_PLAIN_LOOP(float* x, const float* g, float* m, float* v, size_t n, float lr, int t, int threads) {
  if (threads == 1) return loop(x, g, m, v, n, lr, t);
#pragma omp parallel for num_threads(threads)
  for (int i = 0; i < threads; ++i) {
    const size_t slice = static_cast<size_t>(i), count = static_cast<size_t>(threads);
    const size_t first = n * slice / count, last = n * (slice + 1) / count;
    loop(x + first, g + first, m + first, v + first, last - first, lr, t);
  }
}

}  // namespace cautious::bench
