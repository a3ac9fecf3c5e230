// SHA-256, of libcrypto.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cautious::base {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex();  // 64 digits; call once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_of(std::string_view text);
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace cautious::base
