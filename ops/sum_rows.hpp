// SPDX-License-Identifier: Apache-2.0
// Internal: the sum of a dense matrix's rows, columns or chunks of rows split over threads.
#pragma once

#include "context.hpp"

#include <algorithm>

namespace vitro::ops {

// Chunks of rows whose sums threads make where the columns are too few to share, or 0: as many as one chain adds up, in the
// order that the rule asks for.
inline Index shared_chunks(const Context& context, Index rows, Index columns) noexcept {
  constexpr Index kMostColumns = 16;
  const Index chunks = (rows + simd::kSumChunk - 1) / simd::kSumChunk;
  const bool few = columns <= kMostColumns && chunks > 1 && chunks <= simd::kSumChunk;
  return context.threads() > 1 && few ? chunks : 0;
}

// y[columns] = the sum over the rows of x[rows, columns] by the outer-axis rule (chunks of 512). Whole cache lines of columns
// go to each thread; where there are few, chunks of rows do if `sums` has room for shared_chunks() rows. Of 36864 x 6 two
// threads read the halves that they wrote themselves.
inline void sum_rows(Context& context, Index rows, Index columns, const float* x, float* y, float* sums = nullptr) noexcept {
  constexpr Index kLine = 16, kChunk = simd::kSumChunk;
  const Index chunks = sums == nullptr ? 0 : shared_chunks(context, rows, columns);
  if (chunks > 0) {
    context.parallel_for(chunks, kChunk * columns, [&](Index begin, Index end, int) {
      context.kernels().sum_row_chunks(std::min(end * kChunk, rows) - begin * kChunk, columns, x + begin * kChunk * columns,
                                       columns, sums + begin * columns);
    });
    return context.kernels().sum_rows(chunks, columns, sums, columns, y);
  }
  context.parallel_for((columns + kLine - 1) / kLine, rows * kLine, [&](Index begin, Index end, int) {
    const Index first = begin * kLine, last = std::min(end * kLine, columns);
    context.kernels().sum_rows(rows, last - first, x + first, columns, y + first);
  });
}

}  // namespace vitro::ops
