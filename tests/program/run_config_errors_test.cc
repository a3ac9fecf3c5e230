// What a run's configuration refuses, in whole lines: file and line or flag, key, value, what is valid.
#include <set>

#include "run_config_source.h"

namespace cautious::run {
namespace run_config_errors_test {

using RunConfigErrors = RunConfigTest;

TEST_F(RunConfigErrors, UnreadableFiles) {
  EXPECT_EQ(message([] { run::read_config({.file = "no/such.toml", .preset = "", .overrides = {}}); }),
            "no/such.toml: cannot read the configuration: No such file or directory");
  EXPECT_EQ(message([&] { run::read_config({.file = folder(), .preset = "", .overrides = {}}); }),
            folder().string() + ": cannot read the configuration: is a directory");
}

TEST_F(RunConfigErrors, Syntax) {
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"[optimizer]\nlr = \n", "run.toml:2:6: not TOML: "},
           {"[optimizer\n", "run.toml:1:11: not TOML: "},
           {"[train]\nseed = 1\nseed = 2\n", "run.toml:3:8: not TOML: "},
           {"[train]\nseed = 99999999999999999999\n", "run.toml:2:28: not TOML: "},
           {"\xff = 3\n", "run.toml:1:1: not TOML: "},
           {std::string("a\0b = 1", 7), "run.toml:1:2: not TOML: "},
           {"x = " + std::string(10000, '['), "run.toml:1:"},
           {std::string(10000, 'k') + " = 1\n" + std::string(10000, 'k') + " = 2\n", "run.toml:2:10004: not TOML: "},
           {"\"\\n\\u001b\" = 1\n\"\\n\\u001b\" = 2\n", "run.toml:2:"}}) {
    const std::string line = refused(text);
    EXPECT_TRUE(line.starts_with(place)) << line;
    EXPECT_LT(line.size(), 300u);
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
  }
}

TEST_F(RunConfigErrors, UnknownKeysAndSections) {
  const std::string sections = "model, data, optimizer, optimizer.rest, schedule, train, eval, checkpoint, log";
  const std::string of_train =
      "keys of [train]: steps, tokens, tokens_per_param, batch_size, grad_accum, seq_len, seed, threads";
  EXPECT_EQ(refused("lr = 3\n"), "run.toml:1: no key named 'lr'; did you mean 'optimizer.lr'? sections: " + sections);
  EXPECT_EQ(refused("[train]\nlr = 3\n"), "run.toml:2: no key named 'train.lr'; did you mean 'optimizer.lr'? " + of_train);
  EXPECT_EQ(refused("[train]\nbatchsize = 3\n"),
            "run.toml:2: no key named 'train.batchsize'; did you mean 'train.batch_size'? " + of_train);
  EXPECT_EQ(refused("[train]\n\"a\\nb\" = 3\n"), "run.toml:2: no key named 'train.a\\x0ab'; " + of_train);
  EXPECT_EQ(refused("[optimiser]\nlr = 3\n"),
            "run.toml:1: no section named 'optimiser'; did you mean 'optimizer'? choices: " + sections);
  EXPECT_EQ(refused("[optimizer.rset]\nlr = 3\n"),
            "run.toml:1: no section named 'optimizer.rset'; did you mean 'optimizer.rest'? choices: " + sections);
  EXPECT_EQ(refused("train = 3\n"),
            "run.toml:1: train is a section, not a value; write [train] on a line of its own, then its keys");
  EXPECT_EQ(refused("[[train]]\nsteps = 3\n"),
            "run.toml:1: train is a section, not a value; write [train] on a line of its own, then its keys");
  EXPECT_EQ(refused_flags({{"bogus\n", "1"}}), "command line: no key named 'bogus\\x0a'; sections: " + sections);
  EXPECT_EQ(
      refused_flags({{"optimizer.betas", "1"}}),
      "command line: no key named 'optimizer.betas'; did you mean 'optimizer.beta1'? keys of [optimizer] for adamw with decay "
      "decoupled: name, lr, beta1, beta2, eps, decay, coupling, weight_decay, grad_clip, update_rms_clip, decay_vectors, "
      "moments, density_from, budget_from");
}

