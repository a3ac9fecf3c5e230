// What the summaries of runs say about their size and where they come from.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "report/table.h"

namespace cautious::study {

struct RunFacts {
  double parameters = 0, tokens = 0;  // of the largest run; 0 if no summary says
  // "cpu", and the different values of all summaries.
  std::vector<std::pair<std::string, std::vector<std::string>>> provenance;
};

// Of run directories; one without a summary is left out, and a key that a summary does not have too.
RunFacts facts_of(const std::vector<std::filesystem::path>& runs);

report::Table provenance_table(const RunFacts& facts);

// "1.3 million".
std::string count_words(double count);

}  // namespace cautious::study
