// How likely a model finds the choices of multiple-choice items. What texts have in common is computed once: an item's choices
// share their context, and items of one subject their examples.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "data/tasks/task.h"
#include "model/transformer.h"

namespace cautious::model {

using ScoreItem = std::vector<data::ChoiceTokens>;

// Whether a text of the item is longer than the model's context and loses its beginning.
bool is_cut(const Transformer& model, const ScoreItem& item);

// Sums of the log-probabilities of each choice's own tokens. `done` is called once per item, in any order, between batches;
// what it throws ends the work. The sums are those of a forward pass over each whole text, up to rounding (relative 1e-5),
// which depends on the other items. A sum that is not finite is an Error(Fault::data).
void score(const Transformer& model, std::span<const ScoreItem> items,
           const std::function<void(std::size_t item, const std::vector<double>& sums)>& done);

}  // namespace cautious::model
