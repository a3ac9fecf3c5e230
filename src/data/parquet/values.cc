#include "data/parquet/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cautious::data::parquet {
namespace {

// `width` bits from bit `position` on, the lowest first.
std::uint64_t bits_at(std::string_view bytes, std::uint64_t position, int width) {
  std::uint64_t number = 0;
  for (int done = 0; done < width;) {
    const auto byte = static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(position / 8)]);
    const int offset = static_cast<int>(position % 8), some = std::min(8 - offset, width - done);
    number |= static_cast<std::uint64_t>(byte >> offset & ((1 << some) - 1)) << done;
    done += some;
    position += static_cast<std::uint64_t>(some);
  }
  return number;
}

std::uint64_t length_of(std::int64_t number) {
  if (number < 0) throw Damage{"a text of less than no bytes"};
  return static_cast<std::uint64_t>(number);
}

class PlainTexts : public Texts {
 public:
  explicit PlainTexts(std::string_view bytes) : cursor_(bytes) {}
  std::string_view next() override { return cursor_.bytes(cursor_.little_endian(4)); }

 private:
  Cursor cursor_;
};

class ListedTexts : public Texts {
 public:
  ListedTexts(std::string_view bytes, const std::vector<std::string_view>& dictionary)
      : dictionary_(dictionary), numbers_(bytes.substr(std::min<std::size_t>(1, bytes.size())), Cursor(bytes).byte()) {}
  std::string_view next() override {
    const std::uint32_t number = numbers_.next();
    if (number >= dictionary_.size()) throw Damage{fmt::format("entry {} of a dictionary of {}", number, dictionary_.size())};
    return dictionary_[number];
  }

 private:
  const std::vector<std::string_view>& dictionary_;
  Runs numbers_;
};

class MeasuredTexts : public Texts {
 public:
  explicit MeasuredTexts(std::string_view bytes) : lengths_(bytes), cursor_(Differences::after(bytes)) {}
  std::string_view next() override { return cursor_.bytes(length_of(lengths_.next())); }

 private:
  Differences lengths_;
  Cursor cursor_;
};

// Each begins as the one before it did.
class ContinuedTexts : public Texts {
 public:
  explicit ContinuedTexts(std::string_view bytes) : shared_(bytes), rests_(Differences::after(bytes)) {}
  std::string_view next() override {
    const std::uint64_t shared = length_of(shared_.next());
    if (shared > text_.size()) throw Damage{"a text that repeats more than there is of the one before"};
    text_.resize(static_cast<std::size_t>(shared));
    return text_ += rests_.next();
  }

 private:
  Differences shared_;
  MeasuredTexts rests_;
  std::string text_;
};

}  // namespace

Runs::Runs(std::string_view bytes, int width) : cursor_(bytes), width_(width) {
  if (width > 32) throw Damage{fmt::format("numbers of {} bits", width)};
}

std::uint32_t Runs::next() {
  while (left_ == 0) {
    const std::uint64_t head = cursor_.varint();
    packed_ = (head & 1) != 0;
    left_ = head >> 1;
    if (packed_) {
      if (left_ > std::uint64_t{1} << 32) throw Damage{"the bytes end too early", true};
      bits_ = cursor_.bytes(left_ * static_cast<std::uint64_t>(width_));
      position_ = 0;
      left_ *= 8;
    } else {
      number_ = static_cast<std::uint32_t>(cursor_.little_endian((width_ + 7) / 8));
    }
  }
  --left_;
  if (!packed_) return number_;
  position_ += static_cast<std::uint64_t>(width_);
  return static_cast<std::uint32_t>(bits_at(bits_, position_ - static_cast<std::uint64_t>(width_), width_));
}

Differences::Differences(std::string_view bytes) : cursor_(bytes) {
  constexpr std::uint64_t kLargestBlock = 1 << 13;  // 128 or 256 as everybody writes; what takes no bits must take some bytes
  block_ = cursor_.varint();
  miniblocks_ = cursor_.varint();
  count_ = cursor_.varint();
  value_ = static_cast<std::uint64_t>(cursor_.zigzag());
  if (block_ == 0 || block_ > kLargestBlock || miniblocks_ == 0 || block_ % miniblocks_ != 0 || block_ / miniblocks_ % 8 != 0)
    throw Damage{fmt::format("blocks of {} numbers in {}", block_, miniblocks_)};
  miniblock_ = miniblocks_;
}

void Differences::next_block() {
  least_ = static_cast<std::uint64_t>(cursor_.zigzag());
  widths_ = cursor_.bytes(miniblocks_);
  miniblock_ = 0;
}

std::int64_t Differences::next() {
  if (given_ == count_) throw Damage{"the numbers end too early"};
  if (given_++ == 0) return static_cast<std::int64_t>(value_);
  const std::uint64_t each = block_ / miniblocks_;
  if (in_miniblock_ == 0) {
    if (miniblock_ == miniblocks_) next_block();
    const auto width = static_cast<std::uint8_t>(widths_[static_cast<std::size_t>(miniblock_)]);
    if (width > 64) throw Damage{fmt::format("numbers of {} bits", width)};
    bits_ = cursor_.bytes(each / 8 * width);
  }
  const auto width = static_cast<std::uint8_t>(widths_[static_cast<std::size_t>(miniblock_)]);
  value_ += least_ + bits_at(bits_, in_miniblock_ * width, width);
  if (++in_miniblock_ == each) {
    in_miniblock_ = 0;
    ++miniblock_;
  }
  return static_cast<std::int64_t>(value_);
}

std::string_view Differences::after(std::string_view bytes) {
  Differences numbers(bytes);
  while (numbers.given_ < numbers.count_) numbers.next();
  return numbers.cursor_.rest();
}

std::unique_ptr<Texts> Texts::of(std::int64_t encoding, std::string_view bytes,
                                 const std::vector<std::string_view>* dictionary) {
  constexpr std::array<std::string_view, 10> kEncodings = {"PLAIN",
                                                           "1",
                                                           "PLAIN_DICTIONARY",
                                                           "RLE",
                                                           "BIT_PACKED",
                                                           "DELTA_BINARY_PACKED",
                                                           "DELTA_LENGTH_BYTE_ARRAY",
                                                           "DELTA_BYTE_ARRAY",
                                                           "RLE_DICTIONARY",
                                                           "BYTE_STREAM_SPLIT"};
  switch (encoding) {
    case 0:
      return std::make_unique<PlainTexts>(bytes);
    case 2:
    case 8:
      if (dictionary == nullptr) throw Damage{"numbers of a dictionary that is missing"};
      return std::make_unique<ListedTexts>(bytes, *dictionary);
    case 6:
      return std::make_unique<MeasuredTexts>(bytes);
    case 7:
      return std::make_unique<ContinuedTexts>(bytes);
    default:
      const bool known = encoding >= 0 && encoding < static_cast<std::int64_t>(kEncodings.size());
      throw Damage{fmt::format("texts in the encoding {}, which texts do not have",
                               known ? kEncodings[static_cast<std::size_t>(encoding)] : fmt::to_string(encoding))};
  }
}

}  // namespace cautious::data::parquet
