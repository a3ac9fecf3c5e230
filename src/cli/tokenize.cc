// `cautious tokenize`: text to token files or to printed ids, and back, and training the tokenizer itself. What is written is a
// function of the inputs, so an old file is replaced, and appears complete or not at all.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "data/corpus.h"
#include "data/documents.h"
#include "data/sets/catalog.h"
#include "data/tokenizer/bpe_training.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokens.h"

namespace cautious::cli {
namespace {

constexpr const char* kTokenizeExamples =
    "  cautious tokenize --train --vocab 4096 book.txt more.jsonl --out tokenizer.json\n"
    "  cautious tokenize book.txt more.jsonl --tokenizer tokenizer.json --out data.tokens\n"
    "  cautious tokenize book.txt --tokenizer cl100k_base.tiktoken --ids\n"
    "  cautious tokenize data.tokens --tokenizer tokenizer.json --decode | head\n"
    "  xzcat crawl.jsonl.xz | cautious tokenize - --format jsonl --field content --tokenizer bytes --out data.tokens";

constexpr Range kTokenizeThreads{0, 4096, false, false};
constexpr std::array<std::string_view, 2> kFormats{"text", "jsonl"};  // of standard input

struct TokenizeArguments {
  std::vector<std::string> files;
  std::string tokenizer, out, vocab = "4096", threads = "0", field = "text", format;
  bool train = false, ids = false, decode = false, quiet = false, vocab_given = false;
};

[[noreturn]] void refuse_tokenize(const std::string& message) { throw Error(Fault::usage, message); }

void check_out(const TokenizeArguments& args) {
  if (args.out.empty()) refuse_tokenize("--out is empty; give a file name");
  for (const std::string& file : args.files) {
    std::error_code ignored;
    if (std::filesystem::equivalent(args.out, file, ignored))
      refuse_tokenize(fmt::format("--out is the input {}; give another file", base::in_quotes(file)));
  }
  const char* const suffix = args.train ? ".json" : ".tokens";  // by which whoever reads the file knows it
  if (std::filesystem::path(args.out).extension() != suffix) {
    refuse_tokenize(fmt::format("--out is {}; the name of a {} must end in {}", base::in_quotes(args.out),
                                args.train ? "tokenizer" : "token file", suffix));
  }
}

// Standard input is read once, and has no name that tells what it is.
void check_format(const TokenizeArguments& args) {
  const auto piped = std::count(args.files.begin(), args.files.end(), data::kStandardInput);
  if (piped > 1) refuse_tokenize("- is given twice, but there is one standard input");
  if (piped == 1 && args.format.empty())
    refuse_tokenize("- is standard input, which has no name to tell its format by; give --format text or --format jsonl");
  if (piped == 0 && !args.format.empty()) refuse_tokenize("--format is for standard input, -; files are read by their names");
  if (!args.format.empty()) (void)base::index_of_name("format", args.format, kFormats);
  if (args.field.empty()) refuse_tokenize("--field is empty; give the name of a field, as in --field content");
}

// What the arguments alone can tell.
void check_arguments(const TokenizeArguments& args, bool tokenizer_given, bool out_given) {
  if (args.train + args.ids + args.decode > 1) refuse_tokenize("--train, --ids and --decode: give one of them");
  if (args.train && tokenizer_given) refuse_tokenize("--train makes a new tokenizer and cannot be combined with --tokenizer");
  if (!args.train && args.vocab_given) refuse_tokenize("--vocab needs --train");
  if (!args.train && !tokenizer_given)
    refuse_tokenize("no tokenizer: give --tokenizer bytes or a file, or make one with --train");
  const bool prints = args.ids || args.decode;
  if (prints && out_given) {
    refuse_tokenize(
        fmt::format("--{} prints to standard output and cannot be combined with --out", args.ids ? "ids" : "decode"));
  }
  if (!prints && !out_given) refuse_tokenize("nowhere to write: give --out FILE, or --ids to print");
  if (!prints) check_out(args);
  if (!args.decode) check_format(args);
}

int threads_of(const TokenizeArguments& args) {
  const auto threads = static_cast<int>(base::to_integer("threads", args.threads, kTokenizeThreads));
  return threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<std::filesystem::path> paths_of(const TokenizeArguments& args) { return {args.files.begin(), args.files.end()}; }

// --format is for standard input, and the name of a file tells its own.
data::DocumentReading reading_of(const TokenizeArguments& args, std::function<void()> waiting) {
  return {args.field, args.format == "jsonl" ? data::DocumentFormat::jsonl : data::DocumentFormat::text, std::move(waiting)};
}

base::LiveLine live_line(const TokenizeArguments& args) {
  return base::LiveLine(args.quiet ? base::LiveLine::Style::quiet : base::LiveLine::Style::automatic);
}

void summarize(const TokenizeArguments& args, std::int64_t documents, std::int64_t tokens, std::int64_t bytes,
               const std::string& where) {
  if (args.quiet) return;
  base::tell(fmt::format("{} document{}, {} tokens including end-of-document tokens, {} bytes, {:.3f} bytes per token{}\n",
                         documents, documents == 1 ? "" : "s", tokens, bytes,
                         tokens > documents ? static_cast<double>(bytes) / static_cast<double>(tokens - documents) : 0, where));
}

int train(const TokenizeArguments& args) {
  const Interruptible interruptible;
  const data::BpeTraining training{base::to_integer("vocab", args.vocab, data::kBpeVocab), threads_of(args),
                                   reading_of(args, [&] { interruptible.check(); })};
  base::AtomicFile file(args.out);  // before the work
  base::LiveLine line = live_line(args);
  const data::Tokenizer tokenizer = data::train_bpe(paths_of(args), training, [&](const char* stage, double fraction) {
    interruptible.check();
    line.show_fraction(fraction, stage);
  });
  file.write(tokenizer.to_json());
  file.commit();
  line.finish();
  if (!args.quiet)
    base::tell(fmt::format("wrote {}: {} tokens, fingerprint {}\n", args.out, tokenizer.vocab(), tokenizer.fingerprint()));
  return 0;
}

// The bytes of the text alone.
std::int64_t bytes_of(const data::Tokens& tokens, const data::Tokenizer& tokenizer) {
  constexpr std::int64_t block = 1 << 20;
  std::vector<std::int64_t> ids;
  std::int64_t bytes = 0;
  for (std::int64_t at = 0; at < tokens.size(); at += block) {
    ids.resize(static_cast<std::size_t>(std::min(block, tokens.size() - at)));
    tokens.copy(at, ids);
    for (const std::int64_t id : ids) bytes += tokenizer.lengths()[static_cast<std::size_t>(id)];
  }
  return bytes;
}

int write(const TokenizeArguments& args, const data::Tokenizer& tokenizer) {
  const Interruptible interruptible;
  base::LiveLine line = live_line(args);
  data::write_tokens(
      args.out, paths_of(args), tokenizer, threads_of(args),
      [&](double fraction) {
        interruptible.check();
        line.show_fraction(fraction, "tokenizing");
      },
      reading_of(args, [&] { interruptible.check(); }));
  line.finish();
  if (args.quiet) return 0;
  const auto tokens = data::Tokens::open(args.out);
  summarize(args, static_cast<std::int64_t>(tokens->documents().size()), tokens->size(), bytes_of(*tokens, tokenizer),
            "; wrote " + args.out);
  return 0;
}

int print_ids(const TokenizeArguments& args, const data::Tokenizer& tokenizer) {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  const int threads = threads_of(args);
  for (const std::string& file : args.files) {
    const auto cut = [&](std::string_view text) { return tokenizer.cut(text); };
    data::each_window(file, reading_of(args, {}), cut, [&](const data::Window& window) {
      const std::vector<data::Token> ids = tokenizer.encode(window.text, threads, !window.first);
      base::print(fmt::format("{}{}", fmt::join(ids, " "), window.last ? "\n" : " "));
      documents += window.last ? 1 : 0;
      tokens += static_cast<std::int64_t>(ids.size()) + (window.last ? 1 : 0);
      bytes += static_cast<std::int64_t>(window.text.size());
    });
  }
  summarize(args, documents, tokens, bytes, "");
  return 0;
}

// Without the tokens that end documents; a line of three dashes stands between two.
void print_text(const data::Tokens& tokens, const data::Tokenizer& tokenizer) {
  constexpr std::int64_t block = 1 << 20;
  const std::span<const std::int64_t> documents = tokens.documents();
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::int64_t end = i + 1 < documents.size() ? documents[i + 1] : tokens.size();
    if (i > 0) base::print("\n---\n");
    for (std::int64_t at = documents[i]; at < end; at += block) {
      numbers.resize(static_cast<std::size_t>(std::min(block, end - at)));
      tokens.copy(at, numbers);
      std::vector<data::Token> ids(numbers.begin(), numbers.end());
      if (at + block >= end && ids.back() == tokenizer.document_end()) ids.pop_back();
      base::print(tokenizer.decode(ids));
    }
  }
}

int decode(const TokenizeArguments& args, const data::Tokenizer& tokenizer) {
  bool first = true;
  for (const std::string& file : args.files) {
    const auto tokens = data::Tokens::open(file);
    if (!tokens->tokenizer().empty() && tokens->tokenizer() != tokenizer.fingerprint()) {
      throw Error(Fault::data,
                  fmt::format("{}: made with another tokenizer ({:.8}...) than --tokenizer ({:.8}...); give the one "
                              "that it was made with",
                              file, tokens->tokenizer(), tokenizer.fingerprint()));
    }
    if (!std::exchange(first, false)) base::print("\n---\n");
    print_text(*tokens, tokenizer);
  }
  return 0;
}

// The names of fetched sets as the files of their texts.
void place_sets(std::vector<std::string>& files) {
  std::vector<std::string> placed;
  for (const std::string& file : files) {
    std::vector<std::filesystem::path> all{file};
    if (file != data::kStandardInput) all = data::files_named(file, data::Content::text, "FILE", data::default_cache());
    placed.insert(placed.end(), all.begin(), all.end());
  }
  files = std::move(placed);
}

int run(TokenizeArguments& args, bool tokenizer_given, bool out_given) {
  place_sets(args.files);
  check_arguments(args, tokenizer_given, out_given);
  if (args.train) return train(args);
  threads_of(args);
  const data::Tokenizer tokenizer =
      data::Tokenizer::named(data::tokenizer_place(args.tokenizer, "--tokenizer", data::default_cache()).string());
  return args.ids ? print_ids(args, tokenizer) : args.decode ? decode(args, tokenizer) : write(args, tokenizer);
}

}  // namespace

void add_tokenize(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<TokenizeArguments>();
  CLI::App& verb = *app.add_subcommand("tokenize", "Convert text to tokens and back, or train a tokenizer on text.");
  verb.footer(kTokenizeExamples);
  verb.add_option("FILE", args->files,
                  "Text (one document per file) or JSONL (one per line), either also as .gz, .dz or .zst; Parquet (one per\n"
                  "row); the name of a fetched text; - for standard input; with --decode token files, .tokens or .bin")
      ->required()
      ->type_name("");
  const auto* tokenizer =
      verb.add_option("--tokenizer", args->tokenizer,
                      "A tokenizer.json; r50k_base, p50k_base, cl100k_base or o200k_base as .tiktoken;\n"
                      "a folder with a tokenizer.json or with GPT-2's encoder.json and vocab.bpe; or a name, all\n"
                      "but bytes once fetched; valid: bytes, gpt2-bpe, r50k_base, p50k_base, cl100k_base, o200k_base")
          ->type_name("NAME");
  const auto* out = verb.add_option("--out", args->out,
                                    "File to write: tokens, or the tokenizer.json of --train; an existing file is replaced")
                        ->type_name("FILE");
  verb.add_option("--field", args->field, "Field of JSONL, or column of Parquet, with the text (default: text)")
      ->type_name("NAME");
  verb.add_option("--format", args->format, "What standard input is; valid: text, jsonl")->type_name("NAME");
  verb.add_flag("--ids", args->ids, "Print the ids instead, one line per document, without end-of-document tokens");
  verb.add_flag("--decode", args->decode, "Print the text of token files instead; a line --- between documents");
  verb.add_flag("--train", args->train, "Train a byte-level BPE on the files");
  const auto* vocab =
      verb.add_option("--vocab", args->vocab,
                      fmt::format("Vocabulary of the trained BPE, including the 256 bytes and <|endoftext|>; valid: {} "
                                  "(default: 4096)",
                                  to_string(data::kBpeVocab)))
          ->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core; the output does not depend on it (default: 0)")
      ->type_name("NUMBER");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.callback([=, &chosen] {
    args->vocab_given = vocab->count() > 0;
    chosen = [args, tokenizer_given = tokenizer->count() > 0, out_given = out->count() > 0] {
      return run(*args, tokenizer_given, out_given);
    };
  });
}

}  // namespace cautious::cli
