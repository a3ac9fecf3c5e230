// The optimizer's state: where it lives, and its safetensors file. Loading checks everything before it changes anything.
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "optim/parts.h"
#include "optim/recipe_line.h"

namespace cautious {
namespace {

using optim::Slot;

constexpr const char* kFormat = "cautious optimizer state 1";
constexpr Range kStepNumbers{0, 0x1p62, false, false};
constexpr const char* kAfterRecipe = " lr_multiplier=";

std::string type_name(Element element) { return element == Element::f64 ? "F64" : element == Element::f32 ? "F32" : "BF16"; }

// All pieces of a slot's state with their sizes; the one list that state(), save() and load() share.
struct StatePiece {
  std::string name, type;
  std::byte* data;
  std::size_t size;  // of an entry
  Slice kept;        // the entries that are here

  std::size_t bytes() const { return (kept.last - kept.first) * size; }
};

std::vector<StatePiece> pieces(Slot& slot) {
  std::vector<StatePiece> found;
  found.reserve(4);
  const char* moment_names[] = {"m", "v"};
  for (int which = 0; which < slot.moments; ++which) {
    found.push_back({moment_names[which], type_name(slot.moment), slot.moment_data[which], size_of(slot.moment), slot.own});
  }
  if (slot.split && slot.count > 0) found.push_back({"low", "I16", reinterpret_cast<std::byte*>(slot.low), 2, slot.own});
  const Element element = slot.parameter.element;
  if (!slot.x0.empty()) found.push_back({"x0", type_name(element), slot.x0.data(), size_of(element), {0, slot.count}});
  return found;
}

// What must be equal for the continuation to be the same run.
std::string identity(const Slot& slot, const Group& group) {
  return fmt::format("{}{}{} decay_switch={} element={} shape=[{}]", to_string(group.recipe), kAfterRecipe, group.lr_multiplier,
                     group.decay == DecaySwitch::on ? "on" : "off", name_of(slot.parameter.element),
                     fmt::join(slot.parameter.shape, ", "));
}

std::string identity(const Options& options) { return base::to_line(base::fields_of(options, Options::identity())); }

double density_of(Slot& slot) {
  const double* density = density_in(slot.decay);
  return density != nullptr ? *density : 0;
}

const std::string& entry(const base::Metadata& metadata, const std::string& key, const std::string& file) {
  const auto found = metadata.find(key);
  if (found == metadata.end())
    throw Error(Fault::data, fmt::format("{}: the optimizer state lacks {}", file, base::in_quotes(key)));
  return found->second;
}

void require_equal(const std::string& file, const std::string& what, const std::string& there, const std::string& here) {
  if (there == here) return;
  throw Error(Fault::data, fmt::format("{}: {} differs: the file has '{}', this optimizer '{}'", file, what,
                                       base::in_one_line(there), base::in_one_line(here)));
}

// Numbers of the metadata; what is wrong in them is the file's fault.
std::int64_t whole_number(const std::string& text, const std::string& key, const std::string& file) try {
  return base::to_integer(key, text, kStepNumbers);
} catch (const Error& error) {
  throw error.within(file, Fault::data);
}

double fraction(const std::string& text, const std::string& key, const std::string& file) try {
  return base::to_number(key, text, kFraction);
} catch (const Error& error) {
  throw error.within(file, Fault::data);
}

// A file that fits the slots in every respect, or an Error.
class StateFile {
 public:
  StateFile(const std::filesystem::path& path, std::vector<Slot>& slots, const Routing& routing, const Options& options);

  std::span<const std::byte> data(const Slot& slot, const StatePiece& piece) const {
    return source_.data(source_.require(slot.parameter.name + "." + piece.name));
  }
  std::int64_t steps() const { return step_; }
  std::int64_t steps_of(std::size_t slot) const { return steps_[slot]; }
  double density(std::size_t slot) const { return densities_[slot]; }

