// cautious train: one run from its configuration, or the rest of one.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/checks.h"
#include "cli/program.h"
#include "cli/train/arguments.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "ranks/board.h"
#include "ranks/place.h"
#include "run/checkpoint.h"
#include "run/directory.h"
#include "run/scale.h"
#include "train/data_plan.h"
#include "train/run.h"

namespace cautious::cli {
namespace {

constexpr int kDiverged = 4;

void say(const std::string& message) { base::tell(base::error_line(message)); }

// The exit code; of several ranks the first says what came of it.
int report(const TrainArguments& args, const run::RunConfig& config, const train::RunResult& result, const ranks::World& world,
           int signal) {
  const std::vector<run::CheckpointInfo> saved = run::list_checkpoints(std::filesystem::path(args.out) / "checkpoints");
  switch (result.outcome) {
    case train::Outcome::stopped:
      if (world.first()) {
        say(fmt::format("{}; {}; to continue{}: {}",
                        signal != 0         ? "interrupted"
                        : world.ranks() > 1 ? "another rank was interrupted"
                                            : "cannot write to standard output",
                        saved.empty() ? "no step was completed" : fmt::format("step {} is saved", result.state.step),
                        world.ranks() > 1 ? ", with any number of ranks" : "", train::resume_command(args.out)));
      }
      return signal != 0 ? 128 + signal : 1;
    case train::Outcome::diverged:
      if (world.first()) {
        say(fmt::format(
            "diverged {}; {}; try a smaller optimizer.lr or a longer schedule.warmup_steps", result.reason,
            saved.empty() ? "there is no checkpoint yet" : "the last good checkpoint is " + saved.back().path.string()));
      }
      return kDiverged;
    case train::Outcome::done:
      break;
  }
  if (!args.quiet) {
    const std::vector<double>& last = result.state.last.numbers;
    const char* const line = config.task == run::TaskKind::image
                                 ? "validation loss {:.4f}, top-1 error {:.2f}%, top-5 error {:.2f}%; {}\n"
                                 : "validation loss {:.4f}, {:.4f} bits per byte, accuracy {:.4f}; {}\n";
    base::tell(fmt::format(fmt::runtime(line), last[0], last[1], last[2], base::printable(args.out)));
    for (const train::Score& score : result.state.scores) {
      base::tell(fmt::format("{} {:.4f} +/- {:.4f} (standard error)\n", score.name, score.value, score.error));
    }
  }
  return 0;
}

train::RunRequest request_of(const TrainArguments& args, const run::RunConfig& config) {
  train::RunRequest request{config, args.out, args.resume};
  for (const Setting& change : changes_in(args)) request.changed.push_back(change.first);
  return request;
}

int train_here(const TrainArguments& args, const run::RunConfig& config, ranks::World& world) {
  const Interruptible interruptible;
  base::LiveLine live(args.quiet ? base::LiveLine::Style::quiet : base::LiveLine::Style::automatic);
  const auto say = [&](const std::string& line) {
    if (!args.quiet) live.say(line);
  };
  bool unread = false;  // whoever read the rows is gone
  const auto stop = [&] { return interruptible.noted() != 0 || unread; };
  train::RunWatch watch{live, [&] { interruptible.check(); }, stop, {}, say};
  if (args.json) {
    watch.row = [&](const run::MetricsRow& row) { unread = !base::try_print(to_json(row) + "\n") || unread; };
  }
  const train::RunRequest request = request_of(args, config);
  const train::RunResult result = train::run_training(request, watch, world, [&](const train::RunPlan& plan) {
    if (args.quiet) return;  // the banner measures the machine
    for (const std::string& line : banner(config, &plan)) live.say(line);
  });
  return report(args, config, result, world, interruptible.noted());
}

// What is left when a rank has given up: threads that wait for others who may never answer. So nothing is tidied up.
[[noreturn]] void leave(const TrainArguments& args, const Error& error, const ranks::Place& place, bool began) {
  std::string message = error.what();
  const std::vector<run::CheckpointInfo> saved = run::list_checkpoints(std::filesystem::path(args.out) / "checkpoints");
  if (began && !saved.empty() && error.fault() == Fault::failure) {
    message += fmt::format("; step {} is saved; to continue, with any number of ranks: {}", saved.back().step,
                           train::resume_command(args.out));
  }
  // What is wrong with the command line or the data, all ranks of one machine find alike.
  const bool known = place.rank > 0 && place.local_ranks == place.ranks && error.fault() != Fault::failure;
  if (!known) say(message);
  std::fflush(nullptr);
  std::_Exit(code_of(error.fault()));
}

// Of an error before they have met.
void tell_others(const ranks::Place& place, const std::string& why) {
  try {
    ranks::Board(place, std::chrono::seconds(run::RunConfig().train.timeout)).fail(why);
  } catch (const Error&) {  // they know something worse
  }
}

// The same in every rank; those after the first are silent unless something is wrong.
int train(TrainArguments args, const ranks::Place& place, const std::function<run::RunConfig()>& config_of_rank) {
  if (place.ranks == 1) {
    ranks::World alone;
    return train_here(args, config_of_rank(), alone);
  }
  std::optional<ranks::World> world;
  args.quiet = args.quiet || place.rank > 0;
  args.json = args.json && place.rank == 0;
  try {
    std::optional<run::RunConfig> config;
    try {
      config = config_of_rank();
    } catch (const Error& error) {
      tell_others(place, error.what());
      throw;
    }
    world.emplace(place, std::chrono::seconds(config->train.timeout));
    return train_here(args, *config, *world);
  } catch (const Interrupted&) {  // before the first step
    if (world) world->fail("it was interrupted");
    throw;
  } catch (const Error& error) {
    if (world) world->fail(error.what());
    leave(args, error, place, world && world->first());
  } catch (const std::exception& error) {
    const Error one(Fault::failure, one_line(error.what()));
    if (world) world->fail(one.what());
    leave(args, one, place, world && world->first());
  }
}

// What the run would refuse before its first step, as far as that costs little; else what it is going to be.
std::vector<std::string> dry_run(const TrainArguments& args, const run::RunConfig& config, const ranks::Place& place) {
  train::check_ranks(config, place.ranks);
  train::check_request(request_of(args, config));
  std::optional<train::RunPlan> plan;
  if (!config.data.path.empty()) {
    (void)look_at_data(config, [&](const run::RunConfig& looked_at, const train::Progress& progress) {
      plan = train::plan_of_data({looked_at, args.out, args.resume}, progress);
    });
  }
  if (!args.resume && !args.out.empty()) {
    check_out(args.out);
    run::RunDirectory::check_new(args.out);
  }
  return banner(config, plan ? &*plan : nullptr);
}

int run(TrainArguments& args, const CLI::App& verb) {
  args.overrides = settings_in(verb);
  if (verb.get_option_no_throw("--init") != nullptr && verb.count("--init") > 0 && args.init.empty()) {
    throw Error(Fault::usage, "--init is empty; give a run, a model's folder, or a known model");
  }
  if (!args.init.empty()) {
    if (!args.preset.empty()) throw Error(Fault::usage, "--init has a shape of its own; remove --preset");
    args.overrides.emplace_back("model.from", args.init);
  }
  if (args.finetune) {
    const auto given = [&](const char* key) {
      return std::ranges::find(args.overrides, key, &Setting::first) != args.overrides.end();
    };
    if (args.configs.empty() && !given("model.from"))
      throw Error(Fault::usage, "MODEL is missing; give a run, a folder, or 'stories15m'");
    if (args.configs.empty() && args.data.empty() && !given("data.path")) {
      throw Error(Fault::usage, "--data is missing; give files of conversations, or 'definitions'");
    }
    args.overrides.emplace_back("task", "instruct");
  }
  if (!args.data.empty()) args.overrides.emplace_back("data.path", fmt::format("{}", fmt::join(args.data, ",")));
  if (args.resume && args.out.empty()) throw Error(Fault::usage, "--resume needs --out, the directory of the run to continue");
  const bool world = verb.count("--world") > 0;
  if (!args.dry_run && (world || !args.hardware.empty())) {
    throw Error(Fault::usage, "--world and --hardware are for --dry-run; a run has the ranks that it is started with");
  }
  const ranks::Place place = ranks::find_place();
  if (args.print_config || args.dry_run) {
    if (place.rank > 0) return 0;
    if (args.print_config) {
      const run::ReadConfig read = read_arguments(args);
      base::print(to_toml(read.config, read.set));
      return 0;
    }
    const run::RunConfig config = config_of(args, place);
    check_task(config);
    const bool elsewhere = world || !args.hardware.empty();
    const std::vector<std::string> lines =
        elsewhere ? on_paper(config, world ? args.world : 1, args.hardware) : dry_run(args, config, place);
    for (const std::string& line : lines) base::print(line + "\n");
    return 0;
  }
  return train(args, place, [&] {
    if (!args.resume) check_out(args.out);
    return config_to_train(args, place);
  });
}

}  // namespace

void add_run_options(CLI::App& verb, TrainArguments& args) {
  verb.add_option("--config", args.configs, "Configuration file, TOML; given several times, later ones win")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  verb.add_option("--out", args.out, "Directory of the run; created, never overwritten")->type_name("DIR");
  verb.add_flag("--resume", args.resume, "Continue the run in --out as if it had never stopped");
  verb.add_option("--change", args.changes,
                  fmt::format("With --resume: continue with other values, which log.txt records; valid: {}",
                              base::join(train::changeable_keys())))
      ->delimiter(',')
      ->type_name("KEY=VALUE,...");
  verb.add_flag("--dry-run", args.dry_run, "Print sizes, operations, memory and time; nothing is allocated or written");
  verb.add_option("--world", args.world, "With --dry-run: what a step costs with this many ranks")->type_name("RANKS");
  verb.add_option("--hardware", args.hardware,
                  fmt::format("With --dry-run: hardware of each rank; valid: {}; with other numbers as in\n"
                              "'a100-80g utilization=0.5'",
                              base::join(run::hardware_names())))
      ->type_name("NAME");
  verb.add_flag("--print-config", args.print_config, "Print the resolved configuration and exit");
  verb.add_flag("--quiet", args.quiet, "Print errors only");
  verb.add_flag("--json", args.json, "Print every row of the metrics as a JSON object to standard output");
  verb.allow_extras();
}

void add_finetune(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<TrainArguments>();
  CLI::App& verb = *app.add_subcommand("finetune", kFinetuneLine);
  verb.footer(
      "  cautious finetune stories15m --data definitions --optimizer.decay=cautious --out runs/webster\n"
      "  cautious finetune TinyLlama/ --data alpaca.json --lora.rank=16 --lora.targets=q_proj,v_proj --out runs/alpaca\n"
      "  cautious finetune my-model/ --data chats.jsonl --lora.rank=0 --optimizer.lr=1e-5 --out runs/full\n"
      "  cautious finetune --out runs/webster --resume\n"
      "\n"
      "Files: Alpaca's JSON or JSONL (instruction, input, output), JSONL of messages (role, content), or plain text. Answers\n"
      "are learned, questions only read. Adapters are saved in PEFT's layout; cautious export --merge makes one model of "
      "both.\n"
      "Every key of the configuration is an option: --section.key=value; --print-config lists them.");
  verb.add_option("MODEL", args->init, kModelHelp)->type_name("");
  verb.add_option("--data", args->data, "Conversations, or the name of a known set of instructions")
      ->expected(1, 1000)
      ->type_name("FILE...");
  add_run_options(verb, *args);
  verb.callback([args, &verb, &chosen] {
    chosen = [args, &verb] {
      args->finetune = !args->resume;
      return run(*args, verb);
    };
  });
}

void add_train(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<TrainArguments>();
  CLI::App& verb = *app.add_subcommand("train", kTrainLine);
  verb.footer(
      "  cautious train --preset nano-300k --data.path=gcide --optimizer.decay=cautious --out runs/cwd\n"
      "  cautious train --preset resnet-20 --data.path=fashion-mnist --augment.flip=0.5 --out runs/fashion\n"
      "  cautious train --preset nano-1m --data.path=gcide --print-config > run.toml\n"
      "  cautious train --config run.toml --optimizer.name=muon --train.steps=2000 --out runs/muon\n"
      "  cautious train --init stories15m --data.path=tales.txt --train.steps=500 --optimizer.lr=1e-4 --out runs/tales\n"
      "  cautious train --out runs/cwd --resume\n"
      "  cautious train --out runs/cwd --resume --change train.steps=8000,train.threads=4\n"
      "  cautious train --preset gemma-2.3b --train.batch_size=512 --dry-run --world 64 --hardware a100-80g\n"
      "\n"
      "Every key of the configuration is an option: --section.key=value. --print-config lists them all with their values,\n"
      "meanings and valid ranges, those that nobody has set as comments. The command line overrides the files, a later file\n"
      "an earlier one, and a file the preset. Another --preset or optimizer.name replaces the file's, with its keys.");
  verb.add_option("--preset", args->preset,
                  fmt::format("Model of text or, the last {}, of images; valid: {}, {}", model::image_preset_names().size(),
                              base::join(model::preset_names()), base::join(model::image_preset_names())))
      ->type_name("NAME");
  verb.add_option("--init", args->init,
                  "Start from the weights, the shape and the tokenizer of a run, a model's folder (Hugging Face), a file of\n"
                  "llama2.c, or a known model; the same as --model.from")
      ->type_name("MODEL");
  add_run_options(verb, *args);
  verb.callback([args, &verb, &chosen] { chosen = [args, &verb] { return run(*args, verb); }; });
}

}  // namespace cautious::cli
