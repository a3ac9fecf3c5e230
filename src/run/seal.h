// The seal of a checkpoint: state.json holds the SHA-256 of every other file of the folder, and of its own text. It tells a
// checkpoint that was put together from two, or one with a flipped bit, from the one that was saved; it is no signature.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cautious::run {

// The object `state` (JSON) with "files", the sums of the files in `folder`, and "sha256", that of all before it.
std::string sealed(std::string_view state, const std::filesystem::path& folder);

// An Error(Fault::data) that names the file which is not the one that was saved. A state.json without a seal, of an earlier
// version, passes.
void check_seal(const std::filesystem::path& folder);

}  // namespace cautious::run
