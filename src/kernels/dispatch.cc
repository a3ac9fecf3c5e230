#include "kernels/dispatch.h"

#include <cstdlib>
#include <string>

#include <cautious/error.h>

namespace cautious {

namespace portable {
const kernels::Kernels& all_kernels();
}
#if defined(CAUTIOUS_HAS_AVX2)
namespace avx2 {
const kernels::Kernels& all_kernels();
}
namespace avx512 {
const kernels::Kernels& all_kernels();
}
#elif defined(CAUTIOUS_HAS_NEON)
namespace neon {
const kernels::Kernels& all_kernels();
}
#endif

namespace kernels {
namespace {

const Kernels* find(Isa isa) {
  if (isa == Isa::portable) return &portable::all_kernels();
#if defined(CAUTIOUS_HAS_AVX2)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl");
  if (isa == Isa::avx2 && has_avx2) return &avx2::all_kernels();
  if (isa == Isa::avx512 && has_avx512) return &avx512::all_kernels();
#elif defined(CAUTIOUS_HAS_NEON)
  if (isa == Isa::neon) return &neon::all_kernels();
#endif
  return nullptr;
}

std::string choices() {
  std::string text;
  for (const Isa isa : available()) text += (text.empty() ? "" : ", ") + std::string(find(isa)->name);
  return text;
}

Isa from_environment(const char* name) {
  for (const Isa isa : available()) {
    if (find(isa)->name == std::string_view(name)) return isa;
  }
  throw Error(Fault::usage, "CAUTIOUS_ISA is '" + std::string(name) + "'; this CPU and build have: " + choices());
}

}  // namespace

std::vector<Isa> available() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (find(isa) != nullptr) found.push_back(isa);
  }
  return found;
}

const Kernels& kernels_for(Isa isa) {
  if (isa == Isa::best) {
    const char* forced = std::getenv("CAUTIOUS_ISA");
    isa = forced != nullptr && *forced != '\0' ? from_environment(forced) : available().back();
  }
  const Kernels* found = find(isa);
  if (found == nullptr) throw Error(Fault::usage, "this CPU lacks the instruction set asked for; it has: " + choices());
  return *found;
}

}  // namespace kernels
}  // namespace cautious
