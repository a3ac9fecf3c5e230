// `cautious replay`: the command line of a replay, what it writes and what it says. All checks come before the first step, and
// OUT appears complete or not at all; it is a function of the inputs, so an old one is replaced.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/replay.h"
#include "cli/verbs.h"

namespace cautious::cli {
namespace {

constexpr const char* kReplayExamples =
    "  cautious replay trace.safetensors --optimizer adamw --decay cautious --lr 1e-3 --out cwd.safetensors\n"
    "  cautious replay trace.safetensors --optimizer lion --beta2 0.98 --lr 1e-4 --trajectory --out lion.safetensors\n"
    "  cautious replay trace.safetensors --optimizer adamw --decay random --density_trace cwd.safetensors --lr 1e-3 \\\n"
    "    --out random.safetensors";

// Options that the output does not name: the tensors have the moments' type, and bits do not depend on the rest.
constexpr std::array<std::string_view, 3> kUnrecorded{"moments", "threads", "isa"};

struct ReplayArguments {
  std::string trace, out;
  RecipeOptions recipe;
  std::map<std::string, std::string, std::less<>> given;  // the other options that were given
  bool trajectory = false, quiet = false, json = false;

  const std::string* find(std::string_view option) const {
    const auto at = given.find(option);
    return at == given.end() ? nullptr : &at->second;
  }
};

[[noreturn]] void refuse_replay(const std::string& message) { throw Error(Fault::usage, message); }

void say(const ReplayArguments& args, const std::string& line) {
  if (!args.quiet) base::tell(fmt::format("{}\n", line));
}

std::string capitalized(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

void check_out(const ReplayArguments& args) {
  const std::filesystem::path out(args.out);
  if (args.out.empty()) refuse_replay("--out is empty; give a file name");
  if (same_file(out, args.trace))
    refuse_replay(fmt::format("--out is the trace itself, {}; give another file", base::in_quotes(args.out)));
  if (const auto* path = args.find("density_trace"); path && same_file(out, *path)) {
    refuse_replay(fmt::format("--out is the density trace itself, {}; give another file", base::in_quotes(args.out)));
  }
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(Fault::failure,
                fmt::format("cannot write {}: there is no directory {}", args.out, base::in_quotes(folder.string())));
  }
  if (std::filesystem::is_directory(out, ignored))
    throw Error(Fault::failure, fmt::format("cannot write {}: it is a directory", args.out));
}

// All fields of Options but one: norms belong to the step report, of which a replay writes the counts only.
std::vector<FieldInfo> option_fields(const Options& options) {
  std::vector<FieldInfo> list = fields(options);
  std::erase_if(list, [](const FieldInfo& field) { return field.name == "norms"; });
  return list;
}

Options options_of(const ReplayArguments& args) {
  Options options;
  for (const FieldInfo& field : option_fields(options)) {
    if (const auto* text = args.find(field.name)) set(options, field.name, *text);
  }
  return options;
}

// What the arguments alone can tell, before any file is read.
ReplayPlan plan_of(const ReplayArguments& args) {
  ReplayPlan plan;
  plan.recipe = args.recipe.recipe();
  plan.options = options_of(args);
  plan.keep = args.trajectory ? Keep::trajectory : Keep::last;
  if (const auto* text = args.find("wd_schedule")) plan.wd_schedule.curve = base::named<Curve>("weight-decay schedule", *text);
  if (const auto* text = args.find("wd_final")) {
    plan.wd_schedule.final = base::to_number("wd_final", *text, kNonnegative);
    if (plan.wd_schedule.curve == Curve::constant) {
      refuse_replay("--wd_final has no effect without --wd_schedule linear, cosine or one-minus-sqrt");
    }
  }
  if (const auto* text = args.find("lr")) plan.lr = {base::to_number("lr", *text, kNonnegative)};
  if (const auto* text = args.find("lr_max")) plan.lr_max = base::to_number("lr_max", *text, kPositive);
  if (args.find("density_trace")) {
    if (!is_random(plan.recipe.decay)) {
      refuse_replay(
          fmt::format("--density_trace belongs to the decay 'random'; the decay is '{}'", name_of(plan.recipe.decay)));
    }
    if (args.recipe.given("density")) refuse_replay("--density and --density_trace are both given; choose one");
  }
  return plan;
}

// What the trace adds: the number of steps, the learning rates, the densities.
void complete(ReplayPlan& plan, const ReplayArguments& args, const Trace& trace) {
  if (args.find("moments") && trace.element == Element::f64) {
    refuse_replay(fmt::format("--moments is '{}', but x is F64, whose moments are always F64", *args.find("moments")));
  }
  if (plan.options.rounding != Rounding::nearest && trace.element != Element::bf16) {
    refuse_replay(
        fmt::format("--rounding is '{}', but x is {}; only BF16 is rounded", *args.find("rounding"), type_of(trace.element)));
  }
  if (!trace.lr && plan.lr.empty()) refuse_replay("no learning rate: give --lr, or a trace with the tensor 'lr'");
  plan.lr = trace.lr ? *trace.lr : std::vector<double>(static_cast<std::size_t>(trace.steps), plan.lr.front());
  const double peak = plan.lr.empty() ? 0 : *std::max_element(plan.lr.begin(), plan.lr.end());
  if (!args.find("lr_max")) plan.lr_max = peak;
  if (plan.lr_max < peak) refuse_replay(fmt::format("--lr_max is {}, below the largest learning rate {}", plan.lr_max, peak));
  plan.wd_schedule.steps = std::max<std::int64_t>(trace.steps, 1);
  if (const auto* path = args.find("density_trace")) plan.density = read_densities(*path, trace);
}

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

void write(const ReplayArguments& args, const ReplayPlan& plan, const Trace& trace, const ReplayResult& result) {
  std::vector<base::TensorToWrite> tensors{{"x", type_of(trace.element), trace.shape, bytes(result.x)}};
  for (const KeptState& state : result.state) tensors.push_back({state.name, state.type, trace.shape, bytes(state.data)});
  tensors.push_back({"ratio", "F64", {trace.steps}, bytes(result.ratio)});
  tensors.push_back({"ratio_strict", "F64", {trace.steps}, bytes(result.ratio_strict)});
  if (plan.keep == Keep::trajectory) {
    std::vector<std::int64_t> shape = trace.shape;
    shape.insert(shape.begin(), trace.steps);
    tensors.push_back({"trajectory", type_of(trace.element), shape, bytes(result.trajectory)});
  }
  base::Metadata metadata{{"cautious", CAUTIOUS_VERSION},
                          {"recipe", to_string(plan.recipe)},
                          {"lr_max", base::to_text(plan.lr_max)},
                          {"wd_schedule", std::string(name_of(plan.wd_schedule.curve))},
                          {"wd_final", base::to_text(plan.wd_schedule.final)}};
  for (const FieldInfo& field : option_fields(plan.options)) {
    if (std::ranges::find(kUnrecorded, field.name) == kUnrecorded.end()) metadata[field.name] = field.value;
  }
  base::write_safetensors(args.out, tensors, metadata);
}

// NaN without any value.
double mean(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

void summarize(const ReplayArguments& args, const ReplayPlan& plan, const Trace& trace, const ReplayResult& result) {
  say(args, fmt::format("{} steps of x, {} {}, with {}", trace.steps, type_of(trace.element), text_of(trace.shape),
                        to_string(plan.recipe)));
  say(args, fmt::format("decayed {:.4f}, strictly active {:.4f} of the coordinates (mean over steps); wrote {}",
                        mean(result.ratio), mean(result.ratio_strict), args.out));
  if (trace.lr && args.find("lr")) say(args, "note: the trace has learning rates; --lr was not used");
  if (plan.recipe.weight_decay == 0 && args.recipe.given("decay") && !std::holds_alternative<None>(plan.recipe.decay)) {
    say(args, "note: weight_decay is 0, so nothing decayed; give --weight_decay");
  }
  if (result.nonfinite > 0) {
    say(args, fmt::format("warning: {} non-finite gradient entries, the first in step {}; {} steps skipped", result.nonfinite,
                          result.first_nonfinite, result.skipped));
  }
  if (!args.json) return;
  const nlohmann::ordered_json object{{"out", args.out},
                                      {"optimizer", args.recipe.optimizer()},
                                      {"recipe", to_string(plan.recipe)},
                                      {"dtype", type_of(trace.element)},
                                      {"shape", trace.shape},
                                      {"steps", trace.steps},
                                      {"lr_max", plan.lr_max},
                                      {"ratio", mean(result.ratio)},
                                      {"ratio_strict", mean(result.ratio_strict)},
                                      {"nonfinite", result.nonfinite},
                                      {"skipped", result.skipped}};
  const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  base::print(line);
}

int run(const ReplayArguments& args) {
  ReplayPlan plan = plan_of(args);
  check_out(args);
  const Interruptible interruptible;
  const Trace trace = read_trace(args.trace);
  complete(plan, args, trace);
  const ReplayResult result = replay(trace, plan, [&] { interruptible.check(); });
  interruptible.check();
  write(args, plan, trace, result);
  summarize(args, plan, trace, result);
  return 0;
}

}  // namespace

void add_replay(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<ReplayArguments>();
  CLI::App& verb = *app.add_subcommand("replay", "Run an optimizer over recorded gradients and write the result.");
  verb.footer(kReplayExamples);
  verb.add_option("TRACE", args->trace,
                  "A safetensors file: x (any shape; F64, F32 or BF16), g [T, *x.shape] of x's type (or F32 for a BF16 x),\n"
                  "and optionally lr F64 [T] (replaces --lr) and x0 (anchor, like x)")
      ->required()
      ->type_name("");
  verb.add_option("--out", args->out, "safetensors file to write: x, the moments, ratio and ratio_strict [T]")
      ->required()
      ->type_name("FILE")
      ->group("Files");
  verb.add_flag("--trajectory", args->trajectory, "Also write trajectory [T, *x.shape], x after each step")->group("Files");
  args->recipe.add_to(verb);
  const auto option = [&](const std::string& name, const char* type, const char* group, const std::string& help) {
    const auto note = [given = &args->given, name](const std::string& text) { (*given)[name] = text; };
    verb.add_option_function<std::string>("--" + name, note, help)->type_name(type)->group(group);
  };
  option("density_trace", "FILE", "Files", "Densities for decay random: the tensor 'ratio' of an earlier replay");
  option("lr", "NUMBER", "Schedule", "Learning rate of every step; valid: [0, inf)");
  option("lr_max", "NUMBER", "Schedule", "Peak of the schedule, for the couplings (default: the largest learning rate)");
  option("wd_schedule", "NAME", "Schedule",
         fmt::format("Schedule of the weight decay, from factor 1 to --wd_final; valid: {} (default: constant)",
                     base::join(names_of(Curve{}))));
  option("wd_final", "NUMBER", "Schedule", "Final factor on the weight decay (default: 0)");
  for (const FieldInfo& field : option_fields({})) {
    option(field.name, field.kind == FieldKind::choice ? "NAME" : "NUMBER", "Arithmetic",
           fmt::format("{}; valid: {} (default: {})", capitalized(field.help), field.valid, field.value));
  }
  verb.add_flag("--quiet", args->quiet, "Print errors only")->group("Messages");
  verb.add_flag("--json", args->json, "Print one JSON object to standard output")->group("Messages");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
