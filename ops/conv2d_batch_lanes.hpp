// SPDX-License-Identifier: Apache-2.0
// Internal: convolutions with few channels, computed with the images of the batch in the lanes of the vectors.
//
// A product whose rows are pixels and whose columns are 6 channels leaves most lanes of a vector idle. Where the batch is
// large enough the roles change: x is transposed to [H, W, C, images], and for each pixel the filters (rows) multiply the taps
// of all images (columns). The chain of each element is the same, and so are the bits.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Whether run_conv2d / run_conv2d_grad_input of this problem go this way (decided by sizes and the number of threads).
bool forward_in_batch_lanes(const Context& context, const Conv2dProblem& problem) noexcept;
bool grad_input_in_batch_lanes(const Context& context, const Conv2dProblem& problem) noexcept;

// Thread scratch, in bytes.
std::size_t forward_batch_lanes_bytes(const Context& context, const Conv2dProblem& problem) noexcept;
std::size_t grad_input_batch_lanes_bytes(const Context& context, const Conv2dProblem& problem) noexcept;

// filters: [OC, KH * KW * C], the transpose of the weights. dx and y as in conv2d.hpp.
void run_forward_batch_lanes(Context& context, const Conv2dProblem& problem, const float* x, const float* filters,
                             const Epilogue& epilogue, float* y) noexcept;
void run_grad_input_batch_lanes(Context& context, const Conv2dProblem& problem, const float* dy, const float* w,
                                float* dx) noexcept;

}  // namespace vitro::ops
