// A file's bytes as memory that the system pages in on demand.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace cautious::base {

class MappedFile {
 public:
  // A file that cannot be opened is an Error(Fault::data) with the path and the system's reason. An empty file has no bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cautious::base
