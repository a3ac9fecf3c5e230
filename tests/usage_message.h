// The line of a call's Error.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <cautious/error.h>

namespace cautious {

// Empty if the call does not throw; another fault than the expected one fails the test, and so does a second line.
template <class Call>
std::string line_of(Fault fault, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.fault(), fault) << line;
    EXPECT_EQ(line.find('\n'), line.npos) << line;
    return line;
  }
  return "";
}

template <class Call>
std::string message(const Call& call) {
  return line_of(Fault::usage, call);
}

}  // namespace cautious
