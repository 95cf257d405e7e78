// SPDX-License-Identifier: Apache-2.0
// Norms of an outer product on its kernels.
#include "outer.hpp"

#include "row_batch.hpp"

#include <algorithm>
#include <cmath>

namespace vitro::ops {

std::size_t outer_bytes(const OuterProblem& problem) noexcept {
  return aligned_up(float_bytes(problem.columns + simd::kOuterRepeated));
}

simd::OuterProduct prepare_outer(const OuterProblem& problem, const float* x, const float* dy, std::byte* scratch) noexcept {
  float* const row = reinterpret_cast<float*>(scratch);
  std::copy_n(dy, problem.columns, row);
  for (Index i = 0; i < simd::kOuterRepeated && problem.columns > 0; ++i) row[problem.columns + i] = row[i];
  return {problem.columns, x, row};
}

void run_sum_squares_outer(Context& context, const OuterProblem& problem, const float* x, const float* dy,
                           const float* previous, float* total) noexcept {
  const simd::OuterProduct outer = prepare_outer(problem, x, dy, context.shared_scratch());
  const float sum = context.kernels().sum_squares_outer(outer, problem.elements());
  *total = previous == nullptr ? sum : *previous + sum;
}

void run_all_finite_outer(const OuterProblem& problem, const float* x, const float* dy, const float* total,
                          const std::int32_t* previous, std::int32_t* ok) noexcept {
  bool finite = previous == nullptr || *previous != 0;
  if (total == nullptr || !std::isfinite(*total)) {
    for (Index i = 0; finite && i < problem.rows; ++i) {
      for (Index j = 0; finite && j < problem.columns; ++j) finite = std::isfinite(x[i] * dy[j]);
    }
  }
  *ok = finite ? 1 : 0;
}

}  // namespace vitro::ops
