#include "bench/decode_grid.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <ATen/Parallel.h>

#include "bench/machine.h"
#include "bench/rounds.h"
#include "model/decoder.h"
#include "model/ops/team.h"

namespace cautious::bench {
namespace {

// The weights that a token needs, and the threads that read them.
class Reading {
 public:
  Reading(std::int64_t entries, int threads) : values_(static_cast<std::size_t>(entries), 1.0f), team_(threads) {}

  void run() {
    constexpr std::int64_t kChunk = 16 << 10;
    const auto entries = static_cast<std::int64_t>(values_.size());
    team_.run((entries + kChunk - 1) / kChunk, [&](std::int64_t chunk) {
      const std::int64_t first = chunk * kChunk;
      read_all(values_.data() + first, static_cast<std::size_t>(std::min(kChunk, entries - first)));
    });
  }

 private:
  std::vector<float> values_;
  model::ops::Team team_;
};

// Seconds of one call: what is short is repeated until it takes this long.
double seconds_of(const std::function<void()>& call) {
  constexpr double kLong = 0.02;
  const auto start = Clock::now();
  int calls = 0;
  do {
    call();
    ++calls;
  } while (seconds_since(start) < kLong);
  return seconds_since(start) / calls;
}

}  // namespace

void run_decode_grid(const ModelGrid& grid, const std::function<void(const std::string&)>& begin,
                     const std::function<void(const DecodeRow&)>& done) {
  constexpr std::int64_t kPrompt = 16;
  at::set_num_threads(grid.threads);
  for (const std::string& name : grid.presets) {
    const model::ModelConfig config = model::preset(name);
    DecodeRow row{.preset = name, .parameters = model::size_of(config, 1, 1, false).parameters, .threads = grid.threads};
    begin(name);
    const model::Transformer model(config, 1);
    // A tied embedding is the output matrix; of another one, a token reads a row.
    Reading weights(row.parameters - (config.tied ? 0 : config.vocab * config.width), grid.threads);
    model::Decoder decoder(model);
    decoder.feed(std::vector<std::int64_t>(kPrompt, 1));
    const auto token = [&] {
      if (decoder.position() == config.context) decoder.rewind(kPrompt);
      const std::int64_t next = decoder.position() % config.vocab;
      decoder.feed({&next, 1});
    };
    std::vector<double> decoding, reading, ratio;
    for (int round = 0; round <= grid.rounds; ++round) {
      const double decoded = seconds_of(token), read = seconds_of([&] { weights.run(); });
      if (round == 0) continue;  // memory and threads are new
      decoding.push_back(decoded);
      reading.push_back(read);
      ratio.push_back(read / decoded);
    }
    row.tokens_per_s = 1 / median(decoding);
    row.limit_tokens_per_s = 1 / median(reading);
    row.ratio = median(ratio);
    done(row);
  }
}

}  // namespace cautious::bench
