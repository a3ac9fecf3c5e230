// The verbs of the programs: each adds its subcommand and, when the command line names it, sets what to run. A verb throws
// Error for whatever goes wrong; run_program() makes it one line and an exit code.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace cautious::cli {

using Verb = std::function<int()>;

// Those of `cautious`.
void add_launch(CLI::App& app, Verb& chosen);
void add_replay(CLI::App& app, Verb& chosen);
CLI::App& add_bench(CLI::App& app, Verb& chosen);
void add_bench_scale(CLI::App& bench, Verb& chosen);
void add_tokenize(CLI::App& app, Verb& chosen);
void add_data(CLI::App& app, Verb& chosen);
void add_export(CLI::App& app, Verb& chosen);
void add_study(CLI::App& app, Verb& chosen);
void add_compare(CLI::App& app, Verb& chosen);
void add_reproduce(CLI::App& app, Verb& chosen);
void add_runs(CLI::App& app, Verb& chosen);
void add_report(CLI::App& app, Verb& chosen);
void add_watch(CLI::App& app, Verb& chosen);

// Those of cautious-train, which loads libtorch.
void add_train(CLI::App& app, Verb& chosen);
void add_finetune(CLI::App& app, Verb& chosen);
void add_sample(CLI::App& app, Verb& chosen);
void add_eval(CLI::App& app, Verb& chosen);
void add_predict(CLI::App& app, Verb& chosen);
void add_bench_train(CLI::App& bench, Verb& chosen);
void add_bench_image(CLI::App& bench, Verb& chosen);
void add_bench_decode(CLI::App& bench, Verb& chosen);
void add_bench_peers(CLI::App& bench, Verb& chosen);
void add_bench_eval(CLI::App& bench, Verb& chosen);

// What every verb takes that takes a language model (run::find_checkpoint()).
inline constexpr const char* kModelHelp =
    "A run directory (its newest checkpoint), a checkpoint, a folder of Hugging Face or\n"
    "PEFT, a .bin of llama2.c, a .gguf, or the name of a known model";

// Verbs of other programs, seen from `cautious`: one line each; help and options are the other program's.
inline constexpr const char* kTrainLine = "Train a language model on text or a classifier on images.";
inline constexpr const char* kFinetuneLine = "Teach a language model by conversations, with adapters (LoRA) or as a whole.";
inline constexpr const char* kSampleLine = "Continue a text with a trained model, or talk to it.";
inline constexpr const char* kEvalLine =
    "Measure a trained model on a text, on benchmarks or on images: loss, bits per byte, accuracy.";
inline constexpr const char* kPredictLine = "Say what a trained classifier sees in images.";
inline constexpr const char* kBenchTrainLine =
    "Measure training speed next to plain libtorch and the machine's own matrix product.";
inline constexpr const char* kBenchDecodeLine = "Measure sampling speed next to how fast the machine reads the weights.";
inline constexpr const char* kBenchImageLine =
    "Measure training speed of image classifiers next to plain libtorch, and how fast their images are prepared.";
inline constexpr const char* kBenchPeersLine =
    "Time AdamW with cautious weight decay next to libtorch's AdamW, ATen operations and plain loops.";
inline constexpr const char* kBenchEvalLine =
    "Measure how fast benchmarks are scored next to a plain forward pass over each whole text.";
inline constexpr const char* kLabLine = "Check the paper's theory numerically: claims with numbers, figures, one page.";

// "cautious-train" or "cautious-lab": next to this program, as built, or where it is installed; otherwise an Error that says
// how to get it.
std::filesystem::path sibling_program(const std::string& name);

// Adds a verb that replaces this process by the other program, with the same arguments.
void add_forwarded(CLI::App& parent, const char* verb_name, const char* line, const char* program, Verb& chosen, char** argv);

}  // namespace cautious::cli