 private:
  base::Safetensors source_;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> steps_;
  std::vector<double> densities_;
};

StateFile::StateFile(const std::filesystem::path& path, std::vector<Slot>& slots, const Routing& routing,
                     const Options& options)
    : source_(base::Safetensors::read(path)) {
  const base::Metadata& metadata = source_.metadata();
  const std::string file = path.string();
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat) {
    throw Error(Fault::data, fmt::format("{}: not an optimizer state written by cautious (no format '{}')", file, kFormat));
  }
  require_equal(file, "the options", entry(metadata, "options", file), identity(options));
  step_ = whole_number(entry(metadata, "step", file), "step", file);
  std::size_t found = 0;
  for (Slot& slot : slots) {
    const std::string& name = slot.parameter.name;
    require_equal(file, "the recipe of " + base::in_quotes(name),
                  optim::up_to_date(entry(metadata, name + ".recipe", file), kAfterRecipe),
                  identity(slot, routing.groups[slot.group]));
    steps_.push_back(whole_number(entry(metadata, name + ".t", file), base::in_one_line(name + ".t"), file));
    densities_.push_back(fraction(entry(metadata, name + ".density", file), base::in_one_line(name + ".density"), file));
    for (const StatePiece& piece : pieces(slot)) {
      const base::TensorInfo& tensor = source_.require(name + "." + piece.name);
      require_equal(file, "the type of " + base::in_quotes(tensor.name), tensor.type, piece.type);
      require_equal(file, "the shape of " + base::in_quotes(tensor.name), fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                    fmt::format("[{}]", fmt::join(slot.parameter.shape, ", ")));
      ++found;
    }
  }
  if (found != source_.tensors().size() || metadata.size() != 3 + 3 * slots.size()) {
    throw Error(Fault::data, fmt::format("{}: the file has state of {} tensors, this optimizer has {} tensors", file,
                                         (metadata.size() - 3) / 3, slots.size()));
  }
}

}  // namespace

namespace optim {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kStagger = (64 + 4) * 1024 + 256;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to = kAlign) { return (bytes + to - 1) / to * to; }

// Pages of 2 MiB where the system has them for those who ask: a step from memory is 5% faster. Nothing depends on the answer.
void ask_for_huge_pages([[maybe_unused]] std::byte* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = rounded_up(begin, kHuge), last = (begin + bytes) / kHuge * kHuge;
  if (first < last) madvise(memory + (first - begin), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace

std::vector<std::vector<std::byte*>> Arena::allocate(const std::vector<std::vector<std::size_t>>& bytes) {
  std::size_t streams = 0, total = kAlign;
  for (const auto& row : bytes) {
    streams = std::max(streams, row.size());
    for (const std::size_t block : row) total += rounded_up(block);
  }
  // calloc leaves large blocks untouched until the first step writes them, on the thread that will use them.
  total += (streams + 1) * kStagger;
  memory_.emplace_back(static_cast<std::byte*>(std::calloc(total, 1)));
  if (memory_.back() == nullptr) throw std::bad_alloc();
  ask_for_huge_pages(memory_.back().get(), total);
  std::byte* next = memory_.back().get();
  next += (kAlign - reinterpret_cast<std::uintptr_t>(next) % kAlign) % kAlign;

  std::vector<std::vector<std::byte*>> blocks(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) blocks[i].resize(bytes[i].size());
  for (std::size_t stream = 0; stream < streams; ++stream) {
    next += kStagger;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (stream >= bytes[i].size() || bytes[i][stream] == 0) continue;
      blocks[i][stream] = next;
      next += rounded_up(bytes[i][stream]);
    }
  }
  return blocks;
}

}  // namespace optim

void Optimizer::Parts::ensure_state() {
  if (slots_with_state == slots.size()) return;
  std::vector<std::size_t> fresh;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s].has_state) fresh.push_back(s);
  }
  deal(fresh);
  std::vector<std::vector<std::size_t>> bytes;
  for (const std::size_t s : fresh) {
    const Slot& slot = slots[s];
    const std::size_t count = slot.own.last - slot.own.first, moment = count * size_of(slot.moment);
    bytes.push_back({slot.moments > 0 ? moment : 0, slot.moments > 1 ? moment : 0, slot.split ? count * 2 : 0,
                     slot.whole_tensor ? count * size_of(compute_element(slot)) : 0});
  }
  const auto blocks = arena.allocate(bytes);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    Slot& slot = slots[fresh[i]];
    slot.moment_data[0] = blocks[i][0];
    slot.moment_data[1] = blocks[i][1];
    slot.low = reinterpret_cast<std::int16_t*>(blocks[i][2]);
    slot.u = blocks[i][3];
    slot.has_state = true;
  }
  slots_with_state = slots.size();
}

