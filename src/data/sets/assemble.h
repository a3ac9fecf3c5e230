// What training reads, made from the unpacked packages of a known set.
#pragma once

#include <filesystem>

#include "data/sets/catalog.h"

namespace cautious::data {

// Both folders exist; `into` is empty. A package that does not hold what it should is an Error(Fault::data).
void assemble(const KnownSet& set, const std::filesystem::path& unpacked, const std::filesystem::path& into);

}  // namespace cautious::data
