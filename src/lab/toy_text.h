// A toy study as text: the table and sentences for the terminal, the CSV and JSON files.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/toy.h"

namespace cautious {

// One line of what all arms share.
std::string settings(const ToyOptions& options);

// The verdict as one line: "circle: Adam ends ...; AdamW ends ...; Adam + CWD ends ..."
std::string in_words(const ToyStudy& study);

// "yes" or "no"; "-" where there is no box.
std::string_view in_box(const ToyStudy& study, const ToyRun& run);

std::string toy_table(std::span<const ToyStudy> studies);

// Columns objective, arm, step, x, y, f; about 500 rows per path, the first and last point among them.
std::string toy_csv(std::span<const ToyStudy> studies);

std::string toy_json(std::span<const ToyStudy> studies);

}  // namespace cautious
