// The line of a call's usage error.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <cautious/error.h>

namespace cautious {

// Empty if the call does not throw; another fault than usage fails the test.
template <class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  return "";
}

}  // namespace cautious
