#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include <cautious/error.h>
#include "base/files.h"

namespace cautious::base {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }

  // Fails without memory, or where the system's policy forbids the algorithm.
  void require(bool done) const {
    if (!done) throw Error(Fault::failure, "libcrypto cannot compute SHA-256");
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  state_->require(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  state_->require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  state_->require(EVP_DigestFinal_ex(state_->context, sum.data(), &length) == 1);
  std::string digits;
  for (unsigned i = 0; i < length; ++i) digits += fmt::format("{:02x}", sum[i]);
  return digits;
}

std::string sha256_of(std::string_view text) {
  Sha256 sum;
  sum.add(text);
  return sum.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  Sha256 sum;
  sum.add(file.bytes());
  return sum.hex();
}

}  // namespace cautious::base
