// Everything that decides a training run, as plain data: sections of a TOML file, overridden by --section.key=value.
//   command line > later file > earlier file > preset > default.  An unknown key is an Error with a suggestion.
// The task follows from model.preset; `task` in a file is for the reader, and for a file without a preset.
// model.preset, optimizer.name and decay come before the keys that start from them, whatever their order. A higher layer that
// names another model or optimizer starts it anew: what lower layers say of the one that it replaces falls away, with a note.
// What nobody sets follows from the rest: the learning rate from optimizer and model (run/usual.h), the vocabulary from the
// tokenizer. A key that its layer's own rule does not have is an Error.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/optimizer.h>
#include <cautious/recipe.h>
#include <cautious/schedule.h>

#include "data/images/augment.h"
#include "data/images/image_set.h"
#include "model/config.h"
#include "model/lora.h"
#include "model/vision/config.h"
#include "run/usual.h"

namespace cautious::run {

// What is trained: a language model on text or on conversations, or a classifier of images; or, external, whatever a program
// of the user's trains, of which only the optimizer, the seed and the number it reports are known here.
enum class TaskKind { text, image, instruct, external };
constexpr auto names_of(TaskKind) { return std::array<std::string_view, 4>{"text", "image", "instruct", "external"}; }

// f32; mixed: weights in f32, matrix products in bf16; bf16: weights in bf16, with the other half of their f32 beside them for
// the optimizer, or, stochastic, rounded at random.
enum class Precision { f32, mixed, bf16, bf16_stochastic };
constexpr auto names_of(Precision) { return std::array<std::string_view, 4>{"f32", "mixed", "bf16", "bf16-stochastic"}; }

// What each member means is said where it becomes a key: in config_table.cc, or in the fields() of its type.
struct RunConfig {
  TaskKind task = TaskKind::text;
  struct Model {
    std::string preset = "nano-300k";                                 // where the other keys of the section start
    model::ModelConfig shape = cautious::model::preset("nano-300k");  // of text
    model::ImageModel image;
    bool recompute = false;  // text
    std::string from;        // text; what the weights and, unless set, the shape and the tokenizer are of; empty: fresh ones
  } model;
  struct Data {
    std::vector<std::string> path;  // required to train
    std::vector<double> weights;    // text
    std::vector<std::string> val_path;
    double val_fraction = 0.05;
    std::int64_t train_tokens = 0;    // text
    std::string field = "text";       // text
    std::string tokenizer = "bytes";  // text; or a path (data/tokenizer/tokenizer.h)
    std::int64_t train_images = 0;    // images, as are the next two
    std::int64_t workers = 1;
    std::int64_t most_bad = 10;
    std::string cache;
    std::int64_t epoch_units = 0;  // not a key: how many images or tokens train.epochs counts, where it decides
  } data;
  model::LoraConfig lora;  // of language models
  data::Augment augment;   // images
  struct Optimizer {
    std::string name = "adamw";
    Recipe recipe = usual_recipe("adamw");  // all its fields are keys of the section
    double lr = usual_lr("adamw");
    Options options{.grad_clip = 1};  // of which moments and the two clips are keys
    bool decay_vectors = false;
    // Directory of a reference run with log.decay_trace whose decay is repeated tensor by tensor and step by step;
    // empty: none.
    std::string density_from;  // decay is random
    std::string budget_from;   // decay is decoupled, coupling plain
    // [optimizer.rest]: embedding, output and vectors where `name` works on matrices alone (muon, lion-k with k = nuclear).
    // Unless set, its decay and weight_decay are those above.
    std::string rest_name = "adamw";
    Recipe rest = usual_recipe("adamw");
    double rest_lr_multiplier = 1;
  } optimizer;
  Schedule schedule{
      .kind = ScheduleKind::cosine, .warmup_ratio = kUsualWarmup, .final = 0.1};  // without lr and steps: schedule_of()
  DecaySchedule decay_schedule;                                                   // without steps
  struct Train {
    std::int64_t steps = 0;  // exactly one of these five is positive; setting one unsets the others
    std::int64_t tokens = 0;
    double tokens_per_param = 20;
    std::int64_t images = 0;
    double epochs = 0;
    std::int64_t batch_size = 16;
    std::int64_t grad_accum = 1;  // divides batch_size
    std::int64_t seq_len = 0;     // text
    double ema = 0;
    std::uint64_t seed = 0;
    int threads = 0;
    std::int64_t timeout = 300;  // seconds
    std::string device = "auto";
    Precision precision = Precision::f32;
  } train;
  struct Eval {
    std::int64_t every = 200;
    std::int64_t tokens = 131072;  // text
    std::int64_t images = 0;
    std::vector<std::string> tasks;  // of language models, as are the next three: benchmarks that the trained model is asked
    std::string data;
    std::int64_t shots = 0, limit = 0;
  } eval;
  struct Checkpoint {
    std::int64_t every = 500;
    double minutes = 0;
    std::int64_t keep = 2;
    bool best = false;
  } checkpoint;
  struct Log {
    std::int64_t every = 10;
    bool tensors = false;
    bool decay_trace = false;
    bool tensorboard = true;
    std::string command;
    std::string prompt;  // of language models, as is the next
    std::int64_t prompt_tokens = 64;
  } log;
  struct Objective {  // external
    std::string name = "loss";
    std::string unit;
    double target = 0.005;
  } objective;
};

// What a run of the task starts from.
RunConfig defaults_of(TaskKind task);

struct ConfigSource {
  std::vector<std::filesystem::path> files;                    // later ones win
  std::string preset;                                          // of --preset; empty: the files' or the default
  std::vector<std::pair<std::string, std::string>> overrides;  // "optimizer.lr", "1e-3", in order; "data.path", "a,b"
  bool typed = true;  // the overrides are flags of a command line; otherwise Errors name them by their keys alone
};

// The whole of it, checked: every key, type, range, and what must go together. Wrong is one line of Error(Fault::usage) that
// names the file and line or the flag, the key, the value and what is valid.
RunConfig read_config(const ConfigSource& source);

using KeyNames = std::vector<std::string>;  // "optimizer.lr"
struct ReadConfig {
  RunConfig config;
  KeyNames set;                    // the keys that a layer decides
  std::vector<std::string> notes;  // what fell away, a line each
};
// The same, with what the layers said.
ReadConfig read_layers(const ConfigSource& source);

// Resolved and commented TOML, every key; read_config() of it gives the same configuration.
std::string to_toml(const RunConfig& config);
// With all keys but those as comments: what is left open stays open where it is read.
std::string to_toml(const RunConfig& config, const KeyNames& set);

struct ConfigKey {
  std::string name;   // "optimizer.lr"
  std::string value;  // as TOML writes it; empty: another key decides (of train.steps, tokens, ...; of the warmups)
  std::string valid;
  std::string help;
};
// The keys that decide what a run computes, with their values: not where it runs and its files are, nor how it is watched and
// saved.
std::vector<std::pair<std::string, std::string>> computing_keys(const RunConfig& config);
// Every key with its present value, in the order of to_toml(). The fields of a recipe are those of the present one.
std::vector<ConfigKey> config_keys(const RunConfig& config);

// What follows from the configuration. Parameters are those that are trained.
std::vector<model::Shape> parameter_shapes(const RunConfig& config);
std::int64_t parameters_of(const RunConfig& config);
// How many numbers the rule keeps for each parameter.
int moments_of(const Rule& rule);
// Bytes of all of these, and with them of what is trained, its gradients, and a model that is frozen under adapters.
double moment_bytes(const RunConfig& config);
double parameter_bytes(const RunConfig& config);
std::int64_t sequence_length(const RunConfig& config);  // of text
// What the progress of a run counts: tokens or images per step.
std::int64_t units_per_step(const RunConfig& config);
std::string_view unit_of(TaskKind task);  // "tokens", "images"
data::ImageSpec image_spec(const RunConfig& config);
std::int64_t steps_of(const RunConfig& config);  // the horizon in steps, rounded up
Schedule schedule_of(const RunConfig& config);
DecaySchedule decay_schedule_of(const RunConfig& config);
// Groups "matrices", "vectors" (rank at most 1, positions and class tokens) and, for the embedding of tokens or patches and the
// output matrix, "embedding" or, with a rule for matrices alone, "rest".
Routing routing_of(const RunConfig& config);

}  // namespace cautious::run