TEST_F(RunConfigErrors, WrongTypes) {
  EXPECT_EQ(refused("[optimizer]\n\nlr = \"1e-3\"\n"),
            "run.toml:3: optimizer.lr is the string '1e-3', not a number; valid: (0, inf)");
  EXPECT_EQ(refused("[optimizer]\nbeta1 = true\n"), "run.toml:2: optimizer.beta1 is true, not a number; valid: [0, 1)");
  EXPECT_EQ(refused("[optimizer]\ndecay = 3\n"),
            "run.toml:2: optimizer.decay is 3, not a string; valid: none, decoupled, cautious, gradient, random, layerwise, "
            "selective, anchored");
  EXPECT_EQ(refused("[train]\nsteps = 2.5\n"), "run.toml:2: train.steps is 2.5, not a whole number; valid: [1, 2^63)");
  EXPECT_EQ(refused("[train]\nsteps = 1e300\n"), "run.toml:2: train.steps is 1e+300, not a whole number; valid: [1, 2^63)");
  EXPECT_EQ(refused("[train]\nsteps = 1979-05-27\n"),
            "run.toml:2: train.steps is a date or a time, not a whole number; valid: [1, 2^63)");
  EXPECT_EQ(refused("[log]\ntensors = 1\n"), "run.toml:2: log.tensors is 1, not a boolean; valid: true, false");
  EXPECT_EQ(refused("[data]\npath = [1, 2]\n"),
            "run.toml:2: data.path is an array, not text; valid: a string or an array of strings");
  EXPECT_EQ(refused("[data]\npath = ['a', 2]\n"),
            "run.toml:2: data.path is an array of different things, not text; valid: a string or an array of strings");
  EXPECT_EQ(refused("[data]\npath = ['a', '']\n"),
            "run.toml:2: data.path has an empty entry; valid: a string or an array of strings");
  EXPECT_EQ(refused_flags({{"data.path", "a,,b"}}), "--data.path has an empty entry; valid: a string or an array of strings");
  EXPECT_EQ(refused_flags({{"data.path", "[1]"}}),
            "--data.path is '[1]', not an array of strings; valid: a,b or [\"a\", \"b\"]");
  EXPECT_EQ(refused_flags({{"log.tensors", "yes"}}), "--log.tensors is 'yes', not a boolean; valid: true, false");
  EXPECT_EQ(refused_flags({{"train.steps", "many"}}), "--train.steps is 'many', not a whole number; valid: [1, 2^63)");
  EXPECT_EQ(refused_flags({{"optimizer.lr", "1e-3x"}}), "--optimizer.lr is '1e-3x', not a number; valid: (0, inf)");
}

TEST_F(RunConfigErrors, OutOfRange) {
  const std::vector<std::pair<std::string, std::set<std::string>>> refused_values{
      {"optimizer.lr", {"0", "-1", "inf", "nan"}},
      {"optimizer.grad_clip", {"-1"}},
      {"optimizer.weight_decay", {"-0.1"}},
      {"optimizer.beta1", {"1", "-0.1"}},
      {"optimizer.moments", {"f64", "f16"}},
      {"data.val_fraction", {"0", "0.51"}},
      {"train.steps", {"0", "-1"}},
      {"train.tokens", {"0"}},
      {"train.tokens_per_param", {"0", "-1", "inf"}},
      {"train.batch_size", {"0", "1000001"}},
      {"train.grad_accum", {"0", "3", "17"}},
      {"train.seq_len", {"-1", "129"}},
      {"train.seed", {"-1", "9223372036854775808"}},
      {"train.threads", {"-1", "1025"}},
      {"eval.every", {"-1"}},
      {"eval.tokens", {"0"}},
      {"checkpoint.keep", {"0"}},
      {"log.every", {"0"}},
      {"schedule.final", {"1.1"}},
      {"schedule.warmup_ratio", {"1.1"}},
      {"schedule.decay_final", {"-1"}},
      {"schedule.kind", {"Cosine", ""}},
      {"model.width", {"0"}},
      {"model.norm_eps", {"0", "1"}},
  };
  for (const auto& [key, values] : refused_values) {
    for (const std::string& value : values) {
      const std::string line = refused_flags({{key, value}});
      EXPECT_TRUE(line.starts_with("--" + key)) << key << '=' << value << ": " << line;
    }
  }
  EXPECT_EQ(refused("[train]\nthreads = 5000\n"), "run.toml:2: train.threads is 5000; valid: [0, 1024]");
  EXPECT_EQ(refused_flags({{"schedule.kind", "cosin"}}),
            "--schedule.kind: no kind named 'cosin'; did you mean 'cosine'? choices: constant, linear, cosine, wsd");
  EXPECT_EQ(refused_flags({{"optimizer.beta1", "2"}}), "--optimizer.beta1: beta1 of adam is '2'; valid: [0, 1)");
  EXPECT_EQ(refused("[optimizer]\nlr = -1\n", {{"optimizer.lr", "1"}}), "run.toml:2: optimizer.lr is '-1'; valid: (0, inf)")
      << "a value that another one overrides is checked too";
}

}  // namespace run_config_errors_test
}  // namespace cautious::run
