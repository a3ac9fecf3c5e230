// libFuzzer over the reader of GGUF. Beyond memory errors it checks the reader's promises: an Error is one short line, and the
// tensors of an accepted file lie behind each other inside it.
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "base/gguf.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const auto header = read_or_refuse([&] { return base::parse_gguf(std::as_bytes(std::span(data, size)), "file"); });
  if (!header) return 0;
  std::set<std::string> names;
  std::uint64_t reached = 0;
  for (const base::GgufTensor& tensor : header->tensors) {
    demand(names.insert(tensor.name).second && tensor.begin >= reached && tensor.end >= tensor.begin);
    demand(header->data <= size && tensor.end <= size - header->data);
    std::uint64_t numbers = 1;
    for (const std::int64_t side : tensor.sides) numbers *= static_cast<std::uint64_t>(side);
    demand(numbers / tensor.type->block * tensor.type->bytes == tensor.end - tensor.begin);
    reached = tensor.end;
  }
  for (const auto& [key, value] : header->metadata) demand(header->find(key) == &value);
  return 0;
}
