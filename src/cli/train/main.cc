// The program `cautious-train`: the verbs of `cautious` that need libtorch.
#include <malloc.h>

#include <cstdlib>

#include <CLI/CLI.hpp>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <torch/version.h>

#include "cli/program.h"
#include "cli/verbs.h"

namespace {

// Freed activations stay with the process: giving them back to the kernel and faulting them in again costs up to a tenth of a
// step.
void keep_memory() {
  constexpr int kMost = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kMost);
  mallopt(M_TRIM_THRESHOLD, kMost);
  mallopt(M_TOP_PAD, 64 << 20);
}

// The tile instructions (AMX) of the oneDNN in libtorch 1.13 end a program in bf16 by SIGILL on processors that have them. The
// user's own limit stays.
void avoid_tiles() {
  if (TORCH_VERSION_MAJOR < 2) setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cautious::cli;
  keep_memory();
  avoid_tiles();
  c10::SetStackTraceFetcher([] { return std::string(); });  // its errors are one line, like all others
  at::globalContext().setFlushDenormal(true);               // before the first parallel region: its threads inherit it
  constexpr const char* kExamples =
      "  cautious train --preset gemma-2.3b --dry-run\n"
      "  cautious bench train --json";
  return run_program(argc, argv, kExamples, [](CLI::App& app, Verb& chosen) {
    add_train(app, chosen);
    add_finetune(app, chosen);
    add_sample(app, chosen);
    add_eval(app, chosen);
    add_predict(app, chosen);
    CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
    bench->require_subcommand(1);
    add_bench_train(*bench, chosen);
    add_bench_decode(*bench, chosen);
    add_bench_image(*bench, chosen);
    add_bench_peers(*bench, chosen);
    add_bench_eval(*bench, chosen);
  });
}
