// The values of a page: numbers in runs and packed bits, differences of numbers, and texts in each of the encodings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/parquet/thrift.h"

namespace cautious::data::parquet {

// RLE: runs of one number and groups of eight in packed bits, of `width` bits each.
class Runs {
 public:
  Runs(std::string_view bytes, int width);
  std::uint32_t next();

 private:
  Cursor cursor_;
  int width_;
  std::uint64_t left_ = 0;  // of this run
  bool packed_ = false;
  std::uint32_t number_ = 0;    // of which it is
  std::string_view bits_;       // or these
  std::uint64_t position_ = 0;  // in bits
};

// DELTA_BINARY_PACKED: in blocks, each number by its difference to the one before.
class Differences {
 public:
  explicit Differences(std::string_view bytes);
  std::uint64_t count() const { return count_; }
  std::int64_t next();
  // The bytes that follow all of them.
  static std::string_view after(std::string_view bytes);

 private:
  void next_block();

  Cursor cursor_;
  std::uint64_t block_ = 0, miniblocks_ = 0, count_ = 0;
  std::uint64_t given_ = 0;  // numbers
  std::uint64_t value_ = 0;  // the last one; two's complement, as are the differences
  std::uint64_t least_ = 0;  // difference of this block
  std::string_view widths_;  // of its miniblocks
  std::uint64_t miniblock_ = 0, in_miniblock_ = 0;
  std::string_view bits_;
};

// Texts one after the other; each is valid until the next.
class Texts {
 public:
  // PLAIN, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, or numbers of `dictionary` (PLAIN_DICTIONARY, RLE_DICTIONARY), which is
  // null if the column has none. Another encoding is Damage.
  static std::unique_ptr<Texts> of(std::int64_t encoding, std::string_view bytes,
                                   const std::vector<std::string_view>* dictionary);
  virtual ~Texts() = default;
  virtual std::string_view next() = 0;
};

}  // namespace cautious::data::parquet
