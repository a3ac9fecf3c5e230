// Attention, a block of queries at a time against the keys that it sees: all, or those up to its last token. Forward keeps the
// logarithm of each row's sum of exponentials, from which backward has the probabilities again. Every block is computed the
// same way whoever computes it, and sums over blocks have one order, so bits do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <cautious/error.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/ops/attention_pass.h"

namespace cautious::model::ops {
namespace {

// The last few tables are kept; one for more tokens serves fewer.
template <class T>
std::shared_ptr<const Rotation<T>> rotation_table(std::int64_t tokens, std::int64_t head_size, const Rope& rope) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Rotation<T>>> kept;
  const std::lock_guard lock(mutex);
  std::erase_if(kept, [&](const auto& r) { return r->head_size == head_size && r->rope == rope && r->tokens < tokens; });
  for (const auto& r : kept)
    if (r->head_size == head_size && r->rope == rope) return r;
  const std::vector<double> speeds = rope_speeds(rope, head_size);
  auto made = std::make_shared<Rotation<T>>(Rotation<T>{tokens, head_size, rope, {}, {}});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (const double speed : speeds) {
      const double angle = static_cast<double>(t) * speed;
      made->cosine.push_back(static_cast<T>(std::cos(angle)));
      made->sine.push_back(static_cast<T>(std::sin(angle)));
    }
  }
  if (kept.size() == 8) kept.erase(kept.begin());
  kept.push_back(made);
  return made;
}

// Scores to exponentials, to be divided by their sum. The products read a few entries before the first and after the last that
// a query sees: these become 0.
template <class T>
CAUTIOUS_CLONES void soften(std::int64_t rows, const Seen& seen, T cap, Rows<T> scores, T* sums, T* log_sums) {
  const T shrink = 1 / cap;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t low = seen.from[r], keys = seen.by(r) - low;
    T* __restrict s = scores.row(r) + low;
    if (cap > 0)
      for (std::int64_t j = 0; j < keys; ++j) s[j] = cap * fast_tanh(s[j] * shrink);
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
#pragma omp simd reduction(max : top)
    for (std::int64_t j = 0; j < keys; ++j) top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < keys; ++j) {
      s[j] = fast_exp(s[j] - top);
      sum += s[j];
    }
    for (std::int64_t j = seen.zero_from(r) - low; j < 0; ++j) s[j] = 0;
    for (std::int64_t j = 0; j < kTall; ++j) s[keys + j] = 0;
    sums[r] = sum;
    log_sums[r] = top + std::log(sum);
  }
}

// y = x, each row divided by its number.
template <class T>
CAUTIOUS_CLONES void divide(std::int64_t rows, std::int64_t columns, const T* by, Rows<const T> x, Rows<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T inverse = 1 / by[r];
    const T* __restrict from = x.row(r);
    T* __restrict to = y.row(r);
    for (std::int64_t i = 0; i < columns; ++i) to[i] = from[i] * inverse;
  }
}

}  // namespace

template <class T>
Pass<T>::Pass(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& starts,
              const at::Tensor& log_sum, const AttentionShape& shape)
    : shape_(shape),
      batch_(q.size(0)),
      tokens_(q.size(1)),
      size_(shape.head_size),
      scale_(static_cast<T>(shape.scale)),
      cap_(static_cast<T>(shape.softcap)),
      q_(q, size_),
      k_(k, size_),
      v_(v, size_),
      starts_(starts.defined() ? starts.data_ptr<std::int64_t>() : nullptr),
      log_sum_(log_sum.data_ptr<T>()) {
  if (shape_.window >= tokens_) shape_.window = 0;
  if (shape.rope.base > 0 && tokens_ > 0) rotation_ = rotation_table<T>(tokens_, size_, shape.rope);
}

