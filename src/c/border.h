// The border between C and C++: exceptions become a status and a text, pointers and sizes are checked before they are used.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cautious/c.h>
#include <cautious/error.h>

#include "base/fields.h"

namespace cautious::c {

// Inside a catch: the exception's status; its text becomes cautious_last_error() of this thread.
cautious_status caught() noexcept;

// Runs the body of a function of the interface.
template <class Body>
cautious_status call(const Body& body) noexcept {
  try {
    body();
    return CAUTIOUS_OK;
  } catch (...) {
    return caught();
  }
}

[[noreturn]] void refuse(const std::string& message);

// What an argument of that name points to.
template <class T>
T& at(T* pointer, std::string_view name) {
  if (pointer == nullptr) refuse(std::string(name) + " is null");
  return *pointer;
}

inline std::string_view text_at(const char* text, std::string_view name) { return &at(text, name); }

// A struct of the caller's as the library knows it. One from a later header is taken if what the library does not know is zero.
template <class Struct>
Struct& struct_at(Struct* given, std::string_view type) {
  constexpr std::size_t kMost = 4096;  // a size that was never set is not followed
  const std::size_t size = at(given, type).size;
  if (size < sizeof(Struct) || size > kMost) {
    refuse(std::string(type) + ".size is " + std::to_string(size) + ", not " + std::to_string(sizeof(Struct)) +
           "; set it to sizeof(cautious_" + std::string(type) + ")");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      refuse(std::string(type) + " has fields that this library, version " + cautious_version() + ", does not know");
    }
  }
  return *given;
}

// The argument of that name as "field=value field=value"; null: all defaults. `what` is a field in messages.
template <class Fields>
Fields parse_fields(const char* text, std::string_view name, std::string_view what) {
  Fields made;
  if (text == nullptr) return made;
  for (const base::Setting& setting : base::settings_of(name, text, base::words_of(text))) {
    base::with_context(setting.where, [&] { base::set_field(made, what, setting.field, setting.value); });
  }
  return made;
}

}  // namespace cautious::c
