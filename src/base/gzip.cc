#include "base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/memory.h"

namespace cautious::base {
namespace {

using PackedBytes = std::span<const std::byte>;

constexpr int kGzipOnly = 15 + 16;  // the largest window, and no zlib or raw streams
constexpr std::size_t kPackedStep = std::size_t{1} << 16;

bool begins_with(PackedBytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// The compressed bytes that have come and wait.
class Packed {
 public:
  Packed(ReadOn read, std::string file, const char* format) : read_(std::move(read)), file_(std::move(file)), format_(format) {}

  // At least `wanted` bytes, of which none is taken yet; fewer only at the end.
  PackedBytes look(std::size_t wanted = 1) {
    if (bytes_.size() - at_ < wanted && !ended_) {
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
      at_ = 0;
      const std::size_t before = bytes_.size();
      bytes_.resize(before + kPackedStep);
      bytes_.resize(before + read_(std::span(bytes_).subspan(before)));
      ended_ = bytes_.size() < before + kPackedStep;
    }
    return std::span(bytes_).subspan(at_);
  }
  void take(std::size_t count) {
    at_ += count;
    taken_ += count;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Fault::data, fmt::format("{}: damaged {} file: {} at byte {}", file_, format_, what, taken_));
  }

 private:
  ReadOn read_;
  std::string file_;
  const char* format_;
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0, taken_ = 0;
  bool ended_ = false;
};

class Inflating : public Unpacking {
 public:
  Inflating(ReadOn read, std::string file) : packed_(std::move(read), std::move(file), "gzip") {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflating() override { inflateEnd(&stream_); }
  Inflating(const Inflating&) = delete;
  Inflating& operator=(const Inflating&) = delete;

  std::size_t read(std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size() && !ended_) {
      if (between_ && !next_member()) break;
      done += inflate_some(to.subspan(done));
    }
    return done;
  }

 private:
  std::size_t inflate_some(std::span<std::byte> to) {
    const PackedBytes given = packed_.look();
    if (given.empty()) packed_.refuse("the data end too early");
    const std::size_t room = std::min<std::size_t>(to.size(), std::size_t{1} << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(given.data()));
    stream_.avail_in = static_cast<uInt>(given.size());
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    packed_.take(given.size() - stream_.avail_in);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      packed_.refuse(stream_.msg != nullptr ? stream_.msg : "cannot decompress");
    between_ = status == Z_STREAM_END;
    return room - stream_.avail_out;
  }

  // After the last one there may be zeros, a tape's padding.
  bool next_member() {
    const PackedBytes next = packed_.look(2);
    if (next.empty() || next[0] == std::byte{0}) {
      skip_zeros();
      ended_ = true;
      return false;
    }
    if (!is_gzip(next)) packed_.refuse("something else than gzip follows");
    inflateReset(&stream_);
    between_ = false;
    return true;
  }

  void skip_zeros() {
    for (PackedBytes next = packed_.look(); !next.empty(); next = packed_.look()) {
      if (std::any_of(next.begin(), next.end(), [](std::byte b) { return b != std::byte{0}; }))
        packed_.refuse("something else than gzip follows");
      packed_.take(next.size());
    }
  }

  Packed packed_;
  z_stream stream_{};
  bool between_ = false, ended_ = false;  // between members; after the last
};

class UnpackingZstd : public Unpacking {
 public:
  UnpackingZstd(ReadOn read, std::string file) : packed_(std::move(read), std::move(file), "zstd"), stream_(ZSTD_createDCtx()) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t read(std::span<std::byte> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size) {
      const PackedBytes given = packed_.look();
      if (given.empty() && !within_) break;
      ZSTD_inBuffer in{given.data(), given.size(), 0};
      const std::size_t before = out.pos;
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
      packed_.take(in.pos);
      if (ZSTD_isError(status) != 0) packed_.refuse(ZSTD_getErrorName(status));
      within_ = status != 0;
      if (given.empty() && out.pos == before) packed_.refuse("the data end too early");
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  Packed packed_;
  std::unique_ptr<ZSTD_DCtx, Free> stream_;
  bool within_ = true;  // a frame that has not ended
};

ReadOn from_memory(PackedBytes bytes) {
  return [left = bytes](std::span<std::byte> to) mutable {
    const std::size_t count = std::min(left.size(), to.size());
    if (count > 0) std::memcpy(to.data(), left.data(), count);
    left = left.subspan(count);
    return count;
  };
}

// Without a look at the memory, a small file that unpacks to more than there is would take it all from other processes.
std::string first_of(Unpacking& unpacking, const std::string& file, std::size_t most) try {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::string text;
  for (bool more = true; more && text.size() < most;) {
    const std::size_t before = text.size(), step = std::min(std::max(kStep, before), most - before);
    if (static_cast<double>(before + step) > memory_available()) throw std::bad_alloc();
    text.resize(before + step);
    const std::size_t count = unpacking.read(std::as_writable_bytes(std::span(text).subspan(before)));
    text.resize(before + count);
    more = count == step;
  }
  return text;
} catch (const std::bad_alloc&) {
  throw Error(Fault::failure, fmt::format("{}: its decompressed content does not fit into memory", file));
} catch (const std::length_error&) {
  throw Error(Fault::failure, fmt::format("{}: its decompressed content does not fit into memory", file));
}

}  // namespace

bool is_gzip(PackedBytes bytes) { return begins_with(bytes, "\x1f\x8b"); }
bool is_zstd(PackedBytes bytes) { return begins_with(bytes, "\x28\xb5\x2f\xfd"); }

std::unique_ptr<Unpacking> Unpacking::gzip(ReadOn packed, std::string file) {
  return std::make_unique<Inflating>(std::move(packed), std::move(file));
}
std::unique_ptr<Unpacking> Unpacking::zstd(ReadOn packed, std::string file) {
  return std::make_unique<UnpackingZstd>(std::move(packed), std::move(file));
}

std::string gunzip(PackedBytes bytes, const std::string& file, std::size_t most) {
  return first_of(*Unpacking::gzip(from_memory(bytes), file), file, most);
}

std::string unzstd(PackedBytes bytes, const std::string& file, std::size_t most) {
  return first_of(*Unpacking::zstd(from_memory(bytes), file), file, most);
}

}  // namespace cautious::base
