// Thrift's compact protocol, as much as the headers of Parquet take. No size in the bytes is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cautious::data::parquet {

// Bytes that are not what their format says; `cut`: more of them would be needed.
struct Damage {
  std::string what;
  bool cut = false;
};

// Numbers and bytes, one after the other.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }
  std::string_view rest() const { return bytes_.substr(at_); }
  std::string_view bytes(std::uint64_t count) {
    if (count > bytes_.size() - at_) throw Damage{"the bytes end too early", true};
    at_ += static_cast<std::size_t>(count);
    return bytes_.substr(at_ - static_cast<std::size_t>(count), static_cast<std::size_t>(count));
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(bytes(1)[0]); }
  std::uint64_t little_endian(int width) {
    const std::string_view some = bytes(static_cast<std::uint64_t>(width));
    std::uint64_t number = 0;
    for (int i = width; i-- > 0;) number = number << 8 | static_cast<std::uint8_t>(some[static_cast<std::size_t>(i)]);
    return number;
  }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint64_t next = byte();
      number |= (next & 0x7f) << shift;
      if (next < 0x80) return number;
    }
    throw Damage{"a number of more than 64 bits"};
  }
  std::int64_t zigzag() {
    const std::uint64_t number = varint();
    return static_cast<std::int64_t>(number >> 1 ^ (0 - (number & 1)));
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

class Thrift {
 public:
  explicit Thrift(std::string_view bytes) : cursor_(bytes) {}

  std::size_t position() const { return cursor_.position(); }

  // `take(id)` for each field of a structure: it reads the value by one of the functions below, or leaves it to be skipped.
  template <class Take>
  void structure(const Take& take) {
    const Level level(*this);
    for (std::int64_t id = 0;;) {
      const unsigned head = cursor_.byte();
      if (head == 0) break;
      id = head >> 4 == 0 ? cursor_.zigzag() : id + (head >> 4);
      const int type = type_ = static_cast<int>(head & 15);
      waiting_ = true;
      take(id);
      if (waiting_) skip(type);
      waiting_ = false;
    }
  }
  // The value of the field at hand is a structure, a list of such, a number, a truth or a text.
  template <class Take>
  void inner(const Take& take) {
    begin(kStructure);
    structure(take);
  }
  template <class Each>
  void list(const Each& each) {
    begin(kList);
    auto [count, type] = list_head();
    for (; count > 0; --count) {
      type_ = type;
      waiting_ = true;
      each();
      if (waiting_) throw Damage{"a list of something else"};
    }
  }
  std::int64_t number();
  bool truth();
  std::string_view text();

 private:
  static constexpr int kTrue = 1, kFalse = 2, kByte = 3, kInt64 = 6, kDouble = 7, kText = 8, kList = 9, kSet = 10, kMap = 11,
                       kStructure = 12, kUuid = 13;
  struct Level {
    explicit Level(Thrift& of);
    ~Level() { --thrift.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Thrift& thrift;
  };
  struct ListHead {
    std::uint64_t count;
    int type;
  };

  void begin(int type);
  ListHead list_head();
  void skip(int type);
  void skip_element(int type);

  Cursor cursor_;
  int depth_ = 0;
  int type_ = 0;          // of the field at hand
  bool waiting_ = false;  // it has not been read
};

}  // namespace cautious::data::parquet
