// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of filters of many input channels, from copies of x by blocks of channels.
//
// A row of the product is x under one tap and channel, for all pixels of a chunk. In a copy by blocks all pixels of an image
// are one run, and a run costs 32 cycles beside its fma (AVX-512): 784 pixels went from 0.91 of the peak in 28 runs to 0.99 in
// one. A copy by channels read no faster.
//
// Each thread has rows of its own, for all chunks, and what they need in its own scratch: it packs all of dy for itself (at 64
// channels a fortieth of its time alone) and waits for nobody before the end. Two threads that packed and copied for each
// other, and waited after each, were 1.3 to 1.8 times as fast as one; this way 1.9.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d_grad_weight of this problem goes this way.
bool grad_weight_by_blocks(const Conv2dProblem& problem) noexcept;
ScratchSize grad_weight_blocks_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_blocks(Context& context, const Conv2dProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept;

}  // namespace vitro::ops
