// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of few filters, with the chunks of the batch in the lanes of the vectors.
//
// Each chunk of images is a chain of its own, so that sixteen chunks fill the lanes however few channels there are: x and dy of
// as many images are transposed to [pixels, channels, chunks], for each pixel the taps multiply the output channels, and in the
// end the lanes are added one after the other. The chain of each element is the same, and so are the bits.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d_grad_weight of this problem goes this way (decided by sizes and the number of threads).
bool grad_weight_in_lanes(const Context& context, const Conv2dProblem& problem) noexcept;
ScratchSize grad_weight_lanes_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_lanes(Context& context, const Conv2dProblem& problem, const float* x, const float* dy, float* dw) noexcept;

}  // namespace vitro::ops
