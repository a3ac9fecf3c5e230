// A run directory: config.toml, metrics.jsonl, metrics.csv, tb/, log.txt, checkpoints/, summary.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"

namespace cautious::run {

class RunDirectory {
 public:
  // A new run: makes the directory and its parents and writes config.toml. A directory that is not empty is an
  // Error(Fault::usage) that names what is there and the commands to continue it (if it is a run) or to choose another; a place
  // that cannot be written is an Error(Fault::failure).
  static RunDirectory create(const std::filesystem::path& path, std::string_view config);
  // What create() says of a directory that is not empty; nothing is made.
  static void check_new(const std::filesystem::path& path);
  // A run to continue; a directory without config.toml is an Error(Fault::usage).
  static RunDirectory open(const std::filesystem::path& path);
  // Both hold the directory's lock until destroyed (base/files.h).

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  // An Error(Fault::failure) if the directory was moved or removed while the run worked.
  void check_there() const;
  // Appends the line to log.txt, with the time in front.
  void log(std::string_view line) const;

 private:
  RunDirectory(std::filesystem::path path, base::DirectoryLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  base::DirectoryLock lock_;
};

}  // namespace cautious::run
