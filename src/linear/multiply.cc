// A tile of the result, kTall rows by two vectors, is summed up in registers. The left factor is read where it is, since a tile
// takes single numbers of it; the right one is packed into panels as wide as a tile. A BLAS packs both, which at the sides of
// small models takes a fifth of its time, and half of a result it computes more slowly than a whole one.
#include "linear/multiply.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace cautious::linear {
namespace {

constexpr int kTall = 6;            // rows of a tile
constexpr int kDeep = 512;          // of the inner side at a time: a panel of that depth stays in the second cache
constexpr int kHigh = 96;           // rows that pass a panel before the next one's turn
constexpr int kBroad = 8 * kPanel;  // columns of the right factor that are packed at a time
// Gathered strips of the left factor are not a multiple of 4096 bytes apart, or they would share a set of the first cache.
constexpr int kStrip = kTall * kDeep + 16;
constexpr std::size_t kStrips = std::size_t{kHigh} / kTall * kStrip;

// A matrix to read: entry (i, k) is data[i * down + k * right].
template <class T>
struct View {
  const T* data;
  std::ptrdiff_t down, right;
};

template <class T>
View<T> view(Block<const T> block, Transpose transpose) {
  return transpose == Transpose::yes ? View<T>{block.data, 1, block.stride} : View<T>{block.data, block.stride, 1};
}

template <class T>
struct Product {
  T alpha;
  View<T> a;
  const T* packed;
  int inner;
  Into into;
  Block<T> c;
  Entries entries;
  T* room;  // kStrips numbers
};

// A vector anywhere in memory. (An attribute of the vector type itself is lost in templates: its alignment under clang, all of
// it under GCC where the type is an argument.)
template <class T, int bytes>
struct [[gnu::packed, gnu::may_alias]] Anywhere {
  typedef T Vector __attribute__((vector_size(bytes)));  // NOLINT(modernize-use-using)
  Vector of;
};
template <int bytes, class T>
[[gnu::always_inline]] inline const Anywhere<T, bytes>& in_memory(const T* at) {
  return *reinterpret_cast<const Anywhere<T, bytes>*>(at);
}
template <int bytes, class T>
[[gnu::always_inline]] inline Anywhere<T, bytes>& in_memory(T* at) {
  return *reinterpret_cast<Anywhere<T, bytes>*>(at);
}

// c [kTall, two vectors] = alpha a b, or that added to c.
template <class T, int bytes>
[[gnu::always_inline]] inline void tile(int inner, T alpha, View<T> a, const T* b, bool add, T* c, std::ptrdiff_t stride) {
  using Vector = typename Anywhere<T, bytes>::Vector;
  constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  Vector sums[kTall][2] = {};
  const T* from = a.data;
  for (int k = 0; k < inner; ++k, from += a.right, b += 2 * lanes) {
    const Vector b0 = in_memory<bytes>(b).of, b1 = in_memory<bytes>(b + lanes).of;
#pragma GCC unroll 6
    for (int r = 0; r < kTall; ++r) sums[r][0] += from[r * a.down] * b0, sums[r][1] += from[r * a.down] * b1;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kTall; ++r, c += stride) {
    auto &c0 = in_memory<bytes>(c), &c1 = in_memory<bytes>(c + lanes);
    c0.of = add ? c0.of + alpha * sums[r][0] : alpha * sums[r][0];
    c1.of = add ? c1.of + alpha * sums[r][1] : alpha * sums[r][1];
  }
}

// Short parts of long rows are read where the hardware does not expect them: asks for the one that is read kAhead rows later.
constexpr int kAhead = 16;
template <class T>
[[gnu::always_inline]] inline void expect(const T* part, int length) {
  constexpr int kLine = 64 / sizeof(T);
  for (int i = 0; i < length; i += kLine) __builtin_prefetch(part + i);
}

// `rows` rows of a, each strip of kTall side by side; zeros for rows that are missing.
template <class T>
[[gnu::always_inline]] inline void gather(View<T> a, int rows, int inner, T* to) {
  const int whole = a.down == 1 ? rows / kTall : 0;
  for (int k = 0; k < inner; ++k) {
    if (whole > 0 && k + kAhead < inner) expect(a.data + (k + kAhead) * a.right, whole * kTall);
    for (int s = 0; s < whole; ++s)
      std::memcpy(to + s * kStrip + k * kTall, a.data + s * kTall + k * a.right, kTall * sizeof(T));
  }
  for (int s = whole; s * kTall < rows; ++s)
    for (int k = 0; k < inner; ++k)
      for (int r = 0; r < kTall; ++r)
        to[s * kStrip + k * kTall + r] = s * kTall + r < rows ? a.data[(s * kTall + r) * a.down + k * a.right] : T(0);
}

template <class T, int bytes>
[[gnu::always_inline]] inline void run_body(const Product<T>& p) {
  constexpr int wide = 2 * bytes / static_cast<int>(sizeof(T));
  const std::ptrdiff_t stride = p.c.stride;
  for (int k0 = 0; k0 == 0 || k0 < p.inner; k0 += kDeep) {  // once at least: a sum of nothing is 0
    const int deep = std::min(kDeep, p.inner - k0);
    const bool add = k0 > 0 || p.into == Into::add;
    for (int i0 = 0; i0 < p.c.rows; i0 += kHigh) {
      const int i1 = std::min(p.c.rows, i0 + kHigh);
      const auto from = [&](int i) { return View<T>{p.a.data + i * p.a.down + k0 * p.a.right, p.a.down, p.a.right}; };
      const int gathered = p.a.right != 1 ? i0 : i0 + (i1 - i0) / kTall * kTall;  // rows from here on are read from the room
      gather(from(gathered), i1 - gathered, deep, p.room + (gathered - i0) / kTall * kStrip);
      for (int j = 0; j < p.c.cols; j += wide) {
        const T* b = p.packed + static_cast<std::ptrdiff_t>(j) * p.inner + k0 * wide;
        const int cols = std::min(wide, p.c.cols - j);
        for (int i = i0; i < i1; i += kTall) {
          const int rows = std::min(kTall, i1 - i);
          if (p.entries == Entries::lower && j >= i + rows) continue;
          const View<T> a = i < gathered ? from(i) : View<T>{p.room + (i - i0) / kTall * kStrip, 1, kTall};
          T* c = p.c.data + i * stride + j;
          // One call for all tiles, so that the compiler makes the same operations of each: edges are borrowed.
          const bool whole = rows == kTall && cols == wide;
          T edge[kTall * wide];
          for (int r = 0; r < rows && add && !whole; ++r) std::copy_n(c + r * stride, cols, edge + r * wide);
          tile<T, bytes>(deep, p.alpha, a, b, add, whole ? c : edge, whole ? stride : wide);
          for (int r = 0; r < rows && !whole; ++r) std::copy_n(edge + r * wide, cols, c + r * stride);
        }
      }
    }
  }
}

// to [4, 4] = from^T.
template <class T>
void turn_four(const T* from, std::ptrdiff_t from_stride, T* to, std::ptrdiff_t to_stride) {
  constexpr int bytes = 4 * sizeof(T);
  using Four = typename Anywhere<T, bytes>::Vector;
  const auto in = [&](int j) -> const Anywhere<T, bytes>& { return in_memory<bytes>(from + j * from_stride); };
  const auto out = [&](int j) -> Anywhere<T, bytes>& { return in_memory<bytes>(to + j * to_stride); };
  const Four one = in(0).of, two = in(1).of, three = in(2).of, four = in(3).of;
  const Four a = __builtin_shufflevector(one, two, 0, 4, 1, 5), b = __builtin_shufflevector(one, two, 2, 6, 3, 7);
  const Four c = __builtin_shufflevector(three, four, 0, 4, 1, 5), d = __builtin_shufflevector(three, four, 2, 6, 3, 7);
  out(0).of = __builtin_shufflevector(a, c, 0, 1, 4, 5), out(1).of = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  out(2).of = __builtin_shufflevector(b, d, 0, 1, 4, 5), out(3).of = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// Panels of `wide` columns, each row after row; zeros for columns that are missing.
template <class T>
void pack_panels(View<T> b, int inner, int cols, int wide, T* to) {
  for (int j = 0; j < cols; j += wide, to += static_cast<std::ptrdiff_t>(wide) * inner) {
    const int here = std::min(wide, cols - j);
    const T* from = b.data + j * b.right;
    if (here < wide) std::fill_n(to, static_cast<std::ptrdiff_t>(wide) * inner, T(0));
    if (b.right == 1) {
      constexpr int kFew = 8;  // a copy of a constant size is no call
      const int whole = here / kFew * kFew;
      for (int k = 0; k < inner; ++k) {
        const T* row = from + k * b.down;
        if (k + kAhead < inner) expect(row + kAhead * b.down, here);
        for (int q = 0; q < whole; q += kFew) std::memcpy(to + k * wide + q, row + q, kFew * sizeof(T));
        for (int q = whole; q < here; ++q) to[k * wide + q] = row[q];
      }
    } else {
      transpose(Block<const T>{from, here, inner, static_cast<int>(b.right)}, Block<T>{to, inner, here, wide});
    }
  }
}

// One body per instruction set, and how many bytes its vectors have.
#if defined(__x86_64__)
#define CAUTIOUS_RUN(T)                                                                                         \
  __attribute__((target("avx512f,avx2,fma"), flatten)) void run_64(const Product<T>& p) { run_body<T, 64>(p); } \
  __attribute__((target("avx2,fma"), flatten)) void run_32(const Product<T>& p) { run_body<T, 32>(p); }         \
  void run_16(const Product<T>& p) { run_body<T, 16>(p); }
CAUTIOUS_RUN(float)
CAUTIOUS_RUN(double)
// CAUTIOUS_ISA in the environment asks for less, as it does of the kernels.
int vector_bytes() {
  const char* asked = std::getenv("CAUTIOUS_ISA");
  const std::string_view isa = asked != nullptr ? asked : "";
  if (isa == "portable" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 16;
  return isa != "avx2" && __builtin_cpu_supports("avx512f") ? 64 : 32;
}
const int kVector = vector_bytes();
#else
const int kVector = 16;
template <class T>
void run_16(const Product<T>& p) {
  run_body<T, 16>(p);
}
#endif

template <class T>
void run(const Product<T>& p) {
#if defined(__x86_64__)
  if (kVector == 64) return run_64(p);
  if (kVector == 32) return run_32(p);
#endif
  run_16(p);
}

// Where the factors of one product at a time are gathered and packed.
template <class T>
struct Room {
  std::vector<T> left = std::vector<T>(kStrips), right = std::vector<T>(packed_size(kDeep, kBroad));
};

// Rooms that no product is in, whatever its thread.
template <class T>
class Rooms {
 public:
  std::unique_ptr<Room<T>> enter() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Room<T>>();
    std::unique_ptr<Room<T>> room = std::move(free_.back());
    free_.pop_back();
    return room;
  }
  void leave(std::unique_ptr<Room<T>> room) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(room));
  }
  void have(std::size_t count) {
    const std::lock_guard lock(mutex_);
    free_.reserve(count);
    while (free_.size() < count) free_.push_back(std::make_unique<Room<T>>());
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room<T>>> free_;
};
template <class T>
Rooms<T>& rooms() {
  static Rooms<T> all;
  return all;
}

template <class T>
int inner_of(Block<const T> a, Transpose of_a) {
  return of_a == Transpose::yes ? a.rows : a.cols;
}

}  // namespace

