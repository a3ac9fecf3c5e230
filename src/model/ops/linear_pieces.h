// What the products of linear layers share: a matrix cut into pieces that each thread computes by itself. The threads of a BLAS
// wait for each other inside every product, which costs a tenth at width 320 and a third at width 128.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "linear/multiply.h"
#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

using linear::Block;
using linear::Into;
using linear::multiply_packed;
using linear::Transpose;
using ::torch::autograd::variable_list;

// Of a piece: rows of a result, and of a weight's gradient rows and columns.
constexpr std::int64_t kRows = 192, kTallPiece = 96, kWidePiece = 768;
constexpr int kPackedPiece = 1 << 16;  // numbers that a thread packs at a time: less is not worth a second thread

template <class T>
Block<const T> rows_of(const at::Tensor& matrix, std::int64_t first, std::int64_t count) {
  const auto cols = static_cast<int>(matrix.size(1));
  return {matrix.data_ptr<T>() + first * cols, static_cast<int>(count), cols, cols};
}

template <class T>
Block<const T> columns_of(const at::Tensor& matrix, std::int64_t first, std::int64_t count) {
  return {matrix.data_ptr<T>() + first, static_cast<int>(matrix.size(0)), static_cast<int>(count),
          static_cast<int>(matrix.size(1))};
}

template <class T>
Block<T> rows_to(const at::Tensor& matrix, std::int64_t first, std::int64_t count) {
  const auto cols = static_cast<int>(matrix.size(1));
  return {matrix.data_ptr<T>() + first * cols, static_cast<int>(count), cols, cols};
}

std::int64_t pieces_of(std::int64_t side, std::int64_t length) { return (side + length - 1) / length; }

// A matrix, or its transpose, ready to be a right factor.
template <class T>
at::Tensor packed(const at::Tensor& matrix, Transpose transpose) {
  const auto rows = static_cast<int>(matrix.size(0)), cols = static_cast<int>(matrix.size(1));
  const bool turned = transpose == Transpose::yes;
  const std::size_t size = turned ? linear::packed_size(cols, rows) : linear::packed_size(rows, cols);
  at::Tensor memory = at::empty({static_cast<std::int64_t>(size)}, matrix.options().requires_grad(false));
  T* to = memory.data_ptr<T>();
  const int inner = turned ? cols : rows, side = turned ? rows : cols;
  const std::int64_t piece = linear::kPanel * std::max(1, kPackedPiece / (linear::kPanel * std::max(1, inner)));
  parallel(pieces_of(side, piece), [&](std::int64_t number) {
    const std::int64_t first = number * piece, count = std::min(piece, side - first);
    linear::pack(turned ? rows_of<T>(matrix, first, count) : columns_of<T>(matrix, first, count), transpose,
                 to + first * inner);
  });
  return memory;
}

// What the loss depends on: a weight, the gradient by its outcome, and that by itself if wanted.
struct Seen {
  at::Tensor weight, by_outcome, by_weight;
};

// The gradients by the weights, and by x if it is defined.
template <class T>
void backward_products(const at::Tensor& x, const std::vector<Seen>& all, const at::Tensor& by_x) {
  struct Piece {
    const Seen* seen;  // null: rows of by_x
    std::int64_t row, col;
  };
  std::vector<Piece> pieces;
  variable_list ready;
  at::Tensor ready_x;
  for (const Seen& seen : all) {
    for (std::int64_t row = 0; seen.by_weight.defined() && row < seen.weight.size(0); row += kTallPiece)
      for (std::int64_t col = 0; col < x.size(1); col += kWidePiece) pieces.push_back({&seen, row, col});
    if (seen.by_weight.defined() && !ready_x.defined()) ready_x = packed<T>(x, Transpose::no);
    if (by_x.defined()) ready.push_back(packed<T>(seen.weight, Transpose::no));
  }
  for (std::int64_t row = 0; by_x.defined() && row < x.size(0); row += kRows) pieces.push_back({nullptr, row, 0});
  parallel(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t number) {
    const auto [seen, row, col] = pieces[static_cast<std::size_t>(number)];
    if (seen == nullptr) {
      const std::int64_t count = std::min(kRows, x.size(0) - row);
      for (std::size_t i = 0; i < all.size(); ++i)
        multiply_packed(T(1), rows_of<T>(all[i].by_outcome, row, count), Transpose::no, ready[i].data_ptr<T>(),
                        i == 0 ? Into::set : Into::add, rows_to<T>(by_x, row, count));
    } else {
      const std::int64_t rows = std::min(kTallPiece, seen->weight.size(0) - row), cols = std::min(kWidePiece, x.size(1) - col);
      Block<T> to = rows_to<T>(seen->by_weight, row, rows);
      to.data += col;
      to.cols = static_cast<int>(cols);
      multiply_packed(T(1), columns_of<T>(seen->by_outcome, row, rows), Transpose::yes, ready_x.data_ptr<T>() + col * x.size(0),
                      Into::set, to);
    }
  });
}

}  // namespace
}  // namespace cautious::model::ops
