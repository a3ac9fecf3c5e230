#include "data/parquet/thrift.h"

namespace cautious::data::parquet {

Thrift::Level::Level(Thrift& of) : thrift(of) {
  constexpr int kDeepest = 32;
  if (++thrift.depth_ > kDeepest) throw Damage{"structures within structures without an end"};
}

void Thrift::begin(int type) {
  if (type_ != type) throw Damage{"a field of another type"};
  waiting_ = false;
}

Thrift::ListHead Thrift::list_head() {
  const unsigned head = cursor_.byte();
  return {head >> 4 == 15 ? cursor_.varint() : head >> 4, static_cast<int>(head & 15)};
}

std::int64_t Thrift::number() {
  if (type_ < kByte || type_ > kInt64) throw Damage{"a field of another type"};
  waiting_ = false;
  return type_ == kByte ? static_cast<std::int8_t>(cursor_.byte()) : cursor_.zigzag();
}

bool Thrift::truth() {
  if (type_ != kTrue && type_ != kFalse) throw Damage{"a field of another type"};
  waiting_ = false;
  return type_ == kTrue;
}

std::string_view Thrift::text() {
  begin(kText);
  return cursor_.bytes(cursor_.varint());
}

void Thrift::skip(int type) {
  const Level level(*this);
  if (type == kTrue || type == kFalse) return;
  if (type == kStructure) return structure([](std::int64_t) {});
  if (type == kList || type == kSet) {
    for (auto [count, element] = list_head(); count > 0; --count) skip_element(element);
    return;
  }
  if (type == kMap) {
    std::uint64_t count = cursor_.varint();
    const unsigned types = count > 0 ? cursor_.byte() : 0u;
    for (; count > 0; --count) {
      skip_element(static_cast<int>(types >> 4));
      skip_element(static_cast<int>(types & 15));
    }
    return;
  }
  if (type == kByte) {
    (void)cursor_.byte();
  } else if (type > kByte && type <= kInt64) {
    (void)cursor_.varint();
  } else if (type == kDouble) {
    (void)cursor_.bytes(8);
  } else if (type == kText) {
    (void)cursor_.bytes(cursor_.varint());
  } else if (type == kUuid) {
    (void)cursor_.bytes(16);
  } else {
    throw Damage{"a field of an unknown type"};
  }
}

// A truth takes a byte in a list, none in a structure; so every element takes at least one.
void Thrift::skip_element(int type) { type == kTrue || type == kFalse ? (void)cursor_.byte() : skip(type); }

}  // namespace cautious::data::parquet
