// The program `cautious`: one verb per file, data on stdout, messages on stderr, every error one line. Verbs that need libtorch
// live in cautious-train and the laboratory in cautious-lab, which this one starts in its place: loading libtorch takes a
// second.
#include <csignal>

#include "cli/program.h"
#include "cli/verbs.h"

namespace {

// A closed terminal that is to be ignored, as under nohup, is blocked: that lasts in the programs started from here, whatever
// handlers the libraries of those install before their main().
void keep_ignoring_hangup() {
  struct sigaction now {};
  if (sigaction(SIGHUP, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) return;
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigprocmask(SIG_BLOCK, &hangup, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cautious::cli;
  keep_ignoring_hangup();
  constexpr const char* kExamples =
      "  cautious data get gcide\n"
      "  cautious train --preset nano-300k --data.path=gcide --optimizer.decay=cautious --out runs/cwd\n"
      "  cautious compare --optimizer adamw --data corpus.txt\n"
      "  cautious reproduce --list\n"
      "  cautious lab toy --out toy\n"
      "  cautious train --help";
  return run_program(argc, argv, kExamples, [argv](CLI::App& app, Verb& chosen) {
    add_forwarded(app, "train", kTrainLine, "cautious-train", chosen, argv);
    add_launch(app, chosen);
    add_forwarded(app, "finetune", kFinetuneLine, "cautious-train", chosen, argv);
    add_forwarded(app, "sample", kSampleLine, "cautious-train", chosen, argv);
    add_forwarded(app, "eval", kEvalLine, "cautious-train", chosen, argv);
    add_forwarded(app, "predict", kPredictLine, "cautious-train", chosen, argv);
    add_export(app, chosen);
    add_data(app, chosen);
    add_tokenize(app, chosen);
    add_compare(app, chosen);
    add_study(app, chosen);
    add_reproduce(app, chosen);
    add_runs(app, chosen);
    add_report(app, chosen);
    add_watch(app, chosen);
    add_replay(app, chosen);
    add_forwarded(app, "lab", kLabLine, "cautious-lab", chosen, argv);
    CLI::App& bench = add_bench(app, chosen);
    add_forwarded(bench, "train", kBenchTrainLine, "cautious-train", chosen, argv);
    add_bench_scale(bench, chosen);
    add_forwarded(bench, "decode", kBenchDecodeLine, "cautious-train", chosen, argv);
    add_forwarded(bench, "image", kBenchImageLine, "cautious-train", chosen, argv);
    add_forwarded(bench, "peers", kBenchPeersLine, "cautious-train", chosen, argv);
    add_forwarded(bench, "eval", kBenchEvalLine, "cautious-train", chosen, argv);
  });
}
