#include "run/log_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/toml.h"

namespace cautious::run {
namespace {

nlohmann::ordered_json json_of(const base::TomlValue& value) {
  using enum base::TomlValue::Kind;
  nlohmann::ordered_json json;
  switch (value.kind) {
    case integer:
      return value.integer;
    case number:
      return value.number;
    case boolean:
      return value.boolean;
    case array:
      json = nlohmann::ordered_json::array();
      for (const base::TomlValue& item : value.items) json.push_back(json_of(item));
      return json;
    case table:
      json = nlohmann::ordered_json::object();
      for (const base::TomlEntry& entry : value.entries) json[entry.key] = json_of(entry.value);
      return json;
    default:
      return value.text;
  }
}

}  // namespace

LogCommand::LogCommand(const RunConfig& config, const std::filesystem::path& run, std::int64_t step,
                       std::function<void(const std::string&)> say)
    : log_(run / kLog),
      say_(std::move(say)),
      process_({"/bin/sh", "-c", config.log.command}, {"CAUTIOUS_RUN=" + absolute(run).string()}, log_, input_) {
  std::signal(SIGPIPE, SIG_IGN);  // it may end before the run does
  ::fcntl(input_, F_SETFL, O_NONBLOCK);
  const nlohmann::ordered_json start{{"run", absolute(run).string()},
                                     {"step", step},
                                     {"steps", steps_of(config)},
                                     {"config", json_of(base::parse_toml(to_toml(config), "config.toml"))}};
  send(nlohmann::ordered_json{{"start", start}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

LogCommand::~LogCommand() { close(); }

void LogCommand::close() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

void LogCommand::give_up(const std::string& why) {
  const std::string said = base::last_message_in(log_);
  say_(fmt::format("log.command {}{}; the run does not need it, see {}", why, said.empty() ? "" : ": " + said, log_.string()));
  close();
}

void LogCommand::push() {
  while (input_ >= 0 && !waiting_.empty()) {
    const ssize_t count = ::write(input_, waiting_.data(), waiting_.size());
    if (count > 0) {
      waiting_.erase(0, static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      close();  // it does not want any more
    }
  }
}

void LogCommand::look() {
  if (ended_) return;
  const std::optional<int> status = process_.ended();
  if (!status) return;
  ended_ = true;
  if (WIFSIGNALED(*status)) return give_up(fmt::format("was ended by signal {}", WTERMSIG(*status)));
  if (*status != 0) return give_up(fmt::format("ended with code {}", WEXITSTATUS(*status)));
  close();
}

void LogCommand::send(std::string_view line) {
  look();
  push();
  if (input_ < 0) return;
  const bool full = waiting_.size() + line.size() > kMostBytes;
  if (full && !behind_) {
    say_(fmt::format("log.command is {} MiB behind; lines are left out until it has read some", kMostBytes >> 20));
  }
  behind_ = full;
  if (full) return;
  waiting_.append(line).push_back('\n');
  push();
}

void LogCommand::finish(std::string_view summary, bool stopped) {
  send(fmt::format("{{\"end\":{}}}", nlohmann::ordered_json::parse(summary).dump()));
  const std::chrono::seconds patience(stopped ? 10 : 60);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!ended_ && std::chrono::steady_clock::now() < until) {
    push();
    if (waiting_.empty()) close();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    look();
  }
  if (!ended_) give_up(fmt::format("did not end within {} seconds and is stopped", patience.count()));
}

}  // namespace cautious::run
