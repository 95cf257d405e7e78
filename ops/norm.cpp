// SPDX-License-Identifier: Apache-2.0
// Norms on the reduction kernel.
#include "norm.hpp"

#include <cmath>

namespace vitro::ops {

void run_sum_squares(Context& context, Index count, const float* x, const float* previous, float* total) noexcept {
  const float sum = context.kernels().sum_squares(count, x);
  *total = previous == nullptr ? sum : *previous + sum;
}

void run_all_finite(Index count, const float* x, const float* total, const std::int32_t* previous, std::int32_t* ok) noexcept {
  bool finite = previous == nullptr || *previous != 0;
  // A total may overflow where no element does, so only a finite one is an answer.
  if (total == nullptr || !std::isfinite(*total)) {
    for (Index i = 0; finite && i < count; ++i) finite = std::isfinite(x[i]);
  }
  *ok = finite ? 1 : 0;
}

void run_clip_factor(const float* total, const float* max_norm, float* factor) noexcept {
  const float norm = std::sqrt(*total);
  *factor = norm > *max_norm ? *max_norm / norm : 1.0f;
}

}  // namespace vitro::ops
