// Checkpoints of a run: checkpoints/step_00001000/ with model.safetensors, config.json and tokenizer.json (which other tools
// load), optimizer.safetensors and state.json. A checkpoint is written aside, synced and renamed: it is complete or not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace cautious::run {

struct CheckpointInfo {
  std::int64_t step;
  std::filesystem::path path;
};

// Complete checkpoints, oldest first.
std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder);

// Which checkpoints stay: the newest `keep`, and the one that was saved as the best, to which the link `best` leads.
struct Keeping {
  std::int64_t keep;
  bool best = false;  // the one that is being saved is the best so far
};

// Calls `write` with a folder to write the files into, then makes it checkpoint `step`, and removes those that do not stay. On
// failure the older checkpoints stay and what was written is removed.
void write_checkpoint(const std::filesystem::path& folder, std::int64_t step, Keeping keeping,
                      const std::function<void(const std::filesystem::path& aside)>& write);

// Removes what a killed process left, and the checkpoints that do not stay.
void tidy_checkpoints(const std::filesystem::path& folder, std::int64_t keep);

// What a user means by a run directory (its newest checkpoint), the folder of a checkpoint or of a Hugging Face model, a GGUF
// file, a file of llama2.c or a folder with one, or the name of a known model that was fetched: a path for
// model::open_weights(). Otherwise an Error(Fault::data) that says what was looked for.
std::filesystem::path find_checkpoint(const std::filesystem::path& run);
// The folder with the tokenizer of that path.
std::filesystem::path tokenizer_beside(const std::filesystem::path& model);

}  // namespace cautious::run
