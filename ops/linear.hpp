// SPDX-License-Identifier: Apache-2.0
// Linear layers: y = x * w, with bias, residual and ReLU on request, and both gradients.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"
#include "epilogue.hpp"

namespace vitro::ops {

// x[rows, in] * w[in, out] -> y[rows, out]. There is nothing to choose; the struct keeps the families alike.
struct LinearAttrs {};

// Errors name both shapes: a rank other than 2, or x's second dimension not w's first.
Result<Shape> linear_shape(const LinearAttrs& attrs, const Shape& x, const Shape& w);

struct LinearProblem {
  Index rows = 0, in = 0, out = 0;
  Index x_row_stride = 0, x_column_stride = 1;  // any numbers: x and w may be permuted, reversed or broadcast views
  Index w_row_stride = 0, w_column_stride = 1;
};

// For dense x and w; whoever has views writes their strides into the result.
Result<LinearProblem> linear_problem(const LinearAttrs& attrs, const Shape& x, const Shape& w);

// Each y(i, j) is one chain of fused multiply-adds over k = 0, 1, ..., in-1 from +0, then the epilogue. in = 0 leaves the
// epilogue of +0. y, dx, dw and dy are dense; x and w have the problem's strides.
ScratchSize linear_scratch(const Context& context, const LinearProblem& problem);
void run_linear(Context& context, const LinearProblem& problem, const float* x, const float* w, const Epilogue& epilogue,
                float* y) noexcept;

// The same with weights packed before: memory of this size, 64-byte aligned, filled by pack_linear with this context's kernels.
// Needs less scratch.
std::size_t linear_packed_bytes(const Context& context, const LinearProblem& problem);
ScratchSize linear_packed_scratch(const Context& context, const LinearProblem& problem);
void pack_linear(Context& context, const LinearProblem& problem, const float* w, float* packed) noexcept;
void run_linear_packed(Context& context, const LinearProblem& problem, const float* x, const float* packed,
                       const Epilogue& epilogue, float* y) noexcept;

// dx = dy * transposed w: one chain over the columns of dy, rising, from +0.
ScratchSize linear_grad_input_scratch(const Context& context, const LinearProblem& problem);
void run_linear_grad_input(Context& context, const LinearProblem& problem, const float* dy, const float* w, float* dx) noexcept;

// dw = transposed x * dy: the rows in chunks of 512, one chain from +0 for each chunk, chunks added to +0 in rising order.
inline constexpr Index kGradWeightRows = 512;
ScratchSize linear_grad_weight_scratch(const Context& context, const LinearProblem& problem);
void run_linear_grad_weight(Context& context, const LinearProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. Any strides for x and w; dy, outputs and epilogue operands are
// contiguous; the output overlaps no input.
void linear(Context& context, const LinearAttrs& attrs, ConstTensorView x, ConstTensorView w, TensorView y,
            const EpilogueViews& epilogue = {});
void linear_grad_input(Context& context, const LinearAttrs& attrs, ConstTensorView dy, ConstTensorView w, TensorView dx);
void linear_grad_weight(Context& context, const LinearAttrs& attrs, ConstTensorView x, ConstTensorView dy, TensorView dw);

}  // namespace vitro::ops