template <class T>
void Pass<T>::turn(T direction, Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const {
  if (!rotation_) return copy<T>(rows, size_, x, y);
  const std::int64_t half = size_ / 2, skip = first * half;
  rotate<T>(rows, half, direction, rotation_->cosine.data() + skip, rotation_->sine.data() + skip, x, y);
}

template <class T>
void Pass<T>::forward(const at::Tensor& outcome) const {
  const Heads<T> out(outcome, size_);
  const std::int64_t pairs = batch_ * shape_.kv_heads, blocks = (tokens_ + kBlock - 1) / kBlock;
  if (pairs == 0) return;
  // With few heads, each is cut into `parts`: part i has every parts-th block.
  const std::int64_t parts = std::min<std::int64_t>(blocks, (4 * at::get_num_threads() + pairs - 1) / pairs);
  parallel(pairs * parts, [&](std::int64_t job) {
    const std::int64_t b = job % pairs / shape_.kv_heads, kv = job % shape_.kv_heads;
    Room room(*this);
    const Rows<T> keys = room.take(tokens_, size_), turned = room.take(size_, tokens_), values = room.take(tokens_, size_);
    const Rows<T> queries = room.take(kBlock, size_), mixed = room.take(kBlock, size_), scores = room.take(kBlock, tokens_);
    T sums[kBlock];
    load(k_.at(b, kv), 0, tokens_, keys);
    transpose<T>(tokens_, size_, fixed(keys), turned);
    copy<T>(tokens_, size_, v_.at(b, kv), values);
    for_blocks(kv, blocks - 1 - job / pairs, parts, [&](std::int64_t head, std::int64_t first, std::int64_t rows) {
      load(q_.at(b, head).from(first), first, rows, queries);
      const Seen here = seen(b, first, rows);
      meet<T>(rows, here, size_, scale_, fixed(queries), fixed(turned), scores);
      soften<T>(rows, here, cap_, scores, sums, logs(b, head) + first);
      mix<T>(rows, here, size_, 1, fixed(scores), fixed(values), mixed);
      divide<T>(rows, size_, sums, fixed(mixed), out.at(b, head).from(first));
    });
  });
}

namespace {

// Tokens without gaps between their entries; else a copy.
at::Tensor usable(const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

struct Attended {
  at::Tensor out, log_sum;
};

// What backward needs besides tensors that are differentiated.
struct Bounds : ::torch::CustomClassHolder {
  explicit Bounds(const AttentionShape& of, at::Tensor first = {}) : shape(of), starts(std::move(first)) {}
  AttentionShape shape;
  at::Tensor starts;
};
using KeptBounds = c10::intrusive_ptr<Bounds>;

Attended attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Bounds& bounds) {
  Attended made{at::empty(q.sizes(), q.options()), at::empty({q.size(0), bounds.shape.heads, q.size(1)}, q.options())};
  if (q.scalar_type() == at::kFloat)
    Pass<float>(q, k, v, bounds.starts, made.log_sum, bounds.shape).forward(made.out);
  else
    Pass<double>(q, k, v, bounds.starts, made.log_sum, bounds.shape).forward(made.out);
  return made;
}

// slopes of q, k and v, where they are defined.
void attend_back(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attended& made,
                 const at::Tensor& gradient, const Bounds& bounds, const variable_list& slopes) {
  const auto by = [&](const auto& pass) { pass.backward(made.out, gradient, slopes[0], slopes[1], slopes[2]); };
  if (q.scalar_type() == at::kFloat)
    by(Pass<float>(q, k, v, bounds.starts, made.log_sum, bounds.shape));
  else
    by(Pass<double>(q, k, v, bounds.starts, made.log_sum, bounds.shape));
}

void keep(AutogradContext* ctx, const KeptBounds& bounds) { ctx->saved_data["bounds"] = at::IValue::make_capsule(bounds); }

KeptBounds kept(AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<Bounds>(ctx->saved_data["bounds"].toCapsule());
}

struct Attention : ::torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const KeptBounds& bounds) {
    const Attended made = attend(usable(q), usable(k), usable(v), *bounds);
    ctx->save_for_backward({q, k, v, made.out, made.log_sum});
    keep(ctx, bounds);
    return made.out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    not_twice("attention");
    const auto saved = ctx->get_saved_variables();
    variable_list slopes(4);
    for (std::size_t i = 0; i < 3; ++i)
      if (ctx->needs_input_grad(i)) slopes[i] = at::empty(saved[i].sizes(), saved[i].options());
    attend_back(usable(saved[0]), usable(saved[1]), usable(saved[2]), {saved[3], saved[4]}, usable(gradients[0]), *kept(ctx),
                slopes);
    return slopes;
  }
};

// Queries, keys and values of one tensor.
variable_list three_of(const at::Tensor& qkv) { return qkv.chunk(3, -1); }

