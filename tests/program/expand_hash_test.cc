// What distinguishes the runs of plans from one another: the hash of all that changes their numbers.
#include <set>

#include "study_plan.h"

namespace cautious::study {
namespace expand_hash_test {

// What a run's hash is of: all that changes its numbers, and nothing else.
std::string hash_with(const Overrides& base) { return expand(small(base)).at(0).hash; }

// Every key of a run, with a value that is not its usual one.
const Overrides kChanges{{"model.preset", "nano-300k"},
                         {"model.recompute", "true"},
                         {"model.vocab", "300"},
                         {"model.width", "32"},
                         {"model.layers", "3"},
                         {"model.heads", "4"},
                         {"model.kv_heads", "1"},
                         {"model.head_size", "16"},
                         {"model.hidden", "100"},
                         {"model.context", "64"},
                         {"model.norm", "layer"},
                         {"model.post_norm", "true"},
                         {"model.qk_norm", "true"},
                         {"model.query_scale", "true"},
                         {"model.ffn_bias", "true"},
                         {"model.output_bias", "true"},
                         {"model.tied", "false"},
                         {"model.activation", "gelu"},
                         {"model.rope_base", "0"},
                         {"model.attention_softcap", "5"},
                         {"model.logit_softcap", "5"},
                         {"model.norm_eps", "1e-5"},
                         {"model.init", "xavier"},
                         {"model.qkv_bias", "true"},
                         {"model.o_bias", "true"},
                         {"model.gated", "false"},
                         {"model.embedding_scale", "true"},
                         {"model.score_size", "10"},
                         {"model.window", "16"},
                         {"model.rope_scaling", "linear"},
                         {"model.rope_factor", "3"},
                         {"model.rope_low", "2"},
                         {"model.rope_high", "5"},
                         {"model.rope_original", "64"},
                         {"lora.alpha", "8"},
                         {"lora.dropout", "0.1"},
                         {"lora.rslora", "true"},
                         {"lora.targets", "q_proj"},
                         {"data.path", "other"},
                         {"data.weights", "2"},
                         {"data.val_path", "other"},
                         {"data.val_fraction", "0.1"},
                         {"data.train_tokens", "5000"},
                         {"data.field", "content"},
                         {"data.tokenizer", "x.json"},
                         {"optimizer.name", "adamc"},
                         {"optimizer.lr", "0.0031"},
                         {"optimizer.beta1", "0.8"},
                         {"optimizer.beta2", "0.97"},
                         {"optimizer.eps", "1e-9"},
                         {"optimizer.decay", "cautious"},
                         {"optimizer.coupling", "squared"},
                         {"optimizer.weight_decay", "0.2"},
                         {"optimizer.grad_clip", "2"},
                         {"optimizer.update_rms_clip", "1"},
                         {"optimizer.decay_vectors", "true"},
                         {"optimizer.moments", "bf16"},
                         {"schedule.kind", "wsd"},
                         {"schedule.warmup_steps", "3"},
                         {"schedule.warmup_ratio", "0.03"},
                         {"schedule.final", "0.2"},
                         {"schedule.cooldown", "0.3"},
                         {"schedule.cooldown_curve", "cosine"},
                         {"schedule.decay_curve", "linear"},
                         {"schedule.decay_final", "0.5"},
                         {"train.steps", "10"},
                         {"train.tokens", "10000"},
                         {"train.tokens_per_param", "21"},
                         {"train.batch_size", "8"},
                         {"train.grad_accum", "2"},
                         {"train.seq_len", "32"},
                         {"train.ema", "0.9"},
                         {"train.precision", "bf16"},
                         {"eval.every", "100"},
                         {"eval.tokens", "1000"}};
const Overrides kRecords{{"data.cache", "x"},          {"checkpoint.every", "7"},   {"checkpoint.keep", "3"},
                         {"checkpoint.minutes", "5"},  {"checkpoint.best", "true"}, {"log.prompt", "Light"},
                         {"log.prompt_tokens", "9"},   {"log.every", "3"},          {"log.tensors", "true"},
                         {"log.tensorboard", "false"}, {"log.decay_trace", "true"}, {"train.timeout", "9"},
                         {"train.device", "cuda"},     {"log.command", "cat"}};

TEST(ExpandHash, IsOfWhatChangesTheNumbers) {
  const Overrides base{{"model.preset", "nano-100k"}};
  const std::string hash = hash_with(base);
  std::set<std::string> hashes{hash}, tried;
  for (const auto& change : kChanges) {
    EXPECT_TRUE(
        hashes.insert(hash_with(change.first == "model.preset" ? Overrides{change} : Overrides{base[0], change})).second)
        << change.first;
    tried.insert(change.first);
  }
  for (const auto& change : kRecords) {
    EXPECT_EQ(hash_with({base[0], change}), hash) << change.first;
    tried.insert(change.first);
  }
  const auto change_with = [&](const auto& companion, const auto& change) {
    EXPECT_TRUE(hashes.insert(hash_with({base[0], companion, change})).second) << change.first;
    tried.insert(change.first);
  };
  const Overrides asked{{"eval.tasks", "piqa"}, {"eval.data", "benchmarks"}};
  const std::vector<Overrides> more{{}, {{"eval.data", "others"}}, {{"eval.shots", "3"}}, {{"eval.limit", "9"}}};
  for (const Overrides& other : more) {
    Overrides all{base[0]};
    put(all, asked);
    put(all, other);
    EXPECT_TRUE(hashes.insert(hash_with(all)).second);
  }
  tried.insert({"eval.tasks", "eval.data", "eval.shots", "eval.limit"});
  change_with(Overrides::value_type{"model.rope_base", "0"}, Overrides::value_type{"model.learned_positions", "true"});
  change_with(Overrides::value_type{"model.window", "16"}, Overrides::value_type{"model.full_every", "2"});
  tried.insert({"model.from", "lora.rank"});  // need a model
  tried.insert({"task", "train.seed", "train.threads", "optimizer.density_from", "optimizer.budget_from"});
  for (const run::ConfigKey& key : run::config_keys(run::RunConfig{})) EXPECT_TRUE(tried.contains(key.name)) << key.name;
  Plan other = small(base);
  other.seeds = {1};
  EXPECT_NE(expand(other)[0].hash, hash);
}

TEST(ExpandHash, IsOfTheConfigurationNotOfItsWords) {
  const std::string hash = hash_with({{"optimizer.lr", "1e-3"}, {"train.steps", "10"}});
  EXPECT_EQ(hash_with({{"train.steps", "1e1"}, {"optimizer.lr", "0.0010"}, {"optimizer.beta1", "0.9"}}), hash);
  Plan renamed = small({{"optimizer.lr", "1e-3"}, {"train.steps", "10"}});
  renamed.arms[0].name = "b";
  EXPECT_EQ(expand(renamed)[0].hash, hash);
}

TEST(ExpandHash, OfAControlIsOfTheReferenceRunToo) {
  const auto hash = [](std::string reference_lr, bool density) {
    Plan plan = small({});
    plan.arms[0].overrides = {{"optimizer.decay", "cautious"}, {"optimizer.lr", std::move(reference_lr)}};
    plan.arms.push_back({"b", {{"optimizer.lr", "3"}}, density ? "a" : "", density ? "" : "a"});
    return expand(plan).at(1).hash;
  };
  EXPECT_EQ(hash("1", true), hash("1", true));
  EXPECT_NE(hash("1", true), hash("2", true)) << "its own configuration is the same";
  EXPECT_NE(hash("1", true), hash("1", false));
}

}  // namespace expand_hash_test
}  // namespace cautious::study
