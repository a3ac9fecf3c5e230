// libFuzzer over the readers of tokenizers. An input that begins with '{' is a JSON merge patch of two small tokenizer.json, a
// byte-level one and one of sentence pieces, so that mutations need not spell 256 bytes; one that begins with 'b' is a
// tokenizer.bin; others are a whole tokenizer.json. What is accepted encodes any bytes and survives being written and read.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/tokenizer/tokenizer_builder.h"
#include "reader_fuzz.h"

namespace {

using namespace cautious;
using nlohmann::json;

json byte_level() {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[data::to_letters(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["ab"] = 256;
  vocabulary["abc"] = 257;
  return {{"added_tokens", {{{"id", 258}, {"content", "<|endoftext|>"}, {"special", true}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b", "ab c"}}}}};
}

json sentence_pieces() {
  json vocabulary = {{"</s>", 256}, {"a", 257}, {"b", 258}, {"▁", 259}, {"▁a", 260}, {"ab", 261}};
  for (unsigned byte = 0; byte < 256; ++byte) vocabulary[data::name_of_byte(byte)] = byte;
  return {{"added_tokens", {{{"id", 256}, {"content", "</s>"}, {"special", true}}}},
          {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}}},
          {"model", {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocabulary}, {"merges", {"▁ a", "a b"}}}}};
}

// The readers take files: this one lives in memory.
const std::string& file() {
  static const std::string path = "/proc/self/fd/" + std::to_string(::memfd_create("file", 0));
  return path;
}

void check(const std::string& content, bool binary) {
  const auto write = [](const std::string& bytes) { std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes; };
  write(content);
  const auto read = [&] {
    return read_or_refuse([&] { return binary ? data::read_llama2c_file(file()) : data::read_tokenizer_json(file()); }, file());
  };
  const auto tokenizer = read();
  if (!tokenizer) return;
  const std::string text = "ab a\xff\n ▁abc";
  const auto ids = tokenizer->encode(text);
  for (const data::Token id : ids) demand(id < tokenizer->vocab());
  demand(!tokenizer->decode(ids).empty() && tokenizer->lengths().size() == static_cast<std::size_t>(tokenizer->vocab()));
  write(tokenizer->to_json());
  const auto again = read_or_refuse([&] { return data::read_tokenizer_json(file()); }, file());
  demand(again && again->fingerprint() == tokenizer->fingerprint() && again->encode(text) == ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (!input.starts_with('{')) {
    check(input.starts_with('b') ? input.substr(1) : input, input.starts_with('b'));
    return 0;
  }
  const json patch = json::parse(input, nullptr, false);
  if (patch.is_discarded()) return 0;
  for (json root : {byte_level(), sentence_pieces()}) {
    root.merge_patch(patch);
    check(root.dump(-1, ' ', false, json::error_handler_t::replace), false);
  }
  return 0;
}
