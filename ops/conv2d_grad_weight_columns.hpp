// SPDX-License-Identifier: Apache-2.0
// Internal: the gradient of few filters, with the filters' elements in the lanes of the vectors.
//
// Where there are fewer output channels than a tile is wide, the roles change: the output channels are the rows of the product,
// the taps its columns. The taps of a chunk's pixels then stand in memory, copied (which is cheap here: they were read from
// many places, for few channels). The chain of each element is the same, and so are the bits.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d_grad_weight of this problem goes this way.
bool grad_weight_by_columns(const Context& context, const Conv2dProblem& problem) noexcept;
ScratchSize grad_weight_columns_scratch(const Context& context, const Conv2dProblem& problem) noexcept;
void run_grad_weight_columns(Context& context, const Conv2dProblem& problem, const float* x, const float* dy,
                             float* dw) noexcept;

}  // namespace vitro::ops
