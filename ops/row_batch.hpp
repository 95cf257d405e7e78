// SPDX-License-Identifier: Apache-2.0
// Internal: collects the rows of a grouped matrix product (pointers into images) and multiplies them a batch at a time.
#pragma once

#include "../core/storage.hpp"
#include "../simd/kernels.hpp"
#include "context.hpp"

#include <algorithm>
#include <cstddef>

namespace vitro::ops {

using simd::Index;

constexpr std::size_t float_bytes(Index count) noexcept { return static_cast<std::size_t>(count) * sizeof(float); }

// Size in floats of a packed B[k, n], rounded up so that the next one is 64-byte aligned again.
inline Index packed_b_step(const simd::KernelTable& kernels, Index k, Index n) noexcept {
  return (kernels.packed_b_size(k, n) + 15) / 16 * 16;
}

// B[k, n], whose columns are one float apart or its rows are, packed for gemm_rows.
inline void pack_b(const simd::KernelTable& kernels, Index k, Index n, const float* b, Index row_stride, Index column_stride,
                   float* packed) noexcept {
  kernels.pack_b({k, n, b, row_stride, column_stride, packed, 0, k});
}

// The same, shared by the threads.
inline void pack_b(Context& context, Index k, Index n, const float* b, Index row_stride, Index column_stride,
                   float* packed) noexcept {
  constexpr Index kRows = 16;  // a vector of the widest table: B^T is transposed by so many
  context.parallel_for((k + kRows - 1) / kRows, kRows * n, [&](Index begin, Index end, int) {
    const Index first = begin * kRows, last = std::min(end * kRows, k);
    context.kernels().pack_b({k, n, b + first * row_stride, row_stride, column_stride, packed, first, last});
  });
}

// Whether an array of so many floats does not stay near (see simd::GemmRows::far_c): twice what a second-level cache holds.
constexpr bool is_far(Index floats) noexcept { return floats > Index{1} << 20; }

// Speed of a product with n columns, as a share of that with many: idle lanes cost in proportion, and a tile of one vector
// loads more than it computes.
float relative_speed(const simd::KernelTable& kernels, Index n) noexcept;

// What changes from one group of a grouped convolution to the next, in floats.
struct GroupStep {
  Index groups = 1;
  Index a = 0, c = 0, packed_b = 0;  // bias and residual step as c does
};

// One batch holds up to capacity() rows. add() multiplies and starts anew when the batch is full; flush() multiplies what is
// left. The memory, row_batch_bytes(segments, accumulate), holds the pointer tables and what gemm_rows needs to cut long chains
// that are added to C.
class RowBatch {
 public:
  // `product` says everything but rows, a, c, residual, runs and scratch. Requires product.segments <= segments of
  // row_batch_bytes() and the same accumulate.
  RowBatch(const simd::KernelTable& kernels, const simd::GemmRows& product, const GroupStep& step, bool residual,
           std::byte* memory) noexcept;

  // The rows that are added from here on lack the same segments, and so do those before, since the last call: their slots may
  // be null. Without a call none may.
  void begin_run() noexcept {
    product_.run_ends = run_ends_;
    if (rows_ > 0 && (product_.runs == 0 || run_ends_[product_.runs - 1] < rows_)) run_ends_[product_.runs++] = rows_;
  }

  static Index capacity(Index segments) noexcept;

  // Rows that were added together: pointer s of row i goes to slots[i * segments + s], or where the product has a_segments row
  // i's only one to slots[i], written by the caller.
  struct Rows {
    const float** slots;
    Index count;
  };
  // Adds up to `count` rows (at least one), whose results go to c, c + c_step, ... `residual` steps likewise and is ignored
  // unless the batch was made with one.
  Rows add(Index count, float* c, Index c_step, const float* residual = nullptr) noexcept {
    if (rows_ == capacity_) flush();
    const Index added = std::min(count, capacity_ - rows_);
    for (Index i = 0; i < added; ++i) c_[rows_ + i] = c + i * c_step;
    for (Index i = 0; residual_ != nullptr && i < added; ++i) residual_[rows_ + i] = residual + i * c_step;
    const Rows rows{a_ + rows_ * slots_, added};
    rows_ += added;
    return rows;
  }
  void flush() noexcept;

 private:
  const simd::KernelTable& kernels_;
  simd::GemmRows product_;
  GroupStep step_;
  Index slots_;  // of a row
  Index capacity_;
  Index rows_ = 0;
  const float** a_;
  float** c_;
  const float** residual_;
  Index* run_ends_;
};

std::size_t row_batch_bytes(Index segments, simd::Accumulate accumulate = simd::Accumulate::overwrite) noexcept;

// rows x k times a packed k x n. Row i of A starts at a + i * a_row_stride, rows of C and of the residual (or null) are
// c_stride apart. `memory` as for a RowBatch. `product` says everything else, in one segment.
void multiply_rows(const simd::KernelTable& kernels, const simd::GemmRows& product, Index rows, const float* a,
                   Index a_row_stride, const float* residual, float* c, Index c_stride, std::byte* memory) noexcept;

// The same, rows split over threads, C and residual dense. Each thread's scratch is the memory.
void multiply_rows(Context& context, const simd::GemmRows& product, Index rows, const float* a, Index a_row_stride,
                   const float* residual, float* c) noexcept;

}  // namespace vitro::ops
