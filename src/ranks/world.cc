#include "ranks/world.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "ranks/groups.h"
#include "ranks/wire.h"

namespace cautious::ranks {

World::World() = default;
World::World(const Place& place, std::chrono::seconds timeout) : place_(place) {
  if (place.ranks > 1) parts_ = std::make_unique<Parts>(place, timeout);
}
World::~World() = default;

Traffic World::traffic() const {
  if (!parts_) return {};
  const std::lock_guard lock(parts_->mutex);
  return parts_->traffic;
}

Share World::share() {
  return {rank(), ranks(), [this](std::span<const Piece> pieces, const Share::Prepare& prepare) { exchange(pieces, prepare); }};
}

namespace {

// Pieces, or parts of them, that travel together: in a buffer of each owner.
class Window {
 public:
  explicit Window(int ranks) : buffers_(static_cast<std::size_t>(ranks)), sizes_(static_cast<std::size_t>(ranks)) {}

  void add(const Piece& part) {
    parts_.push_back(part);
    sizes_[static_cast<std::size_t>(part.owner)] += static_cast<std::int64_t>(part.bytes);
  }
  bool empty() const { return parts_.empty(); }

  void pack(int rank) {
    for (std::size_t r = 0; r < buffers_.size(); ++r) {
      if (sizes_[r] > 0) buffers_[r] = at::empty({sizes_[r]}, at::kByte);
    }
    each([&](const Piece& part, std::uint8_t* at) {
      if (part.owner == rank) std::memcpy(at, part.data, part.bytes);
    });
  }
  void unpack(int rank) {
    each([&](const Piece& part, const std::uint8_t* at) {
      if (part.owner != rank) std::memcpy(part.data, at, part.bytes);
    });
  }

  std::vector<at::Tensor>& buffers() { return buffers_; }
  std::int64_t size(int owner) const { return sizes_[static_cast<std::size_t>(owner)]; }
  std::vector<std::shared_ptr<World::Transfer>> transfers = {};

 private:
  template <class Body>
  void each(Body body) {
    std::vector<std::size_t> used(buffers_.size());
    for (const Piece& part : parts_) {
      const auto owner = static_cast<std::size_t>(part.owner);
      body(part, buffers_[owner].data_ptr<std::uint8_t>() + used[owner]);
      used[owner] += part.bytes;
    }
  }

  std::vector<Piece> parts_;
  std::vector<at::Tensor> buffers_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

void World::exchange(std::span<const Piece> pieces, const Share::Prepare& prepare) {
  if (!parts_) return;
  constexpr std::size_t kWindow = std::size_t{8} << 20;
  std::vector<Window> windows;  // two at most: one is packed while the other travels
  const auto finish_first = [&] {
    for (const auto& transfer : windows.front().transfers) parts_->wait(*transfer);
    windows.front().unpack(rank());
    windows.erase(windows.begin());
  };
  const auto send = [&](Window window, std::size_t end) {  // of the pieces before that
    if (prepare) prepare(end);
    if (window.empty()) return;
    window.pack(rank());
    for (int owner = 0; owner < ranks(); ++owner) {
      if (window.size(owner) == 0) continue;
      std::vector<at::Tensor> tensors{window.buffers()[static_cast<std::size_t>(owner)]};
      c10d::BroadcastOptions options;
      options.rootRank = owner;
      const std::int64_t sent = owner == rank() ? window.size(owner) * (ranks() - 1) : 0;
      window.transfers.push_back(parts_->watched(parts_->group->broadcast(tensors, options), tensors, sent));
    }
    windows.push_back(std::move(window));
    if (windows.size() > 1) finish_first();
  };
  Window window(ranks());
  std::size_t room = kWindow;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    for (std::size_t done = 0; done < piece.bytes;) {
      const std::size_t bytes = std::min(piece.bytes - done, room);
      window.add({piece.owner, static_cast<std::byte*>(piece.data) + done, bytes});
      done += bytes;
      room -= bytes;
      if (room > 0) continue;
      send(std::exchange(window, Window(ranks())), i + 1);
      room = kWindow;
    }
  }
  send(std::move(window), pieces.size());
  while (!windows.empty()) finish_first();
}

std::shared_ptr<World::Transfer> World::start(const at::Tensor& from, const std::vector<std::int64_t>& from_lengths,
                                              const at::Tensor& to, const std::vector<std::int64_t>& to_lengths) {
  std::vector<std::int64_t> out = to_lengths, in = from_lengths;  // Gloo empties them
  at::Tensor output = to, input = from;
  const std::int64_t sent = (from.numel() - from_lengths[static_cast<std::size_t>(rank())]) * std::int64_t{sizeof(float)};
  const Work work = parts_->on(from.device(), [&](auto& group) { return group.alltoall_base(output, input, out, in); });
  return parts_->watched(work, {from, to}, sent);
}

at::Device World::travels_on(at::Device device) { return parts_ && parts_->carries(device) ? device : at::Device(at::kCPU); }

void World::exchange(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners) {
  if (!parts_) return;
  std::vector<std::shared_ptr<Transfer>> transfers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].numel() == 0) continue;
    std::vector<at::Tensor> bytes{tensors[i].detach().view({-1}).view(at::kByte)};  // Gloo knows no bf16
    c10d::BroadcastOptions options;
    options.rootRank = owners[i];
    const Work work = parts_->on(bytes[0].device(), [&](auto& group) { return group.broadcast(bytes, options); });
    transfers.push_back(parts_->watched(work, bytes, owners[i] == rank() ? bytes[0].numel() * (ranks() - 1) : 0));
  }
  for (const auto& transfer : transfers) parts_->wait(*transfer);
}

void World::finish(Transfer& transfer) { parts_->wait(transfer); }

void World::agree(const std::string& what, const std::string& text) {
  if (!parts_) return;
  const std::string key = "agree/" + what;
  if (first()) parts_->board.set(key, text);
  const std::string theirs = parts_->board.get(key);
  if (theirs == text) {
    gather(char{0});  // returns when all do
    return;
  }
  std::string_view a = theirs, b = text;
  const auto line_of = [](std::string_view& rest) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
  };
  std::string_view one, other;
  do {
    one = line_of(a);
    other = line_of(b);
  } while (one == other);
  throw Error(Fault::usage, fmt::format("rank {} has another {} than rank 0: {}, rank 0 has {}", rank(), what,
                                        base::in_quotes(other), base::in_quotes(one)));
}

void World::in_turn(const std::string& what, const std::function<void()>& work) {
  const std::string key = "in turn/" + what + "/" + host_name();
  if (parts_ && !first_here()) parts_->board.get(key);
  work();
  if (parts_ && first_here()) parts_->board.set(key, "");
}

void World::at_step(std::int64_t step) {
  if (!parts_) return;
  parts_->step = step;
  parts_->board.working(step);
}

void World::fail(const std::string& why) {
  if (parts_) parts_->board.fail(why);
}

}  // namespace cautious::ranks
