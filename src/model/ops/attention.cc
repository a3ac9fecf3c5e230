// Causal attention, a block of queries at a time against the keys up to its last token. Forward keeps the logarithm of each
// row's sum of exponentials, from which backward has the probabilities again. Every block is computed the same way whoever
// computes it, and sums over blocks have one order, so bits do not depend on the number of threads.
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <cautious/error.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/ops/attention_loops.h"
#include "model/ops/fused.h"
#include "model/ops/ops.h"
#include "model/ops/plain.h"

namespace cautious::model::ops {
namespace {

constexpr std::int64_t kBlock = 8 * kTall;  // queries

// A tensor [batch, tokens, heads * head_size] as rows per head.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t batch_stride = 0, stride = 0, head_size = 0;

  Heads(const at::Tensor& x, std::int64_t size) : head_size(size) {
    if (!x.defined()) return;
    data = x.data_ptr<std::remove_const_t<T>>();
    batch_stride = x.stride(0);
    stride = x.stride(1);
  }
  Rows<T> at(std::int64_t b, std::int64_t head) const { return {data + b * batch_stride + head * head_size, stride}; }
};

// What forward and backward of one call share. All that is multiplied is first copied into scratch memory of padded rows,
// queries and keys rotated: it is read many times.
template <class T>
class Pass {
 public:
  Pass(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& log_sum, const AttentionShape& shape)
      : shape_(shape),
        batch_(q.size(0)),
        tokens_(q.size(1)),
        size_(shape.head_size),
        scale_(static_cast<T>(shape.scale)),
        cap_(static_cast<T>(shape.softcap)),
        q_(q, size_),
        k_(k, size_),
        v_(v, size_),
        log_sum_(log_sum.data_ptr<T>()) {
    if (shape.rope_base > 0 && tokens_ > 0) rotation_ = rotation_table<T>(tokens_, size_, shape.rope_base);
  }

