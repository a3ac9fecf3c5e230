// A file that grows by whole records, so that others can follow it: what append() was given is there when it returns, or none
// of it.
#pragma once

#include <filesystem>
#include <string_view>

namespace cautious::base {

// Every failure is an Error(Fault::failure) with the path and the system's reason.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // made if it is not there
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace cautious::base
