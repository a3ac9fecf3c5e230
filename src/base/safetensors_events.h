// The header's JSON as a stream of events. Unlike a document, a stream shows keys that occur twice, stops at the first value
// that does not belong where it stands, and needs no memory or stack for nesting. What the values mean is checked afterwards.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <cautious/error.h>
#include "base/safetensors.h"
#include "base/shown.h"

namespace cautious::base {

class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { misplaced("null"); }
  bool boolean(bool value) override { misplaced(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { misplaced(value == 0 ? "-0" : std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { misplaced(shown(text)); }
  bool binary(binary_t&) override { misplaced("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    const bool small = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (at_ == At::shape && small) {
      tensor_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (at_ == At::offsets && small && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
    } else {
      misplaced(std::to_string(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (at_ == At::metadata) {
      header_.metadata[key_] = value;
    } else if (at_ == At::tensor && field_ == kType) {
      tensor_.type = value;
    } else {
      misplaced("the string " + shown(value));
    }
    return true;
  }

  bool key(string_t& name) override {
    if (at_ == At::tensor) {
      field_ = static_cast<std::size_t>(std::find(kFields.begin(), kFields.end(), name) - kFields.begin());
      if (field_ == kFields.size())
        refuse(fmt::format("tensor {} has the unknown key {}; keys: {}", shown(tensor_.name), shown(name),
                           fmt::join(kFields, ", ")));
      if (std::exchange(seen_[field_], true)) refuse(fmt::format("tensor {} has '{}' twice", shown(tensor_.name), name));
    } else {
      const bool fresh = at_ == At::metadata ? !header_.metadata.contains(name) : names_.insert(name).second;
      if (!fresh) refuse(fmt::format("{} {} occurs twice", at_ == At::metadata ? "metadata key" : "tensor", shown(name)));
      key_ = name;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (at_ == At::outside) {
      at_ = At::header;
    } else if (at_ == At::header && key_ == "__metadata__") {
      at_ = At::metadata;
    } else if (at_ == At::header) {
      at_ = At::tensor;
      tensor_ = {};
      tensor_.name = key_;
      seen_ = {};
      offsets_ = 0;
    } else {
      misplaced("an object");
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::tensor) {
      const auto missing = std::find(seen_.begin(), seen_.end(), false) - seen_.begin();
      if (missing < 3)
        refuse(fmt::format("tensor {} has no '{}'", shown(tensor_.name), kFields[static_cast<std::size_t>(missing)]));
      header_.tensors.push_back(std::move(tensor_));
    }
    at_ = at_ == At::header ? At::outside : At::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (at_ != At::tensor || field_ == kType) misplaced("an array");
    at_ = field_ == kShape ? At::shape : At::offsets;
    return true;
  }

  bool end_array() override {
    if (at_ == At::offsets && offsets_ != 2)
      refuse(fmt::format("tensor {}: data_offsets has {} numbers; expected 2", shown(tensor_.name), offsets_));
    at_ = At::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: <reason>; last read: '<any bytes>'", or
    // "[json.exception.out_of_range.406] <reason>".
    std::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    for (const std::string_view mark : {"] ", ": "})
      if (const auto at = what.find(mark); at != what.npos) what.remove_prefix(at + 2);
    refuse(fmt::format("the header is not JSON: at byte {}: {}", position, what.substr(0, 200)));
  }

 private:
  enum class At { outside, header, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
  static constexpr std::size_t kType = 0, kShape = 1;

  [[noreturn]] void refuse(const std::string& what) const { throw Error(Fault::data, file_ + ": " + what); }

  [[noreturn]] void misplaced(const std::string& value) const {
    const std::string name = shown(at_ == At::header || at_ == At::metadata ? key_ : tensor_.name);
    switch (at_) {
      case At::outside:
        refuse(fmt::format("the header is {}; expected an object", value));
      case At::header:
        refuse(fmt::format("{} is {}; expected an object", key_ == "__metadata__" ? key_ : "tensor " + name, value));
      case At::metadata:
        refuse(fmt::format("metadata {} is {}; expected a string", name, value));
      case At::tensor:
        refuse(fmt::format("tensor {}: {} is {}; expected {}", name, kFields[field_], value,
                           field_ == kType ? "a string" : "an array of integers"));
      case At::shape:
        refuse(fmt::format("tensor {}: shape has {}; expected integers from 0 to 2^63-1", name, value));
      case At::offsets:
        refuse(fmt::format("tensor {}: data_offsets has {}; expected 2 integers from 0 to 2^63-1", name, value));
    }
    refuse("the header is malformed");
  }

  const std::string& file_;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  At at_ = At::outside;
  std::string key_;                // of the header or the metadata, the last one read
  TensorInfo tensor_;              // the one being read, with
  std::size_t field_ = 0;          // the last key of its three,
  std::array<bool, 3> seen_ = {};  // those it has had
  int offsets_ = 0;                // and how many numbers data_offsets has had
};

}  // namespace cautious::base
