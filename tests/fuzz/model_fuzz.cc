// libFuzzer over the readers of models of others: an input that begins with '{' is a config.json, one that begins with GGUF a
// file of llama.cpp, any other one of llama2.c.
// A description that is accepted survives being written and read again; a file that is accepted has all of its tensors.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "model/family.h"
#include "model/weight_source.h"
#include "reader_fuzz.h"

namespace {

using cautious::model::ModelConfig;

void check_description(std::string_view text) {
  const auto read = cautious::read_or_refuse([&] { return cautious::model::from_config_json(text, "file"); });
  if (!read) return;
  const std::string written = cautious::model::to_config_json(*read, 0, 0);
  const ModelConfig again = cautious::model::from_config_json(written, "again");
  cautious::demand(cautious::model::to_config_json(again, 0, 0) == written);
  cautious::demand(cautious::model::parameter_shapes(again) == cautious::model::parameter_shapes(*read));
}

void check_file(std::string_view bytes) {
  static const std::string name = "/dev/shm/cautious_model_fuzz_" + std::to_string(::getpid());
  const std::filesystem::path file = name + (bytes.starts_with("GGUF") ? ".gguf" : ".bin");
  std::ofstream(file, std::ios::binary) << bytes;
  try {
    const auto source = cautious::model::open_weights(file);
    for (const cautious::model::Shape& shape : cautious::model::parameter_shapes(source->config())) {
      std::vector<float> values(static_cast<std::size_t>(cautious::model::entries(shape)));
      source->read(shape, values);
    }
  } catch (const cautious::Error& error) {
    const std::string_view message = error.what();
    cautious::demand(error.fault() == cautious::Fault::data && message.find(file.string()) < 16);
    cautious::demand(message.size() < 2000 && message.find('\n') == message.npos);
  }
  std::filesystem::remove(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('{')) {
    check_description(input);
  } else {
    check_file(input);
  }
  return 0;
}
