// Three batches are in memory: the caller's and two that are being prepared. Workers take slices of the earliest batch that has
// some left; who finishes the last slice mixes the images. Unreadable images are counted when the caller gets their batch, so
// that what is counted does not depend on the workers' pace.
#include "data/images/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include <cautious/error.h>
#include "data/images/augmentation.h"
#include "data/images/draws.h"
#include "data/images/pixel_table.h"
#include "data/permutation.h"

namespace cautious::data {
namespace {

enum class LoaderKey : std::uint64_t { image, batch };

struct BadImage {
  std::int64_t position, index;
  std::string reason;
};

// A batch being made. All but the pixels and the labels is behind the mutex.
struct BatchSlot {
  std::int64_t number = -1;  // of the batch
  std::int64_t given = 0;    // images handed out
  std::int64_t done = 0;     // and prepared
  bool ready = false;
  std::vector<BadImage> bad = {};
  std::exception_ptr error = {};
  ImageBatch batch = {};
};

struct BatchSlice {
  BatchSlot* slot = nullptr;
  std::int64_t first = 0, last = 0;
};

// Memory of one thread.
struct Workspace {
  Image image, scratch;
};

const LoaderSpec& checked_spec(const ImageSet& set, const LoaderSpec& spec) {
  if (spec.batch >= 1 && spec.view.size >= 1 && spec.workers >= 0 && set.size() >= 1) return spec;
  throw Error(Fault::usage,
              fmt::format("batches of {} images of size {} by {} workers from a set of {}; at least 1, 1, 0 and 1", spec.batch,
                          spec.view.size, spec.workers, set.size()));
}

}  // namespace

struct Loader::Parts {
  const ImageSet& set;
  const LoaderSpec spec;
  const PixelTable table;
  const std::int64_t pixels;  // of an image
  const std::int64_t slice;   // images
  std::set<std::int64_t> bad;
  std::vector<std::string> reasons;  // of the bad ones

  std::mutex mutex;
  std::condition_variable_any work, progress;
  std::int64_t first = 0;  // the caller's batch
  std::vector<BatchSlot> slots;
  std::vector<std::jthread> workers;  // last, so that they end before the rest does

  Parts(const ImageSet& images, const LoaderSpec& wanted)
      : set(images),
        spec(checked_spec(images, wanted)),
        table(spec.view.normalization, set.channels()),
        pixels(spec.view.size * spec.view.size * set.channels()),
        slice(std::clamp<std::int64_t>(spec.batch / (2 * spec.workers + 1), 1, 64)),
        slots(spec.workers > 0 ? 3 : 1) {
    for (std::int64_t i = 0; i < spec.workers; ++i) {
      workers.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    }
  }

  BatchSlot& slot_of(std::int64_t number) { return slots[static_cast<std::size_t>(number) % slots.size()]; }
  std::int64_t end() const { return first + static_cast<std::int64_t>(slots.size()); }

  void prepare(BatchSlot& slot, std::int64_t position, Workspace& space) {
    const auto sample =
        static_cast<std::uint64_t>(slot.number) * static_cast<std::uint64_t>(spec.batch) + static_cast<std::uint64_t>(position);
    const auto size = static_cast<std::uint64_t>(set.size()), epoch = sample / size;
    const std::uint64_t number = permuted(sample % size, size, epoch_key(spec.seed, epoch));
    const auto index = static_cast<std::int64_t>(number);
    const std::uint64_t key = key_of(spec.seed, {static_cast<std::uint64_t>(LoaderKey::image), epoch, number});
    float* const out = slot.batch.pixels.data() + position * pixels;
    std::int64_t& label = slot.batch.label[static_cast<std::size_t>(position)];
    try {
      set.read(index, space.image);
      augment(spec.augment, spec.view.size, key, space.image, space.scratch);
      table.put(space.image, out);
      erase(spec.augment, spec.view.size, set.channels(), key, out);
      label = set.label(index);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      std::fill_n(out, pixels, 0.0F);
      label = -1;
      const std::lock_guard lock(mutex);
      slot.bad.push_back({position, index, error.what()});
    }
  }