template <class T>
void transpose(Block<const T> from, Block<T> to) {
  const auto in = [&](int i, int j) { return from.data + static_cast<std::ptrdiff_t>(i) * from.stride + j; };
  const auto out = [&](int i, int j) { return to.data + static_cast<std::ptrdiff_t>(i) * to.stride + j; };
  constexpr int kSide = 16;  // squares of that side stay in the first cache
  const int rows = from.rows / 4 * 4, cols = from.cols / 4 * 4;
  for (int i0 = 0; i0 < rows; i0 += kSide)
    for (int j = 0; j < cols; j += 4)
      for (int i = i0; i < std::min(rows, i0 + kSide); i += 4) turn_four(in(i, j), from.stride, out(j, i), to.stride);
  for (int i = 0; i < from.rows; ++i)
    for (int j = i < rows ? cols : 0; j < from.cols; ++j) *out(j, i) = *in(i, j);
}

template <class T>
void pack(Block<const T> b, Transpose of_b, T* packed) {
  const bool turned = of_b == Transpose::yes;
  pack_panels(view(b, of_b), turned ? b.cols : b.rows, turned ? b.rows : b.cols, 2 * kVector / static_cast<int>(sizeof(T)),
              packed);
}

template <class T>
void multiply_packed(T alpha, Block<const T> a, Transpose of_a, const T* packed, Into into, Block<T> c, Entries entries) {
  std::unique_ptr<Room<T>> room = rooms<T>().enter();
  run(Product<T>{alpha, view(a, of_a), packed, inner_of(a, of_a), into, c, entries, room->left.data()});
  rooms<T>().leave(std::move(room));
}

