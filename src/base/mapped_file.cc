// POSIX mmap(). A file that another process cuts short while it is mapped ends the program; nothing here can prevent that.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <cautious/error.h>

namespace cautious::base {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, Fault fault, const std::string& why) {
  throw Error(fault, fmt::format("{}: cannot open: {}", path.string(), why));
}

std::string reason(int error) { return std::generic_category().message(error); }

// Closes the descriptor; the mapping lives on without it.
struct Descriptor {
  int number;
  explicit Descriptor(int n) : number(n) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) refuse(path, Fault::data, reason(errno));
  struct stat status {};
  if (::fstat(file.number, &status) != 0) refuse(path, Fault::data, reason(errno));
  if (S_ISDIR(status.st_mode)) refuse(path, Fault::data, reason(EISDIR));
  if (!S_ISREG(status.st_mode)) refuse(path, Fault::data, "not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (memory == MAP_FAILED) refuse(path, Fault::failure, reason(errno));
  data_ = static_cast<const std::byte*>(memory);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace cautious::base