  // The slot's first exception is kept for the caller.
  template <class Work>
  void guarded(BatchSlot& slot, const Work& job) {
    try {
      job();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!slot.error) slot.error = std::current_exception();
    }
  }

  void make(const BatchSlice& part, Workspace& space) {
    BatchSlot& slot = *part.slot;
    guarded(slot, [&] {
      for (std::int64_t i = part.first; i < part.last; ++i) prepare(slot, i, space);
    });
    std::unique_lock lock(mutex);
    slot.done += part.last - part.first;
    if (slot.done == spec.batch) {
      lock.unlock();
      const auto number = static_cast<std::uint64_t>(slot.number);
      const std::uint64_t key = key_of(spec.seed, {static_cast<std::uint64_t>(LoaderKey::batch), number});
      guarded(slot, [&] { mix(spec.augment, spec.view.size, set.channels(), key, slot.batch); });
      lock.lock();
      slot.ready = true;
    }
    progress.notify_all();
  }

  // The earliest one that nobody has, or none. With the mutex.
  BatchSlice next_slice() {
    for (std::int64_t number = first; number < end(); ++number) {
      BatchSlot& slot = slot_of(number);
      if (slot.number != number || slot.given == spec.batch) continue;
      const std::int64_t from = std::exchange(slot.given, std::min(spec.batch, slot.given + slice));
      return {&slot, from, slot.given};
    }
    return {};
  }

  void serve(const std::stop_token& stop) {
    Workspace space;
    for (;;) {
      std::unique_lock lock(mutex);
      BatchSlice part;
      if (!work.wait(lock, stop, [&] { return (part = next_slice()).slot != nullptr; })) return;
      lock.unlock();
      make(part, space);
    }
  }

  // What is begun of a batch that nobody wants any more ends first.
  void assign(std::int64_t number, std::unique_lock<std::mutex>& lock) {
    BatchSlot& slot = slot_of(number);
    if (slot.number == number) return;
    progress.wait(lock, [&] { return slot.done == slot.given && (slot.ready || slot.done < spec.batch); });
    ImageBatch batch = std::move(slot.batch);
    slot = {};
    batch.count = spec.batch;
    batch.pixels.resize(static_cast<std::size_t>(spec.batch * pixels));
    batch.label.resize(static_cast<std::size_t>(spec.batch));
    slot.batch = std::move(batch);
    slot.number = number;
  }

  BatchSlot& finished(std::int64_t number) {
    std::unique_lock lock(mutex);
    first = number;
    for (std::int64_t i = first; i < end(); ++i) assign(i, lock);
    work.notify_all();
    BatchSlot& slot = slot_of(number);
    if (workers.empty()) {
      Workspace space;
      for (BatchSlice part = next_slice(); part.slot != nullptr; part = next_slice()) {
        lock.unlock();
        make(part, space);
        lock.lock();
      }
    }
    progress.wait(lock, [&] { return slot.ready; });
    if (!slot.error) return slot;
    slot.number = -1;  // another call tries again
    std::rethrow_exception(slot.error);
  }

  void count_bad(BatchSlot& slot) {
    std::ranges::sort(slot.bad, {}, &BadImage::position);
    for (const BadImage& image : slot.bad) {
      if (!bad.insert(image.index).second) continue;
      reasons.push_back(image.reason);
      if (static_cast<std::int64_t>(bad.size()) > spec.most_bad) break;
    }
    if (static_cast<std::int64_t>(bad.size()) <= spec.most_bad) return;
    throw Error(Fault::data, fmt::format("{} images cannot be read, the last is {}; at most {} are left out: repair or remove "
                                         "them, or raise data.most_bad",
                                         bad.size(), reasons.back(), spec.most_bad));
  }
};

Loader::Loader(const ImageSet& set, const LoaderSpec& spec) : parts_(std::make_unique<Parts>(set, spec)) {}

Loader::~Loader() = default;

const ImageBatch& Loader::batch(std::int64_t number) {
  if (number < 0) throw Error(Fault::usage, fmt::format("batch number {}; the first is 0", number));
  BatchSlot& slot = parts_->finished(number);
  parts_->count_bad(slot);
  return slot.batch;
}

std::vector<std::string> Loader::bad() const { return parts_->reasons; }

}  // namespace cautious::data
