// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of few filters, with a kernel row's taps in the lanes of the vectors, read where they lie in the
// image.
//
// As in conv2d_grad_weight_columns.hpp the output channels are the rows of the product and the taps its columns; but where the
// taps of a kernel row fill their vectors well, nothing is copied, and a chunk's chains stay in registers from its first pixel
// to its last. The chain of each element is the same, and so are the bits.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d_grad_weight of this problem goes this way.
bool grad_weight_in_planes(const Context& context, const Conv2dProblem& problem) noexcept;
ScratchSize grad_weight_planes_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_planes(Context& context, const Conv2dProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept;

}  // namespace vitro::ops
