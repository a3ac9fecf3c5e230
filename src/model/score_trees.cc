#include "model/score_parts.h"

#include <algorithm>
#include <limits>

namespace cautious::model {
namespace {

constexpr std::int64_t kLeastPrefix = 16;  // tokens that items must have in common to share them
constexpr std::int64_t kLeastSaved = 512;  // tokens that a group must save: its batches are its own, and may be small

ScoredText scored_text(const data::ChoiceTokens& choice, std::int64_t context) {
  const Tokens all(choice.tokens);
  const auto kept = std::min(all.size(), static_cast<std::size_t>(context) + 1);
  const Tokens inputs = all.last(kept).first(kept - 1);
  return {inputs, all.last(std::min(static_cast<std::size_t>(choice.scored), inputs.size()))};
}

std::size_t common(Tokens a, Tokens b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

bool is_worth_sharing(const PrefixGroup& group, std::int64_t long_trunk) {
  const std::int64_t length = std::ssize(group.prefix);
  return length * (std::ssize(group.items) - 1) >= kLeastSaved || length >= long_trunk;
}

}  // namespace

std::vector<ScoredItem> scored_items(std::span<const std::vector<data::ChoiceTokens>> items, std::int64_t context) {
  std::vector<ScoredItem> scored;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ScoredItem item{i, {}, {}};
    std::size_t shared = std::numeric_limits<std::size_t>::max();
    for (const data::ChoiceTokens& choice : items[i]) {
      const ScoredText text = scored_text(choice, context);
      item.texts.push_back(text);
      shared = std::min({shared, common(item.texts[0].inputs, text.inputs), text.inputs.size() - text.targets.size()});
    }
    item.trunk = item.texts[0].inputs.first(shared);
    scored.push_back(std::move(item));
  }
  return scored;
}

// One more item in a group costs each of the others what the prefix becomes shorter, and saves the prefix that remains.
std::vector<PrefixGroup> grouped(std::vector<ScoredItem>& items, std::int64_t long_trunk) {
  std::sort(items.begin(), items.end(), [](const ScoredItem& a, const ScoredItem& b) {
    return std::lexicographical_compare(a.trunk.begin(), a.trunk.end(), b.trunk.begin(), b.trunk.end());
  });
  std::vector<PrefixGroup> groups;
  PrefixGroup alone, open;
  const auto close = [&] {
    if (is_worth_sharing(open, long_trunk)) {
      groups.push_back(open);
    } else {
      alone.items.insert(alone.items.end(), open.items.begin(), open.items.end());
    }
  };
  for (const ScoredItem& item : items) {
    const auto same = static_cast<std::int64_t>(common(open.prefix, item.trunk)), members = std::ssize(open.items);
    if (same < kLeastPrefix || (members > 1 && same < members * (std::ssize(open.prefix) - same))) {
      close();
      open = {item.trunk, {}};
    } else {
      open.prefix = open.prefix.first(static_cast<std::size_t>(same));
    }
    open.items.push_back(&item);
  }
  close();
  if (!alone.items.empty()) groups.push_back(std::move(alone));
  return groups;
}

TokenTree::TokenTree(const ScoredItem& item, std::int64_t first) : item_(&item) {
  for (const ScoredText& text : item.texts) add(text.inputs.subspan(static_cast<std::size_t>(first)), first);
}

std::int64_t TokenTree::row_of(std::size_t text, std::size_t index) const {
  const std::vector<std::int64_t>& path = paths_[text];
  return path[path.size() - item_->texts[text].targets.size() + index];
}

void TokenTree::fill_hidden(bool* flags) const {
  std::fill(flags, flags + rows() * rows(), true);
  for (const std::vector<std::int64_t>& path : paths_) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) flags[path[i] * rows() + path[j]] = false;
    }
  }
}

void TokenTree::add(Tokens text, std::int64_t first) {
  std::vector<std::int64_t> path;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::size_t same = common(texts_[i], text);
    if (same > path.size()) path.assign(paths_[i].begin(), paths_[i].begin() + static_cast<std::ptrdiff_t>(same));
  }
  for (std::size_t i = path.size(); i < text.size(); ++i) {
    path.push_back(rows());
    tokens.push_back(text[i]);
    positions.push_back(first + static_cast<std::int64_t>(i));
  }
  texts_.push_back(text);
  paths_.push_back(std::move(path));
}

}  // namespace cautious::model
