// SPDX-License-Identifier: Apache-2.0
// Norms over several tensors, taken one tensor after the other: the sum of squares, whether all is finite, and the factor that
// brings a gradient that is too long to a given length.
#pragma once

#include "context.hpp"

#include <cstdint>

namespace vitro::ops {

// total = previous + the sum of x[i]^2 (16 lanes of fma, then the tree; see simd/kernels.hpp), one addition; without the
// addition where `previous` is null.
void run_sum_squares(Context& context, Index count, const float* x, const float* previous, float* total) noexcept;

// ok = 1 where `previous` is null or points to 1, and no x[i] is an infinity or NaN; else 0. A finite `total` that contains the
// squares of x says so without looking at x; null: x is looked at.
void run_all_finite(Index count, const float* x, const float* total, const std::int32_t* previous, std::int32_t* ok) noexcept;

// factor = max_norm / norm where norm = sqrt(total) > max_norm, else 1 (also where total is NaN): the scale of Pascanu,
// Mikolov, Bengio, "On the difficulty of training recurrent neural networks", 2013.
void run_clip_factor(const float* total, const float* max_norm, float* factor) noexcept;

}  // namespace vitro::ops
