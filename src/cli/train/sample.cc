// cautious sample: a trained model continues a text or answers in a conversation, shown as it comes.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/input_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/utf8_stream.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "data/instructions/lessons.h"
#include "model/continuation.h"
#include "run/checkpoint.h"

namespace cautious::cli {
namespace {

struct SampleArguments {
  std::string run;
  std::optional<std::string> prompt;
  bool chat = false;
  std::int64_t tokens = 200, count = 1;
  int threads = 0;
  model::Sampling sampling;
};

void check(const SampleArguments& args) {
  constexpr Range kCount{1, 1e9, false, false};
  if (!args.prompt && !args.chat) throw Error(Fault::usage, "--prompt is missing; give a text to continue, or --chat");
  if (args.chat && args.count > 1) throw Error(Fault::usage, "--count is for texts; leave it out with --chat");
  base::check_range("--tokens", static_cast<double>(args.tokens), kCount);
  base::check_range("--count", static_cast<double>(args.count), kCount);
  base::check_range("--temperature", args.sampling.temperature, kNonnegative);
  base::check_range("--top_k", static_cast<double>(args.sampling.top_k), {0, 1e9, false, false});
  base::check_range("--top_p", args.sampling.top_p, {0, 1, true, false});
}

// Tokens that the model made, and the time it took after the prompt.
struct Speed {
  std::int64_t tokens = 0;
  double seconds = 0;
};

class Writer {
 public:
  Writer(const Trained& trained, const SampleArguments& args) : trained_(trained), args_(args) {}

  // Prints `shown` and what follows the tokens, which it returns. Interrupted comes out of here after the line has been ended.
  std::string write(const std::string& shown, const std::vector<data::Token>& tokens, const model::Sampling& sampling,
                    const Interruptible& interruptible) {
    base::Utf8Stream characters;
    base::print(characters.add(shown));
    std::string text;
    try {
      text = continued(tokens, sampling, interruptible, characters);
    } catch (const Interrupted&) {
      base::print(characters.finish() + "\n");
      throw;
    }
    base::print(characters.finish() + "\n");
    return text;
  }

  const Speed& speed() const { return speed_; }

 private:
  std::string continued(const std::vector<data::Token>& start, const model::Sampling& sampling,
                        const Interruptible& interruptible, base::Utf8Stream& characters) {
    using Clock = std::chrono::steady_clock;
    std::string text;
    std::optional<Clock::time_point> begin;
    model::continue_text(*trained_.model, trained_.tokenizer, start, sampling, args_.tokens, [&](std::string_view piece) {
      if (!begin) begin = Clock::now();
      interruptible.check();
      base::print(characters.add(piece));
      text += piece;
      ++speed_.tokens;
    });
    if (begin) speed_.seconds += std::chrono::duration<double>(Clock::now() - *begin).count();
    return text;
  }

  const Trained& trained_;
  const SampleArguments& args_;
  Speed speed_;
};

void write_texts(const SampleArguments& args, const Trained& trained, Writer& writer, const Interruptible& interruptible) {
  for (std::int64_t text = 0; text < args.count; ++text) {
    if (text > 0) base::print("---\n");
    model::Sampling sampling = args.sampling;
    sampling.seed += static_cast<std::uint64_t>(text);
    writer.write(*args.prompt, model::prompt_tokens(*args.prompt, trained.tokenizer), sampling, interruptible);
  }
}

// The next line of standard input; none at its end. By bytes: a line that has been typed is not to wait for the one after it.
std::optional<std::string> next_line(const Interruptible& interruptible) {
  const base::InputFile input = base::InputFile::standard_input([&] { interruptible.check(); });
  std::string line;
  for (char c = 0; input.next(std::as_writable_bytes(std::span(&c, 1))) > 0; line += c) {
    interruptible.check();
    if (c == '\n') return line;
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

// One question and its answer, or those of a whole conversation, a line each.
void talk(const SampleArguments& args, const Trained& trained, Writer& writer, const Interruptible& interruptible) {
  const data::Speech speech(trained.tokenizer, data::ChatTemplate::of_folder(run::tokenizer_beside(trained.checkpoint)));
  std::vector<data::Message> messages;
  model::Sampling sampling = args.sampling;
  const auto question = [&] { return args.prompt ? args.prompt : next_line(interruptible); };
  for (std::optional<std::string> line = question(); line; line = question()) {
    messages.push_back({"user", *line});
    messages.push_back({"assistant", writer.write("", speech.question(messages), sampling, interruptible)});
    if (args.prompt) return;
    ++sampling.seed;
  }
}

// Whether the products of a single token are too small to be shared: threads would wait for each other longer than they work.
bool is_small(const model::Transformer& model) {
  constexpr std::int64_t kLarge = 10'000'000;  // parameters
  return size_of(model.config(), 1, 1, false).parameters < kLarge;
}

int run(const SampleArguments& args) {
  check(args);
  const Trained trained = load_trained(args.run);
  use_threads(args.threads == 0 && is_small(*trained.model) ? 1 : args.threads);
  const Interruptible interruptible;
  Writer writer(trained, args);
  try {
    (args.chat ? talk : write_texts)(args, trained, writer, interruptible);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  }
  const Speed& speed = writer.speed();
  base::tell(fmt::format("{} tokens, {:.0f} tokens/s\n", speed.tokens,
                         speed.tokens > 0 ? static_cast<double>(speed.tokens) / speed.seconds : 0));
  return 0;
}

}  // namespace

void add_sample(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<SampleArguments>();
  CLI::App& verb = *app.add_subcommand("sample", kSampleLine);
  verb.footer(
      "  cautious sample runs/first --prompt 'The cat'\n"
      "  cautious sample runs/first --prompt '' --tokens 500 --temperature 1 --top_p 0.95 --count 3\n"
      "  cautious sample runs/webster --chat --prompt 'Define the noun \"abbey\".'");
  verb.add_option("RUN", args->run, kModelHelp)->required()->type_name("");
  verb.add_option("--prompt", args->prompt, "Text to continue; empty starts a new document")->type_name("TEXT");
  verb.add_flag("--chat", args->chat,
                "Answer the prompt, in the words of the model's chat template or of Alpaca; without --prompt, a conversation:\n"
                "every line of standard input is answered");
  verb.add_option("--tokens", args->tokens,
                  "Generate at most this many tokens; the end of the document also stops (default: 200)")
      ->type_name("NUMBER");
  verb.add_option("--temperature", args->sampling.temperature,
                  "0 always picks the most likely token; valid: [0, inf) (default: 0.8)")
      ->type_name("NUMBER");
  verb.add_option("--top_k", args->sampling.top_k, "Keep the k most likely tokens; 0 keeps all (default: 0)")
      ->type_name("NUMBER");
  verb.add_option("--top_p", args->sampling.top_p,
                  "Keep the smallest set of tokens with at least this probability; valid: (0, 1] (default: 1)")
      ->type_name("NUMBER");
  add_seed(verb, args->sampling.seed, "Seed of the first text; each further text adds 1 (default: 0)");
  verb.add_option("--count", args->count, "Number of texts, separated by a line --- (default: 1)")->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core, for small models one (default: 0)")
      ->type_name("NUMBER");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
