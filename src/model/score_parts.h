// The tokens of items before a model reads them: cut to its context, grouped by what they begin with, and each item a tree in
// which equal beginnings of its texts are the same rows. Knows no libtorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/tasks/task.h"

namespace cautious::model {

using Tokens = std::span<const std::int64_t>;

// A choice as the model reads it, and the tokens that its last inputs are to predict.
struct ScoredText {
  Tokens inputs, targets;
};

struct ScoredItem {
  std::size_t number;
  std::vector<ScoredText> texts;
  Tokens trunk;  // what all its texts begin with, without any row that predicts
};
std::vector<ScoredItem> scored_items(std::span<const std::vector<data::ChoiceTokens>> items, std::int64_t context);

// Items that begin with the same `prefix`, which may be empty.
struct PrefixGroup {
  Tokens prefix;
  std::vector<const ScoredItem*> items;
};
// Sorts the items. A trunk of at least `long_trunk` tokens is a prefix even if no other item shares it.
std::vector<PrefixGroup> grouped(std::vector<ScoredItem>& items, std::int64_t long_trunk);

// The rows of an item behind a prefix of `first` tokens.
class TokenTree {
 public:
  TokenTree(const ScoredItem& item, std::int64_t first);
  // Of a plain text, such as a piece of the prefix.
  TokenTree(Tokens text, std::int64_t first) { add(text, first); }

  std::int64_t rows() const { return std::ssize(tokens); }
  const ScoredItem& item() const { return *item_; }
  // The row that predicts the target at `index` of a text.
  std::int64_t row_of(std::size_t text, std::size_t index) const;
  // rows x rows: true where the second row is not above the first in the tree, nor the row itself.
  void fill_hidden(bool* flags) const;

  std::vector<std::int64_t> tokens = {}, positions = {};  // by row

 private:
  void add(Tokens text, std::int64_t first);

  const ScoredItem* item_ = nullptr;
  std::vector<Tokens> texts_ = {};
  std::vector<std::vector<std::int64_t>> paths_ = {};  // rows of each text
};

}  // namespace cautious::model
