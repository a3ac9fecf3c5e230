// What follows from a configuration: lengths, schedules and parameter groups.
#include <algorithm>
#include <cmath>

#include "run/config.h"
#include "run/config_keys.h"

namespace cautious::run {
namespace {

DecaySwitch vector_decay(const RunConfig& config) {
  return config.optimizer.decay_vectors ? DecaySwitch::on : DecaySwitch::off;
}

// Vectors first: the output's bias is one. Then embedding and output, by name.
std::vector<Route> routes_with(const std::string& ends) {
  return {{.group = "vectors", .max_rank = 1},
          {.group = ends, .pattern = "model.embed_tokens.*"},
          {.group = ends, .pattern = "lm_head.*"},
          {.group = "matrices"}};
}

}  // namespace

std::int64_t sequence_length(const RunConfig& config) {
  return config.train.seq_len > 0 ? config.train.seq_len : config.model.shape.context;
}

std::int64_t steps_of(const RunConfig& config) {
  const RunConfig::Train& train = config.train;
  if (train.steps > 0) return train.steps;
  const std::int64_t per_step = train.batch_size * sequence_length(config);
  if (train.tokens > 0) return (train.tokens - 1) / per_step + 1;
  const auto parameters = static_cast<double>(size_of(config.model.shape, 1, 1, false).parameters);
  const double steps = std::ceil(train.tokens_per_param * parameters / static_cast<double>(per_step));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

Schedule schedule_of(const RunConfig& config) {
  const RunConfig::Schedule& schedule = config.schedule;
  return {.kind = schedule.kind,
          .lr = config.optimizer.lr,
          .steps = steps_of(config),
          .warmup_steps = schedule.warmup_steps,
          .warmup_ratio = schedule.warmup_ratio,
          .final = schedule.final,
          .cooldown = schedule.cooldown,
          .cooldown_curve = schedule.cooldown_curve};
}

DecaySchedule decay_schedule_of(const RunConfig& config) {
  return {.curve = config.schedule.decay_curve, .steps = steps_of(config), .final = config.schedule.decay_final};
}

Routing routing_of(const RunConfig& config) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  if (!works_on_matrices(optimizer.recipe.rule)) {
    return {{{.name = "matrices", .recipe = optimizer.recipe},
             {.name = "embedding", .recipe = optimizer.recipe},
             {.name = "vectors", .recipe = optimizer.recipe, .decay = vector_decay(config)}},
            routes_with("embedding")};
  }
  const double multiplier = optimizer.rest_lr_multiplier;
  return {{{.name = "matrices", .recipe = optimizer.recipe},
           {.name = "rest", .recipe = optimizer.rest, .lr_multiplier = multiplier},
           {.name = "vectors", .recipe = optimizer.rest, .lr_multiplier = multiplier, .decay = vector_decay(config)}},
          routes_with("rest")};
}

}  // namespace cautious::run
