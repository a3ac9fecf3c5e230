#include "base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <string_view>

#include <cautious/error.h>

namespace cautious::base {
namespace {

constexpr int kGzipOnly = 15 + 16;  // the largest window, and no zlib or raw streams

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& file, std::size_t most)
      : file_(file), left_(bytes), whole_(bytes.size()), most_(most) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string run() {
    std::string text;
    for (;;) {
      member(text);
      if (text.size() == most_) return text;
      if (std::all_of(left_.begin(), left_.end(), [](std::byte b) { return b == std::byte{0}; })) return text;  // tape padding
      if (!is_gzip(left_)) refuse("something else than gzip follows");
      inflateReset(&stream_);
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Fault::data, fmt::format("{}: damaged gzip file: {} at byte {}", file_, what, whole_ - left_.size()));
  }

  void member(std::string& text) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    for (int status = Z_OK; status != Z_STREAM_END && text.size() < most_;) {
      if (left_.empty()) refuse("the data end too early");
      const auto given = std::min<std::size_t>(left_.size(), std::numeric_limits<uInt>::max());
      const std::size_t before = text.size();
      const std::size_t step = std::min(kStep, most_ - before);
      if (text.capacity() - before < step) text.reserve(std::min(2 * before + step, most_));
      text.resize(before + step);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream_.avail_out = static_cast<uInt>(step);
      status = inflate(&stream_, Z_NO_FLUSH);
      left_ = left_.subspan(given - stream_.avail_in);
      text.resize(before + step - stream_.avail_out);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        refuse(stream_.msg != nullptr ? stream_.msg : "cannot decompress");
    }
  }

  const std::string& file_;
  std::span<const std::byte> left_;
  std::size_t whole_, most_;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::string gunzip(std::span<const std::byte> bytes, const std::string& file, std::size_t most) try {
  return Inflater(bytes, file, most).run();
} catch (const std::bad_alloc&) {
  throw Error(Fault::failure, fmt::format("{}: its decompressed content does not fit into memory", file));
} catch (const std::length_error&) {
  throw Error(Fault::failure, fmt::format("{}: its decompressed content does not fit into memory", file));
}

}  // namespace cautious::base
