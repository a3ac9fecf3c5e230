// Atomic files: the new content or the old, and nothing left beside it, whatever fails.
#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <cautious/error.h>
#include "base/safetensors.h"

namespace cautious::base {
namespace atomic_file_test {

class AtomicFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(testing::TempDir()) / ("atomic_" + std::to_string(::getpid()) + "_" + test->name());
    std::filesystem::create_directories(directory_);
    base::write_atomically(directory_ / "old", "old content");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string content(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  static void expect_failure(const std::function<void()>& action, const std::string& part) {
    try {
      action();
      ADD_FAILURE() << "succeeded, though: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::failure);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  void expect_untouched() const {
    EXPECT_EQ(content(directory_ / "old"), "old content");
    EXPECT_EQ(files(), 1u);
  }

  std::filesystem::path directory_;
};

TEST_F(AtomicFiles, WritesAndReplaces) {
  base::write_atomically(directory_ / "old", "");
  EXPECT_EQ(content(directory_ / "old"), "");
  base::AtomicFile file(directory_ / "old");
  file.write("new ");
  EXPECT_EQ(content(directory_ / "old"), "");
  file.write("content");
  file.commit();
  EXPECT_EQ(content(directory_ / "old"), "new content");
  EXPECT_EQ(files(), 1u);
  expect_failure([&] { file.write("more"); }, "already committed");
  expect_failure([&] { file.commit(); }, "already committed");
}

TEST_F(AtomicFiles, ManyPiecesBeyondOneSystemBuffer) {
  const std::string piece(1 << 20, 'p');
  base::AtomicFile file(directory_ / "large");
  for (int i = 0; i < 16; ++i) file.write(piece);
  file.commit();
  EXPECT_EQ(std::filesystem::file_size(directory_ / "large"), std::uintmax_t{16} << 20);
}

TEST_F(AtomicFiles, WithoutCommitNothingHappens) {
  {
    base::AtomicFile file(directory_ / "old");
    file.write("half");
    EXPECT_EQ(files(), 2u);
  }
  expect_untouched();
}

TEST_F(AtomicFiles, WritersSideBySide) {
  base::AtomicFile first(directory_ / "old"), second(directory_ / "old");
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  EXPECT_EQ(content(directory_ / "old"), "first");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFiles, WhatAKilledProcessLeftGoesAndWhatIsBeingWrittenStays) {
  base::AtomicFile open(directory_ / "open");  // it has a name of its own
  open.write("new");
  for (const char* name : {".cautious-1-0.tmp", ".cautious-4000000-12.tmp"}) std::ofstream(directory_ / name) << "half a f";
  EXPECT_EQ(files(), 4u);
  base::write_atomically(directory_ / "old", "old content");
  EXPECT_EQ(files(), 2u);
  open.commit();
  EXPECT_EQ(content(directory_ / "open"), "new");
  EXPECT_EQ(files(), 2u);
}

TEST_F(AtomicFiles, RelativePathInTheCurrentDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  base::write_atomically("old", "relative");
  std::filesystem::current_path(before);
  EXPECT_EQ(content(directory_ / "old"), "relative");
}

TEST_F(AtomicFiles, NameAsLongAsTheFileSystemAllows) {
  base::write_atomically(directory_ / std::string(255, 'n'), "long");
  EXPECT_EQ(files(), 2u);
  expect_failure([&] { base::write_atomically(directory_ / std::string(256, 'n'), "long"); }, "File name too long");
  EXPECT_EQ(files(), 2u);
}

TEST_F(AtomicFiles, KeepsLinkAndMode) {
  ::chmod((directory_ / "old").c_str(), 0640);
  std::filesystem::create_symlink("old", directory_ / "link");
  base::write_atomically(directory_ / "link", "through the link");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
  EXPECT_EQ(content(directory_ / "old"), "through the link");
  EXPECT_EQ(std::filesystem::status(directory_ / "old").permissions(), std::filesystem::perms{0640});
  std::filesystem::create_symlink("nowhere", directory_ / "dangling");
  expect_failure([&] { base::write_atomically(directory_ / "dangling", "x"); },
                 "dangling: cannot write: a symbolic link that leads nowhere");
}

TEST_F(AtomicFiles, MissingDirectory) {
  expect_failure([&] { base::write_atomically(directory_ / "none" / "x", "x"); },
                 (directory_ / "none" / "x").string() + ": cannot create a file in " + (directory_ / "none").string() +
                     ": No such file or directory");
  expect_untouched();
}

TEST_F(AtomicFiles, OnlyRegularFilesAreReplaced) {
  std::filesystem::create_directory(directory_ / "sub");
  expect_failure([&] { base::write_atomically(directory_ / "sub", "x"); }, "sub: cannot write: is a directory");
  expect_failure([&] { base::write_atomically(directory_ / "sub/", "x"); }, "sub/: cannot write: the path names no file");
  std::filesystem::remove(directory_ / "sub");
  expect_failure([&] { base::write_atomically("/dev/full", "x"); }, "/dev/full: cannot write: is not a regular file");
  expect_failure([&] { base::write_atomically(directory_ / "old" / "x", "x"); }, "Not a directory");
  expect_failure([&] { base::write_atomically("", "x"); }, ": cannot write: the path names no file");
  expect_untouched();
}

TEST_F(AtomicFiles, ReadOnlyDirectory) {
  ::chmod(directory_.c_str(), 0555);
  const uid_t user = ::geteuid();  // root may write anywhere, so it steps down for a moment
  ASSERT_EQ(user == 0 ? ::seteuid(65534) : 0, 0);
  expect_failure([&] { base::write_atomically(directory_ / "old", "x"); }, "Permission denied");
  ASSERT_EQ(::seteuid(user), 0);
  ::chmod(directory_.c_str(), 0755);
  expect_untouched();
}

// A limit on the file size stands for a full disk: write() stores a part and then fails.
TEST_F(AtomicFiles, FullDiskKeepsTheOldFile) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string large(1'000'000, 'x');
  expect_failure([&] { base::write_atomically(directory_ / "old", large); }, "old: cannot write: File too large");
  const std::vector<TensorToWrite> tensors = {{"x", "U8", {1'000'000}, std::as_bytes(std::span(large))}};
  expect_failure([&] { write_safetensors(directory_ / "old", tensors, {}); }, "old: cannot write: File too large");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  expect_untouched();
}

TEST_F(AtomicFiles, RefusedTensorsLeaveTheOldFile) {
  EXPECT_THROW(write_safetensors(directory_ / "old", {{"x", "F32", {1}, {}}}, {}), Error);
  expect_untouched();
}

TEST_F(AtomicFiles, VanishedDirectoryBeforeCommit) {
  const auto sub = directory_ / "sub";
  std::filesystem::create_directory(sub);
  base::AtomicFile file(sub / "x");
  file.write("x");
  std::filesystem::remove_all(sub);
  expect_failure([&] { file.commit(); }, "No such file or directory");
  expect_untouched();
}

}  // namespace atomic_file_test
}  // namespace cautious::base
