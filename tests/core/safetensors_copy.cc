// safetensors_copy IN OUT: reads a file and writes the same tensors and metadata anew; for comparison with other programs.
#include <cstdio>
#include <exception>
#include <vector>

#include "base/safetensors.h"

int main(int count, char** arguments) try {
  if (count != 3) {
    std::fputs("usage: safetensors_copy IN OUT\n", stderr);
    return 2;
  }
  const auto file = cautious::base::Safetensors::read(arguments[1]);
  std::vector<cautious::base::TensorToWrite> tensors;
  for (const auto& t : file.tensors()) tensors.push_back({t.name, t.type, t.shape, file.data(t)});
  cautious::base::write_safetensors(arguments[2], tensors, file.metadata());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
