// libFuzzer over files of documents and conversations; the first byte says which name the rest has. Texts are UTF-8, whatever a
// compressed file unpacks to comes in windows, and a conversation ends with an answer.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/files.h"
#include "data/documents.h"
#include "data/instructions/conversations.h"
#include "data/tokenizer/split_pattern.h"
#include "reader_fuzz.h"

namespace {

using namespace cautious;

constexpr std::array<std::string_view, 6> kNames{"file.txt",     "file.jsonl",    "file.txt.gz",
                                                 "file.txt.zst", "file.jsonl.gz", "file.json"};

void check_documents(const std::filesystem::path& file) {
  constexpr std::size_t kEnough = std::size_t{1} << 25;
  (void)read_or_refuse(
      [&] {
        std::size_t read = 0;
        data::each_window(
            file, {}, [](std::string_view text) { return text.size(); },
            [&](const data::Window& window) {
              demand(data::valid_utf8(window.text) == window.text.size());
              read += window.text.size();
              if (read > kEnough) base::refuse_content(file.string(), "more than enough");
            });
        return read;
      },
      file.string());
}

void check_conversations(const std::filesystem::path& file) {
  const auto all = read_or_refuse([&] { return data::read_conversations(file); }, file.string());
  if (!all) return;
  demand(!all->empty());
  for (const data::Conversation& each : *all) demand(each.messages.empty() || each.messages.back().role == "assistant");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::filesystem::path file = memory_folder() / kNames[data[0] % kNames.size()];
  write_bytes(file, {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (file.extension() != ".json") check_documents(file);
  check_conversations(file);
  return 0;
}
