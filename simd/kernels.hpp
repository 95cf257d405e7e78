// SPDX-License-Identifier: Apache-2.0
// The kernel table: every arithmetic kernel of the library, as one struct of function pointers per instruction set.
//
// All kernels see pointers and sizes in elements (Index), never a tensor. Unless one says otherwise: float32; arrays are dense;
// any alignment of at least 4 bytes; size 0 is legal and touches nothing; outputs do not overlap inputs, except that an
// elementwise kernel may write over an input that starts at the same address; no kernel reads or writes a byte outside the
// arrays described; none allocates, locks or fails. The same arguments give the same bits from every table (where a NaN
// stands is part of that, its payload and sign are not).
#pragma once

#include "features.hpp"
#include "gemm.hpp"
#include "outer.hpp"
#include "pool.hpp"
#include "variant.hpp"

#include <cstdint>
#include <span>

namespace vitro::simd {

enum class Isa : unsigned char { scalar, blocked, avx2, avx512 };

struct KernelTable {
  const char* name;  // "scalar", "blocked", "avx2", "avx512"; with the suffix "-nofma" where fma is emulated
  Isa isa;
  FeatureSet required;  // usable when the machine has all of these

  // --- Matrix products (gemm.hpp) ---
  Index (*gemm_scratch)(Index m, Index n, Index k);
  void (*gemm)(const Gemm& args);
  // Size in floats of B[k, n] packed for gemm_rows, and the packing itself. The layout belongs to the table: pack and multiply
  // with the same one.
  Index (*packed_b_size)(Index k, Index n);
  void (*pack_b)(const PackB& args);
  void (*gemm_rows)(const GemmRows& args);
  void (*gemm_planes)(const GemmPlanes& args);
  void (*gemm_lanes)(const GemmLanes& args);
  // y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns.
  void (*transpose)(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride);
  // Rows put together from runs, gemm.hpp: for short ones, on which memcpy spends most of its time finding out how short they
  // are.
  void (*copy_runs)(const RunCopy& args);

  // --- Elementwise, over n elements (elementwise.inl) ---
  void (*add)(Index n, const float* a, const float* b, float* y);          // y = a + b
  void (*add_scalar)(Index n, const float* a, float b, float* y);          // y = a + b
  void (*mul)(Index n, const float* a, const float* b, float* y);          // y = a * b
  void (*mul_scalar)(Index n, const float* a, float b, float* y);          // y = a * b
  void (*relu)(Index n, const float* x, float* y);                         // y = x < 0 ? +0 : x
  void (*relu_grad)(Index n, const float* y, const float* dy, float* dx);  // dx = y <= 0 ? +0 : dy (y: relu's output or input)
  void (*exp)(Index n, const float* x, float* y);
  void (*log)(Index n, const float* x, float* y);
  void (*bytes_to_unit)(Index n, const std::uint8_t* x, float* y);  // y = x / 255, one division
  // g' = fma(weight_decay, p, g); v = fma(momentum, v, g'); p = fma(-rate, v, p). p and v are updated in place.
  void (*sgd_update)(Index n, float rate, float momentum, float weight_decay, const float* g, float* v, float* p);

  // --- Reductions (reduce.inl) ---
  // Along a contiguous axis: 16 lanes from +0, lane i takes elements i, i+16, ..., then a halving tree 8, 4, 2, 1. 0 for n = 0.
  float (*sum)(Index n, const float* x);
  float (*sum_squares)(Index n, const float* x);  // the same with lane = fma(x, x, lane)
  // The largest element; NaN if any is NaN; -inf for n = 0. Of zeros of both signs, the first one.
  float (*max)(Index n, const float* x);
  // Along the outer axis of x[rows, columns] (row i at x + i * row_stride): for each column one rising chain of additions from
  // +0 in chunks of 512 rows, each chunk's sum added to y (which starts at +0) in rising order. y[columns] is overwritten.
  void (*sum_rows)(Index rows, Index columns, const float* x, Index row_stride, float* y);
  // sums[chunks, columns]: each chunk's chain, for columns that threads cannot share. Made for at most 16.
  void (*sum_row_chunks)(Index rows, Index columns, const float* x, Index row_stride, float* sums);

  // --- On the elements of an outer product, which nobody stores (outer.hpp, outer.inl) ---
  // sgd_update with g = scale * the n elements from `first` on; v and p begin where those do.
  void (*sgd_update_outer)(const OuterProduct& outer, Index first, Index n, float scale, float rate, float momentum,
                           float weight_decay, float* v, float* p);
  float (*sum_squares_outer)(const OuterProduct& outer, Index n);  // sum_squares of its first n elements

  // --- Softmax family over dense rows x[rows, columns] (softmax.inl); rows of NaN give NaN ---
  // m = max(row); e_j = exp(x_j - m); s = sum(e); y_j = e_j / s.
  void (*softmax)(Index rows, Index columns, const float* x, float* y);
  // y_j = (x_j - m) - log(s), with m and s as above.
  void (*log_softmax)(Index rows, Index columns, const float* x, float* y);
  // loss[i] = log(s) - (x[i][label] - m); probabilities as softmax. Requires 0 <= labels[i] < columns.
  void (*cross_entropy)(Index rows, Index columns, const float* x, const std::int32_t* labels, float* loss,
                        float* probabilities);
  // dx = scale * (probabilities - one_hot(label)): one subtraction where j = label, then one product.
  void (*cross_entropy_grad)(Index rows, Index columns, const float* probabilities, const std::int32_t* labels, float scale,
                             float* dx);
  // dx_j = y_j * (dy_j - dot), dot = sum(y * dy) with lane = fma(y, dy, lane).
  void (*softmax_grad)(Index rows, Index columns, const float* y, const float* dy, float* dx);
  // dx_j = dy_j - exp(y_j) * sum(dy), as fma(-exp(y_j), sum, dy_j).
  void (*log_softmax_grad)(Index rows, Index columns, const float* y, const float* dy, float* dx);

  // --- Pooling over a rectangle of windows (pool.hpp, pool.inl) ---
  // best = first tap; a later tap replaces it when !(x <= best) && best == best. argmax, unless null, gets the `index` (< 256)
  // of the tap that stands.
  void (*max_pool)(const PoolWindows& windows, const float* x, float* y, std::uint8_t* argmax);
  // One rising chain of additions from +0 in chunks of 512 taps (as sum_rows), then one division by `divisor`.
  void (*average_pool)(const PoolWindows& windows, const float* x, float divisor, float* y);
  // The gradients: dx stands where the forward kernels have x, dy where they have y. If the windows are `overlapping`, window
  // by window in rising order, dx += dy (one addition) at the chosen tap or dx += dy / divisor at every tap; dx began as +0. If
  // not, every tap of every window is overwritten with the same sum from +0.
  void (*max_pool_grad)(const PoolWindows& windows, bool overlapping, const std::uint8_t* argmax, const float* dy, float* dx);
  void (*average_pool_grad)(const PoolWindows& windows, bool overlapping, float divisor, const float* dy, float* dx);
};

// Every table that was compiled in, best first, the scalar one last.
std::span<const KernelTable* const> kernel_tables() noexcept;

// The first table of kernel_tables() whose required features `features` holds.
const KernelTable& best_kernels(const FeatureSet& features) noexcept;
// The first such table of one instruction set, or null where the machine (or the build) lacks it.
const KernelTable* find_kernels(Isa isa, const FeatureSet& features) noexcept;

}  // namespace vitro::simd
