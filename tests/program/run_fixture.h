// A directory per test, what is in its files, and the line of an error.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <cautious/error.h>

#include "usage_message.h"

namespace cautious {

class RunFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(testing::TempDir()) /
                 (std::string(test->test_suite_name()) + "_" + test->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string content(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void store(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::set<std::string> names(const std::filesystem::path& folder) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) found.insert(entry.path().filename().string());
    return found;
  }

  // The message of the call's Error: of that fault, on one line.
  template <class Call>
  static std::string refused(Fault fault, const Call& call) {
    const std::string line = line_of(fault, call);
    EXPECT_NE(line, "") << "no error";
    return line;
  }

  std::filesystem::path directory_;
};

// While it exists no file grows beyond `bytes`: stands for a full disk, where write() stores a part and then fails.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// Root may write anywhere; while it exists, the process is nobody.
class NotRoot {
 public:
  NotRoot() : user_(::geteuid()) { EXPECT_EQ(user_ == 0 ? ::seteuid(65534) : 0, 0); }
  ~NotRoot() { EXPECT_EQ(::seteuid(user_), 0); }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  uid_t user_;
};

}  // namespace cautious