// Nothing is copied on the way in, and the three slopes are one tensor again.
struct SelfAttention : ::torch::autograd::Function<SelfAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv, const KeptBounds& bounds) {
    const variable_list from = three_of(usable(qkv));
    const Attended made = attend(from[0], from[1], from[2], *bounds);
    ctx->save_for_backward({qkv, made.out, made.log_sum});
    keep(ctx, bounds);
    return made.out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    not_twice("attention");
    const auto saved = ctx->get_saved_variables();
    const at::Tensor slopes = at::empty(saved[0].sizes(), saved[0].options().requires_grad(false));
    const variable_list from = three_of(usable(saved[0]));
    attend_back(from[0], from[1], from[2], {saved[1], saved[2]}, usable(gradients[0]), *kept(ctx), three_of(slopes));
    return {slopes, at::Tensor()};
  }
};

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, "attention: " + message); }

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape) {
  if (shape.head_size < 1 || shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads)
    refuse(fmt::format("{} heads, {} kv_heads, head_size {}; all positive, and kv_heads divides heads", shape.heads,
                       shape.kv_heads, shape.head_size));
  if (!(shape.softcap >= 0) || !(shape.rope.base >= 0))
    refuse(fmt::format("softcap {}, rope's base {}; positive, or 0 for off", shape.softcap, shape.rope.base));
  if (shape.rope.base > 0 && shape.head_size % 2)
    refuse(fmt::format("head_size {} is odd; rotation needs pairs", shape.head_size));
  if (shape.window < 0 || (shape.window > 0 && !shape.causal))
    refuse(fmt::format("window {}; positive, or 0 for off, and causal", shape.window));
  if (q.dim() != 3) refuse(fmt::format("q is [{}]; expected [B, T, heads * head_size]", fmt::join(q.sizes(), ", ")));
  const auto side = [&](const char* name, const at::Tensor& x, std::int64_t heads) {
    const std::vector<std::int64_t> expected{q.size(0), q.size(1), heads * shape.head_size};
    if (x.sizes() != expected)
      refuse(fmt::format("{} is [{}]; expected [{}]", name, fmt::join(x.sizes(), ", "), fmt::join(expected, ", ")));
    if (x.scalar_type() != q.scalar_type())
      refuse(fmt::format("{} is {}, q is {}", name, toString(x.scalar_type()), toString(q.scalar_type())));
  };
  side("q", q, shape.heads);
  side("k", k, shape.kv_heads);
  side("v", v, shape.kv_heads);
}

// The starts as the passes take them; undefined if every query sees all before it.
at::Tensor usable_starts(const at::Tensor& starts, const at::Tensor& q, const AttentionShape& shape) {
  if (!starts.defined()) return {};
  const std::int64_t batch = q.size(0), tokens = q.size(1);
  if (!shape.causal || starts.sizes() != at::IntArrayRef({batch, tokens}) || !at::isIntegralType(starts.scalar_type(), false))
    refuse(fmt::format("starts are [{}] {}; expected whole numbers [{}, {}], and causal", fmt::join(starts.sizes(), ", "),
                       toString(starts.scalar_type()), batch, tokens));
  const at::Tensor usual = starts.to(at::TensorOptions(at::kCPU).dtype(at::kLong)).contiguous();
  const std::int64_t* const values = usual.data_ptr<std::int64_t>();
  std::int64_t latest = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t before = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t start = values[b * tokens + t];
      if (start < before || start > t) refuse(fmt::format("token {} starts at {}; valid: [{}, {}]", t, start, before, t));
      before = start;
    }
    latest = std::max(latest, before);
  }
  return latest > 0 ? usual : at::Tensor();
}

}  // namespace

template class Pass<float>;
template class Pass<double>;

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape, Path path,
                     const at::Tensor& starts) {
  check_shapes(q, k, v, shape);
  const at::Tensor known = usable_starts(starts, q, shape);
  if (path == Path::plain || !can_fuse({q, k, v})) return plain::attention(q, k, v, known, shape);
  return Attention::apply(q, k, v, c10::make_intrusive<Bounds>(shape, known));
}

at::Tensor self_attention(const at::Tensor& qkv, const AttentionShape& shape, Path path) {
  if (qkv.dim() != 3 || qkv.size(2) % 3 != 0)
    refuse(fmt::format("q, k and v are [{}]; expected [B, T, 3 * heads * head_size]", fmt::join(qkv.sizes(), ", ")));
  const variable_list from = three_of(qkv);
  check_shapes(from[0], from[1], from[2], shape);
  if (path == Path::plain || !can_fuse({qkv})) return plain::attention(from[0], from[1], from[2], {}, shape);
  return SelfAttention::apply(qkv, c10::make_intrusive<Bounds>(shape));
}

}  // namespace cautious::model::ops
