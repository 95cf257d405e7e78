// SPDX-License-Identifier: Apache-2.0
// Internal: the forward pass of a convolution with the output's pixels as the rows of a matrix product.
#pragma once

#include "conv2d.hpp"

namespace vitro::ops {

// Weights as pack_conv2d packs them for this way, 64-byte aligned.
std::size_t forward_rows_packed_bytes(const Context& context, const Conv2dProblem& problem) noexcept;
void pack_forward_rows(Context& context, const Conv2dProblem& problem, const float* w, float* packed) noexcept;

// run_conv2d_packed's result, but for the +0 that is added after padding: the bias contains it. `scratch`: the shared part.
ScratchSize forward_rows_scratch(const Conv2dProblem& problem) noexcept;
void run_forward_rows(Context& context, const Conv2dProblem& problem, const float* x, const float* packed,
                      const Epilogue& epilogue, std::byte* scratch, float* y) noexcept;

}  // namespace vitro::ops