  void forward(const at::Tensor& outcome) const {
    const Heads<T> out(outcome, size_);
    const std::int64_t pairs = batch_ * shape_.kv_heads, blocks = (tokens_ + kBlock - 1) / kBlock;
    if (pairs == 0) return;
    // Few heads are cut further: a part has every so many-th block.
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
        meet<T>(rows, first, size_, scale_, fixed(queries), fixed(turned), scores);
        soften<T>(rows, first, cap_, scores, sums, logs(b, head) + first);
        mix<T>(rows, first, size_, 1, fixed(scores), fixed(values), mixed);
        divide<T>(rows, size_, sums, fixed(mixed), out.at(b, head).from(first));
      });
    });
  }

  // dq, dk and dv may be undefined.
  void backward(const at::Tensor& outcome, const at::Tensor& gradient, const at::Tensor& dq, const at::Tensor& dk,
                const at::Tensor& dv) const {
    const Heads<const T> out(outcome, size_), grad(gradient, size_);
    const Heads<T> q_out(dq, size_), k_out(dk, size_), v_out(dv, size_);
    const std::int64_t blocks = (tokens_ + kBlock - 1) / kBlock;
    parallel(batch_ * shape_.kv_heads, [&](std::int64_t job) {
      const std::int64_t b = job / shape_.kv_heads, kv = job % shape_.kv_heads;
      Room room(*this);
      const Rows<T> keys = room.take(tokens_, size_), turned = room.take(size_, tokens_), values = room.take(size_, tokens_);
      const Rows<T> queries = room.take(kBlock, size_), mixed = room.take(kBlock, size_), g = room.take(kBlock, size_);
      const Rows<T> key_slopes = room.take(tokens_, size_), value_slopes = room.take(tokens_, size_);
      const Rows<T> scores = room.take(kBlock, tokens_), slopes = room.take(kBlock, tokens_);
      load(k_.at(b, kv), 0, tokens_, keys);
      transpose<T>(tokens_, size_, fixed(keys), turned);
      transpose<T>(tokens_, size_, v_.at(b, kv), values);
      bool add = false;  // the last block comes first: it sees all keys
      for_blocks(kv, blocks - 1, 1, [&](std::int64_t head, std::int64_t first, std::int64_t rows) {
        load(q_.at(b, head).from(first), first, rows, queries);
        copy<T>(rows, size_, grad.at(b, head).from(first), g);
        meet<T>(rows, first, size_, scale_, fixed(queries), fixed(turned), scores);
        meet<T>(rows, first, size_, 1, fixed(g), fixed(values), slopes);
        back<T>(rows, first, size_, cap_, logs(b, head) + first, out.at(b, head).from(first), fixed(g), scores, slopes);
        if (v_out.data) spread<T>(rows, first, size_, 1, fixed(scores), fixed(g), add, value_slopes);
        if (k_out.data) spread<T>(rows, first, size_, scale_, fixed(slopes), fixed(queries), add, key_slopes);
        if (q_out.data) {
          mix<T>(rows, first, size_, scale_, fixed(slopes), fixed(keys), mixed);
          store(fixed(mixed), first, rows, q_out.at(b, head).from(first));
        }
        add = true;
      });
      if (v_out.data) copy<T>(tokens_, size_, fixed(value_slopes), v_out.at(b, kv));
      if (k_out.data) store(fixed(key_slopes), 0, tokens_, k_out.at(b, kv));
    });
  }

 private:
  // Scratch memory of a job, handed out in turn: enough for all that backward takes.
  class Room {
   public:
    explicit Room(const Pass& pass) {
      const std::int64_t narrow = padded(pass.size_), wide = padded(pass.tokens_);
      next_ = scratch<T, Pass>(
          static_cast<std::size_t>(3 * (whole(pass.tokens_) + kBlock) * narrow + 2 * (whole(pass.size_) + kBlock) * wide));
    }
    Rows<T> take(std::int64_t rows, std::int64_t columns) {
      const Rows<T> taken{next_, padded(columns)};
      next_ += whole(rows) * taken.stride;
      return taken;
    }

   private:
    T* next_;
  };

  static Rows<const T> fixed(Rows<T> rows) { return {rows.data, rows.stride}; }
  T* logs(std::int64_t b, std::int64_t head) const { return log_sum_ + (b * shape_.heads + head) * tokens_; }

  // Of the query heads of one key head, the blocks last, last - step, ...: body(head, first query, how many).
  template <class Body>
  void for_blocks(std::int64_t kv, std::int64_t last, std::int64_t step, const Body& body) const {
    const std::int64_t group = shape_.heads / shape_.kv_heads;
    for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head)
      for (std::int64_t block = last; block >= 0; block -= step)
        body(head, block * kBlock, std::min(kBlock, tokens_ - block * kBlock));
  }

  void turn(T direction, Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const {
    if (!rotation_) return copy<T>(rows, size_, x, y);
    const std::int64_t half = size_ / 2, skip = first * half;
    rotate<T>(rows, half, direction, rotation_->cosine.data() + skip, rotation_->sine.data() + skip, x, y);
  }
  // Queries or keys into scratch memory, and their slopes out of it.
  void load(Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const { turn(1, x, first, rows, y); }
  void store(Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const { turn(-1, x, first, rows, y); }

  AttentionShape shape_;
  std::int64_t batch_, tokens_, size_;
  T scale_, cap_;
  Heads<const T> q_, k_, v_;
  T* log_sum_;
  std::shared_ptr<const Rotation<T>> rotation_;
};

// Tokens without gaps between their entries; else a copy.
at::Tensor usable(const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); }

struct Attention : ::torch::autograd::Function<Attention> {
  static at::Tensor forward(::torch::autograd::AutogradContext* ctx, const at::Tensor& q_in, const at::Tensor& k_in,
                            const at::Tensor& v_in, const AttentionShape& shape) {
    const at::Tensor q = usable(q_in), k = usable(k_in), v = usable(v_in);
    const at::Tensor out = at::empty(q.sizes(), q.options()),
                     log_sum = at::empty({q.size(0), shape.heads, q.size(1)}, q.options());
    if (q.scalar_type() == at::kFloat)
      Pass<float>(q, k, v, log_sum, shape).forward(out);
    else
      Pass<double>(q, k, v, log_sum, shape).forward(out);
    ctx->save_for_backward({q_in, k_in, v_in, out, log_sum});
    ctx->saved_data["sides"] = std::vector<std::int64_t>{shape.heads, shape.kv_heads, shape.head_size};
    ctx->saved_data["numbers"] = std::vector<double>{shape.scale, shape.softcap, shape.rope_base};
    return out;
  }

  static ::torch::autograd::variable_list backward(::torch::autograd::AutogradContext* ctx,
                                                   ::torch::autograd::variable_list gradients) {
    not_twice("attention");
    const auto saved = ctx->get_saved_variables();
    const auto sides = ctx->saved_data["sides"].toIntVector();
    const auto numbers = ctx->saved_data["numbers"].toDoubleVector();
    const AttentionShape shape{sides[0], sides[1], sides[2], numbers[0], numbers[1], numbers[2]};
    const at::Tensor q = usable(saved[0]), k = usable(saved[1]), v = usable(saved[2]), gradient = usable(gradients[0]);
    ::torch::autograd::variable_list slopes(4);
    for (std::size_t i = 0; i < 3; ++i)
      if (ctx->needs_input_grad(i)) slopes[i] = at::empty(saved[i].sizes(), saved[i].options());
    if (q.scalar_type() == at::kFloat)
      Pass<float>(q, k, v, saved[4], shape).backward(saved[3], gradient, slopes[0], slopes[1], slopes[2]);
    else
      Pass<double>(q, k, v, saved[4], shape).backward(saved[3], gradient, slopes[0], slopes[1], slopes[2]);
    return slopes;
  }
};

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, "attention: " + message); }

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape) {
  if (shape.head_size < 1 || shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads)
    refuse(fmt::format("{} heads, {} kv_heads, head_size {}; all positive, and kv_heads divides heads", shape.heads,
                       shape.kv_heads, shape.head_size));
  if (!(shape.softcap >= 0) || !(shape.rope_base >= 0))
    refuse(fmt::format("softcap {}, rope_base {}; positive, or 0 for off", shape.softcap, shape.rope_base));
  if (shape.rope_base > 0 && shape.head_size % 2)
    refuse(fmt::format("head_size {} is odd; rotation needs pairs", shape.head_size));
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

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape, Path path) {
  check_shapes(q, k, v, shape);
  if (path == Path::plain || !can_fuse({q, k, v})) return plain::attention(q, k, v, shape);
  return Attention::apply(q, k, v, shape);
}

}  // namespace cautious::model::ops
