#include "data/tokenizer/piece_counts.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

namespace cautious::data {
namespace {

constexpr std::size_t kPart = 256 * 1024;        // bytes that a thread takes at a time
constexpr std::size_t kBatch = 8 * 1024 * 1024;  // bytes of small documents that are counted together
// Every merge walks through the pieces it changes, so one endless piece would make all merges slow; it counts as several.
constexpr std::size_t kLongest = 1024;

void add_piece(PieceCounts& counts, std::string_view piece) {
  for (; !piece.empty(); piece.remove_prefix(std::min(kLongest, piece.size()))) {
    const std::string_view part = piece.substr(0, kLongest);
    const auto found = counts.find(part);
    if (found == counts.end()) {
      counts.emplace(part, 1);
    } else {
      ++found->second;
    }
  }
}

}  // namespace

PieceCounter::PieceCounter(std::string_view pattern, int threads)
    : pattern_(std::string(pattern)), counts_(static_cast<std::size_t>(std::max(threads, 1))) {}

void PieceCounter::count(const std::vector<std::string_view>& texts) {
  std::vector<std::string_view> parts;
  for (const std::string_view text : texts) {
    const auto some = pattern_.parts(text, kPart);
    parts.insert(parts.end(), some.begin(), some.end());
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&](PieceCounts& counts) {
    for (std::size_t i = next++; i < parts.size(); i = next++)
      pattern_.each_piece(parts[i], [&](std::string_view piece) { add_piece(counts, piece); });
  };
  std::vector<std::future<void>> running;
  for (std::size_t i = 1; i < std::min(counts_.size(), parts.size()); ++i)
    running.push_back(std::async(std::launch::async, work, std::ref(counts_[i])));
  work(counts_[0]);
  for (auto& helper : running) helper.get();
}

void PieceCounter::count_kept() {
  count({kept_.begin(), kept_.end()});
  kept_.clear();
  kept_bytes_ = 0;
}

void PieceCounter::add(std::string_view text) {
  if (text.size() >= kBatch) return count({text});
  kept_.emplace_back(text);
  kept_bytes_ += text.size();
  if (kept_bytes_ >= kBatch) count_kept();
}

PieceCounts PieceCounter::take() {
  count_kept();
  PieceCounts all = std::move(counts_[0]);
  for (std::size_t i = 1; i < counts_.size(); ++i) {
    for (const auto& [piece, times] : counts_[i]) all[piece] += times;
  }
  counts_.assign(counts_.size(), {});
  return all;
}

}  // namespace cautious::data
