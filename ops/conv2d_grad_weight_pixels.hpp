// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of filters of one tap and few input channels, with dy as it lies.
//
// Where dw has few rows, packing dy costs a good part of what multiplying it does. With a single tap the pixels that it sees
// have one distance, after a copy of them if need be, and the product needs neither pointers nor a packed operand.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d_grad_weight of this problem goes this way.
bool grad_weight_by_pixels(const Conv2dProblem& problem) noexcept;
ScratchSize grad_weight_pixels_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_pixels(Context& context, const Conv2dProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept;

}  // namespace vitro::ops
