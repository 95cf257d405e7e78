// SPDX-License-Identifier: Apache-2.0
// Internal: convolutions with few channels, computed with the pixels of an image in the lanes of the vectors.
//
// A product whose rows are pixels and whose columns are 6 channels leaves most lanes of a vector idle. Here the roles change:
// bands of the image are copied to planes, one for each channel, in which the pixels that one tap reads for all outputs of the
// band follow each other, and the filters (rows) multiply them (columns). Where a plane is wider than the output, the lanes
// between two rows compute what nobody reads. The chain of each element is the same, and so are the bits.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d / run_conv2d_grad_input of this problem go this way (decided by sizes alone).
bool forward_in_pixel_lanes(const Context& context, const Conv2dProblem& problem) noexcept;
bool grad_input_in_pixel_lanes(const Context& context, const Conv2dProblem& problem) noexcept;

// Thread scratch, in bytes.
std::size_t forward_pixel_lanes_bytes(const Conv2dProblem& problem) noexcept;
std::size_t grad_input_pixel_lanes_bytes(const Conv2dProblem& problem) noexcept;

// w as in conv2d.hpp, not packed.
void run_forward_pixel_lanes(Context& context, const Conv2dProblem& problem, const float* x, const float* w,
                             const Epilogue& epilogue, float* y) noexcept;
void run_grad_input_pixel_lanes(Context& context, const Conv2dProblem& problem, const float* dy, const float* w,
                                float* dx) noexcept;

}  // namespace vitro::ops