std::vector<StateTensor> Optimizer::state(std::size_t tensor) const {
  (void)steps_of(tensor);  // refuses an index out of range
  parts_->ensure_state();
  std::vector<StateTensor> found;
  for (const StatePiece& piece : pieces(parts_->slots[tensor])) {
    found.push_back({piece.name, piece.type, piece.data, piece.bytes()});
  }
  return found;
}

void Optimizer::set_steps(std::size_t tensor, std::int64_t t) {
  (void)steps_of(tensor);  // refuses an index out of range
  base::check_range("t", static_cast<double>(t), kStepNumbers);
  parts_->slots[tensor].t = t;
  parts_->report.step = std::max(parts_->report.step, t);
}

void Optimizer::save(const std::filesystem::path& path) const {
  Parts& p = *parts_;
  p.ensure_state();
  struct Kept {
    Slot* slot;
    StatePiece piece;
  };
  std::vector<Kept> all;
  std::vector<base::TensorInfo> tensors;
  base::Metadata metadata{{"format", kFormat}, {"options", identity(p.options)}, {"step", std::to_string(p.report.step)}};
  for (Slot& slot : p.slots) {
    const std::string& name = slot.parameter.name;
    metadata[name + ".recipe"] = identity(slot, p.routing.groups[slot.group]);
    metadata[name + ".t"] = std::to_string(slot.t);
    metadata[name + ".density"] = base::to_text(density_of(slot));
    for (StatePiece& piece : pieces(slot)) {
      tensors.push_back({name + "." + piece.name, piece.type, slot.parameter.shape, 0, slot.count * piece.size});
      all.push_back({&slot, std::move(piece)});
    }
  }
  const Share& share = p.options.share;
  const auto fill = [&](std::size_t i, std::span<std::byte> bytes) {
    const auto& [slot, piece] = all[i];
    if (piece.bytes() > 0) std::memcpy(bytes.data() + piece.kept.first * piece.size, piece.data, piece.bytes());
    if (share.ranks == 1) return;
    std::vector<Piece> slices;
    optim::add_pieces(*slot, bytes.data(), piece.size, slices);
    share.exchange(slices, {});
  };
  if (share.rank == 0) {
    base::write_safetensors(path, tensors, metadata, fill);
    return;
  }
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.resize(tensors[i].end);
    fill(i, bytes);
  }
}

void Optimizer::load(const std::filesystem::path& path) {
  Parts& p = *parts_;
  p.ensure_state();
  std::optional<const StateFile> source;  // where it is read
  if (p.options.share.rank == 0) source.emplace(path, p.slots, p.routing, p.options);
  const auto from_first = [&](std::span<std::byte> bytes) {
    const Piece piece{0, bytes.data(), bytes.size()};
    if (p.options.share.ranks > 1) p.options.share.exchange({&piece, 1}, {});
  };
  const auto number_from_first = [&](auto number) {
    from_first(std::as_writable_bytes(std::span(&number, 1)));
    return number;
  };
  std::vector<std::byte> bytes;
  for (std::size_t s = 0; s < p.slots.size(); ++s) {
    Slot& slot = p.slots[s];
    for (const StatePiece& piece : pieces(slot)) {
      std::span<const std::byte> all = source ? source->data(slot, piece) : std::span<const std::byte>();
      if (p.options.share.ranks > 1) {
        bytes.resize(slot.count * piece.size);
        std::ranges::copy(all, bytes.begin());
        from_first(bytes);
        all = bytes;
      }
      if (piece.bytes() > 0) std::memcpy(piece.data, all.data() + piece.kept.first * piece.size, piece.bytes());
    }
    slot.t = number_from_first(source ? source->steps_of(s) : 0);
    const double density = number_from_first(source ? source->density(s) : 0);
    if (double* own = density_in(slot.decay)) *own = density;
  }
  p.report.step = number_from_first(source ? source->steps() : 0);
}

}  // namespace cautious
