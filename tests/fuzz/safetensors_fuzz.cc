// libFuzzer over the safetensors parser. An input is a whole file, or (when it begins with '{') a header alone before data of
// several sizes, so that mutations need not keep the length field right. Beyond memory errors it checks the parser's promises:
// an Error is one short line, and an accepted header tiles the data and survives being written and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <cautious/error.h>
#include "base/safetensors.h"

namespace {

using cautious::base::Safetensors;
using cautious::base::SafetensorsHeader;

void demand(bool holds) {
  if (!holds) std::abort();
}

SafetensorsHeader written_again(const SafetensorsHeader& header, std::uint64_t bytes) {
  const std::vector<std::byte> data(bytes);
  std::vector<cautious::base::TensorToWrite> tensors;
  for (const auto& t : header.tensors)
    tensors.push_back({t.name, t.type, t.shape, std::span(data).subspan(t.begin, t.end - t.begin)});
  const std::string text = cautious::base::safetensors_header(tensors, header.metadata);
  return Safetensors::parse(std::as_bytes(std::span(text)), text.size() + bytes, "again");
}

void check(std::span<const std::byte> start, std::uint64_t size) {
  SafetensorsHeader header;
  try {
    header = Safetensors::parse(start, size, "file");
  } catch (const cautious::Error& error) {
    const std::string message = error.what();
    demand(error.fault() == cautious::Fault::data && message.starts_with("file: "));
    demand(message.size() < 2000 && message.find('\n') == message.npos);
    return;
  }
  std::uint64_t reached = 0;
  for (const auto& t : header.tensors) {
    demand(t.begin == reached && t.end >= t.begin && t.elements() >= 0);
    reached = t.end;
  }
  demand(header.data + reached == size);
  const SafetensorsHeader again = written_again(header, reached);
  demand(again.tensors == header.tensors && again.metadata == header.metadata);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  if (size == 0 || data[0] != '{') {
    check(input, size);
    return 0;
  }
  std::vector<std::byte> file(8);
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(size >> (8 * i) & 0xff);
  file.insert(file.end(), input.begin(), input.end());
  for (const std::uint64_t bytes : {8, 24}) check(file, file.size() + bytes);
  return 0;
}
