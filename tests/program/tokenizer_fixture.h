// A small tokenizer as files of every layout, texts to try, and the line of a data error.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "data/tokenizer/tokenizer_builder.h"
#include "usage_message.h"

namespace cautious::data {

template <class Call>
std::string data_message(const Call& call) {
  return line_of(Fault::data, call);
}

// Whether the message has all of these words.
template <class... Words>
testing::AssertionResult has(const std::string& message, const Words&... words) {
  for (const std::string_view word : {std::string_view(words)...}) {
    if (message.find(word) == message.npos) return testing::AssertionFailure() << "no \"" << word << "\" in: " << message;
  }
  return testing::AssertionSuccess();
}

class TokenizerFiles : public testing::Test {
 protected:
  TokenizerFiles() : folder_(std::filesystem::temp_directory_path() / fmt::format("tokenizer_test.{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~TokenizerFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

// The 256 bytes under ids 0..255, then one token for each of these.
inline const std::vector<std::pair<std::string, std::string>>& some_merges() {
  static const std::vector<std::pair<std::string, std::string>> merges = {
      {"t", "h"}, {"th", "e"}, {" ", "the"}, {"a", "a"}, {"aa", "aa"}, {"a", "b"}, {"ab", "ab"}, {"\xc3", "\xa9"}, {"1", "2"}};
  return merges;
}

inline std::vector<std::string> some_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const auto& [left, right] : some_merges()) tokens.push_back(left + right);
  return tokens;
}

// The same as a tokenizer.json, with changes by JSON merge patches.
inline std::string json_text(std::string_view change_model = "{}", std::string_view change_root = "{}") {
  nlohmann::json vocabulary, merges = nlohmann::json::array();
  const auto tokens = some_tokens();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[to_letters(tokens[id])] = id;
  for (const auto& [left, right] : some_merges()) merges.push_back(to_letters(left) + " " + to_letters(right));
  nlohmann::json root = {{"added_tokens", {{{"id", tokens.size()}, {"content", "<|endoftext|>"}, {"special", true}}}},
                         {"normalizer", nullptr},
                         {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                         {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  root.merge_patch(nlohmann::json::parse(change_root));
  root["model"].merge_patch(nlohmann::json::parse(change_model));
  return root.dump();
}

// Words, runs, several scripts, and with `broken` bytes that are not UTF-8.
inline std::string random_text(std::mt19937& random, std::size_t pieces, bool broken) {
  const std::vector<std::string> choices = {"a",      "B",        "the",      "aab",      "ab",       " ",   "  ",  "\n",
                                            "\r\n",   "\t",       "1",        "123",      "4567",     "'s",  "'LL", "'",
                                            "é",      "\xcc\x81", "中",       "😀",        "\xc2\xa0", ".",   "-/",  "!?",
                                            " a b c", "Ab cD",    "\xe3\x80", "\xff\xfe", "\xc3",     "\x80"};
  std::string text;
  for (std::size_t i = 0; i < pieces; ++i) text += choices[random() % (choices.size() - (broken ? 0 : 4))];
  return text;
}

}  // namespace cautious::data
