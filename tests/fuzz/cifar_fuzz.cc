// libFuzzer over the reader of CIFAR's .bin files. The input is a record's first bytes; the rest is filled up, or a few bytes
// too short.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/packed.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const data::Cifar kind : {data::Cifar::ten, data::Cifar::hundred}) {
    const std::int64_t record = kind == data::Cifar::ten ? 3073 : 3074, classes = kind == data::Cifar::ten ? 10 : 100;
    for (const std::size_t filled : {size, static_cast<std::size_t>((static_cast<std::int64_t>(size) / record + 1) * record)}) {
      std::vector<std::byte> file(bytes.begin(), bytes.end());
      file.resize(filled);
      const auto images = read_or_refuse([&] { return data::cifar_images(file, kind, "file"); });
      if (!images) continue;
      demand(images->labels.size() * static_cast<std::size_t>(record) == file.size());
      demand(images->pixels.size() == images->labels.size() * 3072);
      for (const std::uint8_t label : images->labels) demand(label < classes);
    }
  }
  return 0;
}
