// What a verb looks at before it does anything, and what a dry run looks at in place of doing it.
#pragma once

#include <functional>
#include <string>

#include "run/config.h"

namespace cautious::cli {

// --out of a verb that makes a directory; an Error if it is a file.
void check_out(const std::string& out);

// Calls `open` with the run's configuration, for what opening its data refuses. Nothing is left behind: tokens of a text go to
// a folder that is removed, and a text that takes long is not tokenized, nor are many conversations read. Whether all was
// opened.
using OpenData = std::function<void(const run::RunConfig& config,
                                    const std::function<void(const std::string& what, double part)>& progress)>;
bool look_at_data(const run::RunConfig& config, const OpenData& open);

}  // namespace cautious::cli