template <class T>
void multiply(T alpha, Block<const T> a, Transpose of_a, Block<const T> b, Transpose of_b, Into into, Block<T> c,
              Entries entries) {
  const View<T> left = view(a, of_a), right = view(b, of_b);
  const int inner = inner_of(a, of_a), wide = 2 * kVector / static_cast<int>(sizeof(T));
  std::unique_ptr<Room<T>> room = rooms<T>().enter();
  T *packed = room->right.data(), *strips = room->left.data();
  for (int j = 0; j < c.cols; j += kBroad) {
    const int cols = std::min(kBroad, c.cols - j), i = entries == Entries::lower ? j : 0;
    const Block<T> out{c.data + static_cast<std::ptrdiff_t>(i) * c.stride + j, c.rows - i, cols, c.stride};
    for (int k = 0; k == 0 || k < inner; k += kDeep) {
      const int deep = std::min(kDeep, inner - k);
      pack_panels(View<T>{right.data + k * right.down + j * right.right, right.down, right.right}, deep, cols, wide, packed);
      run(Product<T>{alpha,
                     {left.data + i * left.down + k * left.right, left.down, left.right},
                     packed,
                     deep,
                     k > 0 ? Into::add : into,
                     out,
                     entries,
                     strips});
    }
  }
  rooms<T>().leave(std::move(room));
}

template <class T>
void have_rooms(int threads) {
  rooms<T>().have(static_cast<std::size_t>(threads));
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define CAUTIOUS_MULTIPLY(T)                                                                      \
  template void have_rooms<T>(int);                                                               \
  template void transpose(Block<const T>, Block<T>);                                              \
  template void pack(Block<const T>, Transpose, T*);                                              \
  template void multiply_packed(T, Block<const T>, Transpose, const T*, Into, Block<T>, Entries); \
  template void multiply(T, Block<const T>, Transpose, Block<const T>, Transpose, Into, Block<T>, Entries)
CAUTIOUS_MULTIPLY(float);
CAUTIOUS_MULTIPLY(double);
#undef CAUTIOUS_MULTIPLY
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace cautious::linear
