// cautious launch: several ranks of one run on this machine, each a process of its own, as torchrun would start them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "cli/program.h"
#include "cli/verbs.h"

namespace cautious::cli {
namespace {

struct LaunchArguments {
  int ranks = 2;
  int port = 0;
};

// One that nobody has now.
int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool found = probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (probe >= 0) close(probe);
  if (!found) throw Error(Fault::failure, "cannot find a free port on 127.0.0.1; give one with --port");
  return ntohs(address.sin_port);
}

int code_of_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// The first rank that fails decides; what the others say follows from it. Signals reach every rank once.
int launch(const LaunchArguments& args, std::vector<std::string> command) {
  if (command.empty() || (command.front() != "train" && command.front() != "finetune")) {
    throw Error(Fault::usage, fmt::format("launch starts 'train' or 'finetune'{}; e.g. cautious launch -n 2 train --preset "
                                          "nano-300k --data.path=gcide --out runs/two",
                                          command.empty() ? "" : ", not '" + one_line(command.front()) + "'"));
  }
  if (args.ranks < 1) throw Error(Fault::usage, fmt::format("--ranks is {}; it must be at least 1", args.ranks));
  if (args.port < 0 || args.port > 65535) throw Error(Fault::usage, fmt::format("--port is {}; valid: 0 to 65535", args.port));
  command.insert(command.begin(), sibling_program("cautious-train").string());
  const Interruptible interruptible;
  const int port = args.port > 0 ? args.port : free_port();
  std::vector<std::unique_ptr<base::Process>> ranks;
  for (int rank = 0; rank < args.ranks; ++rank) {
    const std::vector<std::string> environment{fmt::format("RANK={}", rank),
                                               fmt::format("WORLD_SIZE={}", args.ranks),
                                               fmt::format("LOCAL_RANK={}", rank),
                                               fmt::format("LOCAL_WORLD_SIZE={}", args.ranks),
                                               "MASTER_ADDR=127.0.0.1",
                                               fmt::format("MASTER_PORT={}", port)};
    ranks.push_back(std::make_unique<base::Process>(command, environment, ""));
  }
  int code = 0;
  bool told = false;
  for (std::size_t left = ranks.size(); left > 0;) {
    for (std::unique_ptr<base::Process>& rank : ranks) {
      if (!rank) continue;
      const std::optional<int> status = rank->ended();
      if (!status) continue;
      if (code == 0) code = code_of_status(*status);
      rank.reset();
      --left;
    }
    if (interruptible.noted() != 0 && !told) {
      told = true;
      for (const std::unique_ptr<base::Process>& rank : ranks) {
        if (rank) rank->terminate();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return told && code != 0 ? 128 + interruptible.noted() : code;
}

}  // namespace

void add_launch(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<LaunchArguments>();
  CLI::App& verb = *app.add_subcommand("launch", "Train with several processes on this machine.");
  verb.footer(
      "  cautious launch -n 2 train --preset nano-1m --data.path=gcide --out runs/two\n"
      "  cautious launch -n 2 train --out runs/two --resume\n"
      "\n"
      "The run is the same as that of one process: the same files, and the same numbers up to the order of sums. On several\n"
      "machines, torchrun or srun starts 'cautious train' instead (docs/scale.md).");
  verb.add_option("-n,--ranks", args->ranks, "Processes; each has its part of every batch and of the optimizer's state")
      ->capture_default_str();
  verb.add_option("--port", args->port, "Where they meet on 127.0.0.1; 0: a free one");
  verb.prefix_command();
  verb.callback([args, &verb, &chosen] { chosen = [args, &verb] { return launch(*args, verb.remaining()); }; });
}

}  // namespace cautious::cli
