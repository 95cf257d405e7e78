// SPDX-License-Identifier: Apache-2.0
// Internal: the sum of a dense matrix's rows, columns split over threads.
#pragma once

#include "context.hpp"

#include <algorithm>

namespace vitro::ops {

// y[columns] = the sum over the rows of x[rows, columns] by the outer-axis rule (chunks of 512). Whole cache lines of columns
// go to each thread.
inline void sum_rows(Context& context, Index rows, Index columns, const float* x, float* y) noexcept {
  constexpr Index kLine = 16;
  context.parallel_for((columns + kLine - 1) / kLine, rows * kLine, [&](Index begin, Index end, int) {
    const Index first = begin * kLine, last = std::min(end * kLine, columns);
    context.kernels().sum_rows(rows, last - first, x + first, columns, y + first);
  });
}

}  // namespace vitro::ops
