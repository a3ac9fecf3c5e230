// A program of the user's that receives the metrics of a run while they are made (log.command): lines of JSON on its standard
// input. It cannot hold up or end the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "run/config.h"

namespace cautious::run {

class LogCommand {
 public:
  static constexpr const char* kLog = "log_command.txt";  // in the run's directory: what it says
  // Lines that it has not read yet are kept up to here, then left out.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  // Started by a shell. The first line is {"start":{"run":...,"step":...,"steps":...,"config":{...}}}. `say` is told what goes
  // wrong with it.
  LogCommand(const RunConfig& config, const std::filesystem::path& run, std::int64_t step,
             std::function<void(const std::string&)> say);
  ~LogCommand();
  LogCommand(const LogCommand&) = delete;
  LogCommand& operator=(const LogCommand&) = delete;

  // A line without its end; what the program does not read at once waits.
  void send(std::string_view line);
  // {"end":summary}, and nothing more. It has a minute to read the rest and to end; ten seconds if the run was stopped.
  void finish(std::string_view summary, bool stopped);

 private:
  void push();
  void look();  // whether it still runs
  void close();
  void give_up(const std::string& why);

  std::filesystem::path log_;
  std::function<void(const std::string&)> say_;
  std::string waiting_;
  int input_ = -1;  // the end that we write to; -1: closed
  base::Process process_;
  bool behind_ = false, ended_ = false;
};

}  // namespace cautious::run
