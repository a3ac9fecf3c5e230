// libFuzzer over the readers of tokenizers. An input that begins with '{' is a JSON merge patch of two small tokenizer.json, a
// byte-level one and one of sentence pieces, so that mutations need not spell 256 bytes; one that begins with 'b' is a
// tokenizer.bin; one with 't' the lines of tiktoken ranks behind those of the bytes; one with 'g' a merge patch of
// encoder.json, then a line's end and vocab.bpe; others are a whole tokenizer.json. What is accepted encodes any bytes and
// survives being written and read.
#include <cstddef>
#include <cstdint>
#include <functional>
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

std::string base64(unsigned byte) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return {kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
}

void check(const std::function<data::Tokenizer()>& reader, const std::string& file) {
  const auto tokenizer = read_or_refuse(reader, file, Fault::data);
  if (!tokenizer) return;
  const std::string text = "ab a\xff\n ▁abc";
  const auto ids = tokenizer->encode(text);
  for (const data::Token id : ids) demand(id < tokenizer->vocab());
  demand(!tokenizer->decode(ids).empty() && tokenizer->lengths().size() == static_cast<std::size_t>(tokenizer->vocab()));
  write_bytes(memory_file(), tokenizer->to_json());
  const auto again = read_or_refuse([&] { return data::read_tokenizer_json(memory_file()); }, memory_file());
  demand(again && again->fingerprint() == tokenizer->fingerprint() && again->encode(text) == ids);
}

void check_json(const std::string& content) {
  write_bytes(memory_file(), content);
  check([] { return data::read_tokenizer_json(memory_file()); }, memory_file() + ": ");
}

void check_binary(std::string_view content) {
  write_bytes(memory_file(), content);
  check([] { return data::read_llama2c_file(memory_file()); }, memory_file() + ": ");
}

void check_ranks(std::string_view lines) {
  const std::filesystem::path file = memory_folder() / "r50k_base.tiktoken";
  std::string ranks;
  for (unsigned byte = 0; byte < 256; ++byte) ranks += base64(byte) + " " + std::to_string(byte) + "\n";
  write_bytes(file, ranks.append(lines));
  check([&] { return data::Tokenizer::read(file); }, file.string() + ":");
}

void check_gpt2(std::string_view content) {
  const std::size_t end = std::min(content.find('\n'), content.size());
  const json patch = json::parse(content.substr(0, end), nullptr, false);
  if (!patch.is_object()) return;
  json vocabulary = byte_level()["model"]["vocab"];
  vocabulary["<|endoftext|>"] = 258;
  vocabulary.merge_patch(patch);
  write_bytes(memory_folder() / "encoder.json", vocabulary.dump(-1, ' ', false, json::error_handler_t::replace));
  write_bytes(memory_folder() / "vocab.bpe", content.substr(std::min(end + 1, content.size())));
  check([] { return data::Tokenizer::read(memory_folder()); }, memory_folder().string());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('b')) return check_binary(std::string_view(input).substr(1)), 0;
  if (input.starts_with('t')) return check_ranks(std::string_view(input).substr(1)), 0;
  if (input.starts_with('g')) return check_gpt2(std::string_view(input).substr(1)), 0;
  if (!input.starts_with('{')) return check_json(input), 0;
  const json patch = json::parse(input, nullptr, false);
  if (patch.is_discarded()) return 0;
  for (json root : {byte_level(), sentence_pieces()}) {
    root.merge_patch(patch);
    check_json(root.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return 0;
}
