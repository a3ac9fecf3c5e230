// What a run's configuration refuses, in whole lines: file and line or flag, key, value, what is valid; keys that exclude or
// need each other.
#include <set>

#include "run_config_source.h"

namespace cautious::run {
namespace run_config_errors_test {

using RunConfigErrors = RunConfigTest;

TEST_F(RunConfigErrors, UnreadableFiles) {
  EXPECT_EQ(message([] { run::read_config({.files = {"no/such.toml"}, .preset = "", .overrides = {}}); }),
            "no/such.toml: cannot read the configuration: No such file or directory");
  EXPECT_EQ(message([&] { run::read_config({.files = {folder()}, .preset = "", .overrides = {}}); }),
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
  const std::string sections =
      "model, data, lora, augment, optimizer, optimizer.rest, schedule, train, eval, checkpoint, log, objective";
  const std::string of_train =
      "keys of [train]: steps, tokens, tokens_per_param, batch_size, grad_accum, seq_len, ema, seed, threads, "
      "timeout, device, precision";
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
            "run.toml:2: optimizer.decay is 3, not a string; valid: none, decoupled, cautious, opposed, gradient, random, "
            "shuffled, layerwise, selective, anchored");
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
      {"data.weights", {"0", "-1", "inf", "nan", "1,0"}},
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

using RunConfigTogether = RunConfigTest;

TEST_F(RunConfigTogether, TwoOfWhichOneDecides) {
  EXPECT_EQ(refused("[train]\nsteps = 3\ntokens = 4\n"),
            "run.toml:2: train.steps and run.toml:3: train.tokens are both set; set one of: train.steps, train.tokens, "
            "train.tokens_per_param");
  EXPECT_EQ(refused("[train]\nsteps = 3\n", {{"train.tokens", "5"}, {"train.tokens_per_param", "7"}}),
            "--train.tokens and --train.tokens_per_param are both set; set one of: train.steps, train.tokens, "
            "train.tokens_per_param");
  EXPECT_EQ(refused_flags({{"schedule.warmup_steps", "5"}, {"schedule.warmup_ratio", "0"}}),
            "--schedule.warmup_steps and --schedule.warmup_ratio are both set; set one of: schedule.warmup_steps, "
            "schedule.warmup_ratio");
  EXPECT_EQ(refused_flags({{"model.preset", "nano-1m"}}, "nano-3m"),
            "--preset is 'nano-3m' and --model.preset is 'nano-1m'; give one of them");
  EXPECT_EQ(typed({{"model.preset", "nano-1m"}}, "nano-1m").model.preset, "nano-1m");
}

TEST_F(RunConfigTogether, UnknownNames) {
  EXPECT_TRUE(
      refused_flags({}, "nano-1").starts_with("--preset: no model named 'nano-1'; did you mean 'nano-1m'? choices: nano-100k"));
  EXPECT_EQ(
      refused("[optimizer]\nname = 'moun'\n", {{"optimizer.name", "lion"}}),
      "run.toml:2: optimizer.name: no optimizer named 'moun'; did you mean 'muon'? choices: sgd, sgdm, adam, adamw, adamc, "
      "lion, lion-k, muon");
  EXPECT_TRUE(refused_flags({{"optimizer.decay", "cautios"}})
                  .starts_with("--optimizer.decay: no decay named 'cautios'; did you mean 'cautious'? choices: none, "));
}

TEST_F(RunConfigTogether, FieldsOfAnotherRule) {
  EXPECT_TRUE(
      refused("[optimizer]\nname = 'muon'\nbeta1 = 0.8\n")
          .starts_with(
              "run.toml:3: no key named 'optimizer.beta1'; did you mean 'optimizer.rest.beta1'? keys of [optimizer] for "
              "muon with decay decoupled: name, lr, beta, "));
  EXPECT_TRUE(
      refused_flags({{"optimizer.density", "0.5"}})
          .starts_with("command line: no key named 'optimizer.density'; did you mean 'optimizer.density_from'? keys of"));
}

TEST_F(RunConfigTogether, AFollowedRunNeedsItsDecay) {
  EXPECT_TRUE(refused_flags({{"optimizer.decay", "cautious"}, {"optimizer.mask", "momentum"}})
                  .starts_with("--optimizer.mask: mask=momentum is for rules that shape their direction (lion-k, muon)"));
  EXPECT_EQ(refused_flags({{"optimizer.density_from", "run"}}),
            "--optimizer.density_from needs optimizer.decay=random, which is decoupled");
  EXPECT_EQ(refused_flags({{"optimizer.budget_from", "run"}, {"optimizer.name", "adamc"}}),
            "--optimizer.budget_from needs optimizer.decay=decoupled and optimizer.coupling=plain, which are decoupled and "
            "corrected");
}

TEST_F(RunConfigTogether, TheRestNeedsARuleForMatrices) {
  const std::string why =
      "'optimizer.rest.lr_multiplier' is for rules that work on matrices alone (muon, lion-k with k = nuclear), but ";
  const std::string remedy = ", which takes every tensor; remove the keys of [optimizer.rest]";
  const std::string rest = "[optimizer.rest]\nlr_multiplier = 2\n";
  EXPECT_EQ(refused(rest), "run.toml:2: " + why + "optimizer.name is 'adamw'" + remedy);
  EXPECT_EQ(refused(rest + "[optimizer]\nname = 'lion'\n"),
            "run.toml:2: " + why + "run.toml:4: optimizer.name is 'lion'" + remedy);
  EXPECT_EQ(refused_flags({{"optimizer.rest.lr_multiplier", "2"}}),
            "command line: " + why + "optimizer.name is 'adamw'" + remedy);

  const std::string choices =
      " makes a rule for matrices alone, but the rest has vectors too; choices for optimizer.rest.name: sgd, sgdm, adam, "
      "adamw, "
      "adamc, lion, lion-k";
  EXPECT_EQ(refused("[optimizer]\nname = 'muon'\n[optimizer.rest]\nname = 'muon'\n"),
            "run.toml:4: optimizer.rest.name" + choices);
  EXPECT_EQ(refused_flags({{"optimizer.name", "muon"}, {"optimizer.rest.name", "lion-k"}, {"optimizer.rest.k", "nuclear"}}),
            "--optimizer.rest.k" + choices + "; for optimizer.rest.k: all but nuclear");
}

TEST_F(RunConfigTogether, AStrengthNeedsADecay) {
  const std::string line =
      "optimizer.weight_decay is 0.1, but optimizer 'adam' has no decay; set optimizer.decay or use: adamw, adamc";
  EXPECT_EQ(refused("[optimizer]\nname = 'adam'\nweight_decay = 0.1\n"), "run.toml:3: " + line);
  EXPECT_EQ(refused("[optimizer]\nweight_decay = 0.1\n", {{"optimizer.name", "adam"}}), "run.toml:2: " + line);
  EXPECT_EQ(typed({{"optimizer.weight_decay", "0.1"}, {"optimizer.decay", "none"}}).optimizer.recipe.weight_decay, 0.1)
      << "meant";
  EXPECT_EQ(typed({{"optimizer.name", "adam"}}).optimizer.recipe.weight_decay, 0);

  const Flags none{{"optimizer.name", "muon"}, {"optimizer.decay", "none"}};
  EXPECT_EQ(typed(none).optimizer.rest.weight_decay, 0.1) << "taken over, not set";
  Flags strength = none;
  strength.emplace_back("optimizer.rest.weight_decay", "0.2");
  EXPECT_EQ(refused_flags(strength),
            "--optimizer.rest.weight_decay is 0.2, but optimizer 'adamw' has no decay; set optimizer.rest.decay");
}

TEST_F(RunConfigTogether, NumbersThatDoNotFit) {
  EXPECT_EQ(refused("[train]\ngrad_accum = 3\n"),
            "run.toml:2: train.grad_accum is 3, which does not divide train.batch_size 16");
  EXPECT_EQ(refused("[train]\nseq_len = 300\n"), "run.toml:2: train.seq_len is 300; valid: 0 to 128, which is model.context");
  EXPECT_EQ(typed({{"train.seq_len", "300"}, {"model.context", "300"}}).train.seq_len, 300);
  EXPECT_EQ(refused("[train]\nsteps = 10\n[schedule]\nwarmup_steps = 30\n"),
            "run.toml: in [schedule] of 10 steps: warmup_steps is 30; valid: [0, 10]");
  EXPECT_EQ(refused("[schedule]\nkind = 'wsd'\n", {{"train.steps", "10"}, {"schedule.warmup_ratio", "0.9"}}),
            "run.toml and command line: in [schedule] of 10 steps: warmup of 9 steps and cooldown of 2 steps do not fit into "
            "10 steps");
  EXPECT_EQ(refused_flags({{"model.heads", "4"}}),
            "command line: in [model]: heads of the model is 4, which kv_heads 3 does not divide");
  // 100864 x 1e6 of the embedding and 18 layers of 4 x 1e6 x 2048 + 3 x 1e6 x 16384 are 1.13e12 parameters.
  EXPECT_EQ(refused_flags({{"train.tokens_per_param", "1e9"}, {"model.width", "1e6"}}, "gemma-2.3b"),
            "--train.tokens_per_param makes a run of 1.13e+21 tokens; valid: at most 9e+18");
  EXPECT_TRUE(
      refused_flags({{"train.steps", "9223372036854775807"}}).starts_with("--train.steps makes a run of 1.89e+22 tokens"));
  EXPECT_EQ(refused("[optimizer]\nname = 'muon'\nschedule = 'custom'\n"),
            "run.toml: in [optimizer]: coefficients has 0 numbers; schedule 'custom' needs three for each step: a,b,c");
}

}  // namespace run_config_errors_test
}  // namespace cautious::run
