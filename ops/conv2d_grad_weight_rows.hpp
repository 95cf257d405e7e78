// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of filters of few input channels, with x read row by row of pixels.
//
// A row of the product is x under one tap and channel, a channel's pixels C floats apart: as it lies, or from a copy with the
// padding around it.
//
// Threads have chunks of their own, whose sums are added afterwards, and wait for nobody before. Where there are fewer chunks
// than threads they have rows of dw of their own, and each packs and copies for itself.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// For every problem with images, channels and filters.
ScratchSize grad_weight_rows_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_rows(Context& context, const Conv2dProblem& problem, const float* x, const float* dy, float* dw) noexcept;

}  // namespace vitro::ops
