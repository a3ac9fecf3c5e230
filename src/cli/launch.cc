// cautious launch: several ranks of one run on this machine, each a process of its own, as torchrun would start them.
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "cli/local_ranks.h"
#include "cli/program.h"
#include "cli/verbs.h"

namespace cautious::cli {
namespace {

struct LaunchArguments {
  int ranks = 2;
  int port = 0;
};

// The first rank that fails decides; what the others say follows from it. Signals reach every rank once.
int launch(const LaunchArguments& args, std::vector<std::string> command) {
  if (command.empty() || (command.front() != "train" && command.front() != "finetune")) {
    throw Error(Fault::usage, fmt::format("launch starts 'train' or 'finetune'{}; e.g. cautious launch -n 2 train --preset "
                                          "nano-300k --data.path=gcide --out runs/two",
                                          command.empty() ? "" : ", not '" + one_line(command.front()) + "'"));
  }
  for (const std::string& argument : command) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name != "-n" && name != "--ranks" && name != "--port") continue;
    throw Error(Fault::usage, fmt::format("{0} comes before '{1}', as in: cautious launch {0} {2} {1} ...", name,
                                          command.front(), name == "--port" ? 29500 : 2));
  }
  if (args.ranks < 1) throw Error(Fault::usage, fmt::format("--ranks is {}; it must be at least 1", args.ranks));
  if (args.port < 0 || args.port > 65535) throw Error(Fault::usage, fmt::format("--port is {}; valid: 0 to 65535", args.port));
  command.insert(command.begin(), sibling_program("cautious-train").string());
  const Interruptible interruptible;
  const int port = args.port > 0 ? args.port : free_port();
  std::vector<std::unique_ptr<base::Process>> ranks;
  for (int rank = 0; rank < args.ranks; ++rank) {
    ranks.push_back(std::make_unique<base::Process>(command, environment_of_rank(rank, args.ranks, port), ""));
  }
  constexpr auto kGrace = std::chrono::seconds(15);  // for the others to say what they know
  using Clock = std::chrono::steady_clock;
  Clock::time_point failed = Clock::time_point::max() - kGrace;
  int code = 0;
  bool told = false;
  for (std::size_t left = ranks.size(); left > 0;) {
    for (std::unique_ptr<base::Process>& rank : ranks) {
      if (!rank) continue;
      const std::optional<int> status = rank->ended();
      if (!status) continue;
      if (code == 0 && (code = code_of_status(*status)) != 0) failed = Clock::now();
      rank.reset();
      --left;
    }
    if ((interruptible.noted() != 0 || Clock::now() > failed + kGrace) && !told) {
      told = true;
      for (const std::unique_ptr<base::Process>& rank : ranks) {
        if (rank) rank->terminate();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return interruptible.noted() != 0 && code != 0 ? 128 + interruptible.noted() : code;
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
  verb.add_option("-n,--ranks", args->ranks,
                  "Number of processes; each has its share of every batch and of the optimizer's state")
      ->type_name("NUMBER")
      ->capture_default_str();
  verb.add_option("--port", args->port, "Port on 127.0.0.1 where they meet; 0 picks a free one (default: 0)")
      ->type_name("NUMBER");
  verb.prefix_command();
  verb.callback([args, &verb, &chosen] { chosen = [args, &verb] { return launch(*args, verb.remaining()); }; });
}

}  // namespace cautious::cli
