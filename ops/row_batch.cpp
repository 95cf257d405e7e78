// SPDX-License-Identifier: Apache-2.0
// Batches of rows for gemm_rows.
#include "row_batch.hpp"

namespace vitro::ops {
namespace {

// Enough rows that a packed B streams from the second-level cache a few times only, few enough that the tables stay in the
// first or second; a multiple of 12, hence of the widest tiles' 4 or 6 rows and the narrowest ones' 12, so that only a part's
// last batch has a ragged edge.
constexpr Index kPointers = 8192, kMostRows = 240, kFewestRows = 12;
constexpr Index kTables = 3;  // beside the segments' pointers: rows of C, of the residual, runs
static_assert(sizeof(Index) == sizeof(void*));

constexpr std::size_t table_bytes(Index pointers) noexcept { return static_cast<std::size_t>(pointers) * sizeof(void*); }

}  // namespace

float relative_speed(const simd::KernelTable& kernels, Index n) noexcept {
  const float kOneVector = kernels.packed_b_size(1, 1) < 16 ? 0.9f : 0.6f;
  const Index lanes = kernels.packed_b_size(1, n);
  const float used = static_cast<float>(n) / static_cast<float>(lanes);
  return lanes == kernels.packed_b_size(1, 1) ? used * kOneVector : used;
}

Index RowBatch::capacity(Index segments) noexcept {
  const Index rows = std::clamp(kPointers / std::max<Index>(segments, 1), kFewestRows, kMostRows);
  return rows - rows % kFewestRows;
}

std::size_t row_batch_bytes(Index segments, simd::Accumulate accumulate) noexcept {
  // Fewer segments may take more memory, because they leave room for more rows: 34 have 240, 49 have 156.
  const Index pointers =
      std::max(std::min(kMostRows * (segments + kTables), kPointers + kTables * kMostRows), kFewestRows * (segments + kTables));
  const bool chains = accumulate == simd::Accumulate::add;
  return aligned_up(table_bytes(pointers)) + (chains ? float_bytes(kMostRows * simd::kGemmRowsScratch) : 0);
}

RowBatch::RowBatch(const simd::KernelTable& kernels, const simd::GemmRows& product, const GroupStep& step, bool residual,
                   std::byte* memory) noexcept
    : kernels_(kernels),
      product_(product),
      step_(step),
      slots_(product.a_segments == nullptr ? product.segments : 1),
      capacity_(capacity(product.segments)),
      a_(reinterpret_cast<const float**>(memory)),
      c_(reinterpret_cast<float**>(memory + table_bytes(capacity_ * product.segments))),
      residual_(residual ? reinterpret_cast<const float**>(memory + table_bytes(capacity_ * (product.segments + 1))) : nullptr),
      run_ends_(reinterpret_cast<Index*>(memory + table_bytes(capacity_ * (product.segments + 2)))) {
  product_.a = a_;
  product_.c = c_;
  product_.residual = residual_;
  if (product.accumulate == simd::Accumulate::add) {
    product_.scratch = reinterpret_cast<float*>(memory + aligned_up(table_bytes(capacity_ * (product.segments + kTables))));
  }
}

void RowBatch::flush() noexcept {
  if (rows_ == 0) return;
  product_.rows = rows_;
  if (product_.run_ends != nullptr) begin_run();  // which ends the last one
  const float* const packed_b = product_.packed_b;
  const float* const bias = product_.bias;
  for (Index group = 0; group < step_.groups; ++group) {
    kernels_.gemm_rows(product_);
    if (group + 1 == step_.groups) break;
    for (Index i = 0; i < rows_ * slots_; ++i) a_[i] = a_[i] == nullptr ? nullptr : a_[i] + step_.a;
    for (Index i = 0; i < rows_; ++i) c_[i] += step_.c;
    if (residual_ != nullptr) {
      for (Index i = 0; i < rows_; ++i) residual_[i] += step_.c;
    }
    product_.packed_b += step_.packed_b;
    if (bias != nullptr) product_.bias += step_.c;
  }
  product_.packed_b = packed_b;
  product_.bias = bias;
  product_.runs = 0;
  rows_ = 0;
}

void multiply_rows(const simd::KernelTable& kernels, const simd::GemmRows& product, Index rows, const float* a,
                   Index a_row_stride, const float* residual, float* c, Index c_stride, std::byte* memory) noexcept {
  RowBatch batch(kernels, product, {}, residual != nullptr, memory);
  for (Index i = 0; i < rows;) {
    const float* const row_residual = residual == nullptr ? nullptr : residual + i * c_stride;
    const RowBatch::Rows added = batch.add(rows - i, c + i * c_stride, c_stride, row_residual);
    for (Index j = 0; j < added.count; ++j) added.slots[j] = a + (i + j) * a_row_stride;
    i += added.count;
  }
  batch.flush();
}

void multiply_rows(Context& context, const simd::GemmRows& product, Index rows, const float* a, Index a_row_stride,
                   const float* residual, float* c) noexcept {
  const Index n = product.n;
  context.parallel_for(rows, (product.segment_length * n) / 16 + n + 1, [&](Index begin, Index end, int thread) {
    multiply_rows(context.kernels(), product, end - begin, a + begin * a_row_stride, a_row_stride,
                  residual == nullptr ? nullptr : residual + begin * n, c + begin * n, n, context.thread_scratch(thread));
  });
}

}  // namespace vitro::ops
