// `cautious export`: a model for other programs.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/stored_floats.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_json.h"
#include "model/export.h"
#include "model/lora.h"
#include "run/checkpoint.h"

namespace cautious::cli {
namespace {

constexpr const char* kExportExamples =
    "  cautious export runs/cwd --format gguf --type q8_0 --out cwd.gguf\n"
    "  cautious export runs/cwd --format hf --type bf16 --out cwd-hf\n"
    "  cautious export stories15m --format gguf --out stories15m.gguf\n"
    "  cautious export runs/webster --merge --format gguf --out webster.gguf";

enum class ExportFormat { hf, gguf };
constexpr std::array<std::string_view, 2> names_of(ExportFormat) { return {"hf", "gguf"}; }

struct ExportArguments {
  std::string model, format, type = "f32", out;
  bool merge = false, quiet = false;
};

// cwd of runs/cwd/, of runs/cwd/checkpoints/step_00000100 and of cwd.gguf.
std::string name_for(const std::string& model) {
  std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.parent_path().filename() == "checkpoints") path = path.parent_path().parent_path();
  const std::filesystem::path name = path.has_filename() ? path : std::filesystem::absolute(path).parent_path();
  const bool file = name.extension() == ".gguf" || name.extension() == ".bin";
  return (file ? name.stem() : name.filename()).string();
}

// Whoever exports an adapter must mean the model that it makes: PEFT reads the adapter as it is.
void check_merge(const std::filesystem::path& model, bool merge) {
  const bool adapter = std::filesystem::exists(model / model::kAdapterConfig);
  if (adapter == merge) return;
  throw Error(Fault::usage, adapter ? fmt::format("{} is an adapter; add --merge to export it with its base as one model, or "
                                                  "give the folder to PEFT as it is",
                                                  model.string())
                                    : fmt::format("{} is not an adapter; remove --merge", model.string()));
}

int run_export(const ExportArguments& args) {
  const auto format = base::named<ExportFormat>("--format", args.format);
  const auto type = base::named<base::StoredFloat>("--type", args.type);
  if (args.out.empty()) throw Error(Fault::usage, "--out is empty; give a name that does not exist yet");
  model::check_out_is_new(args.out);
  const std::filesystem::path path = run::find_checkpoint(args.model), folder = run::tokenizer_beside(path);
  check_merge(path, args.merge);
  const auto weights = model::open_weights(path);
  const data::Tokenizer tokenizer = data::Tokenizer::read(folder);
  const auto described = data::tokenizer_config(folder);

  const Interruptible interruptible;
  base::LiveLine line(args.quiet ? base::LiveLine::Style::quiet : base::LiveLine::Style::automatic);
  const model::Export job{*weights,
                          tokenizer,
                          type,
                          name_for(args.model),
                          described ? described->chat_template.value_or("") : "",
                          [&](double fraction) {
                            interruptible.check();
                            line.show_fraction(fraction, "weights");
                          }};
  format == ExportFormat::gguf ? model::export_gguf(job, args.out) : model::export_hf(job, args.out);
  line.finish();
  base::print(args.out + "\n");
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<ExportArguments>();
  CLI::App& verb = *app.add_subcommand("export", "Write a model for llama.cpp (GGUF) or for Hugging Face's transformers.");
  verb.footer(kExportExamples);
  verb.add_option("MODEL", args->model, kModelHelp)->required()->type_name("");
  verb.add_option("--format", args->format, "gguf: one file; hf: a folder with config.json and safetensors")
      ->required()
      ->type_name("hf|gguf");
  verb.add_option("--type", args->type, "Type of the matrices; q8_0, 8 bits in blocks of 32, is for gguf only")
      ->type_name("f32|f16|bf16|q8_0")
      ->capture_default_str();
  verb.add_option("--out", args->out, "File or folder to write; must not exist")->required()->type_name("PATH");
  verb.add_flag("--merge", args->merge, "Add an adapter to its base model and write the sum");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.callback([args, &chosen] { chosen = [args] { return run_export(*args); }; });
}

}  // namespace cautious::cli
