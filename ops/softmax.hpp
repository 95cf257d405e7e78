// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over the last axis, and their gradients.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

namespace vitro::ops {

struct SoftmaxAttrs {};

// The shape of x. Error: x without axes.
Result<Shape> softmax_shape(const SoftmaxAttrs& attrs, const Shape& x);

struct SoftmaxProblem {
  Index rows = 0, columns = 0;
};

Result<SoftmaxProblem> softmax_problem(const SoftmaxAttrs& attrs, const Shape& x);

// In each row: m = max, e_j = exp(x_j - m), s = sum(e) by the 16-lane rule, y_j = e_j / s. A NaN makes its whole row NaN.
// Arrays dense, not overlapping; no scratch.
void run_softmax(Context& context, const SoftmaxProblem& problem, const float* x, float* y) noexcept;
// dx_j = y_j * (dy_j - dot) with dot = sum(y * dy) by the 16-lane rule (fused multiply-adds).
void run_softmax_grad(Context& context, const SoftmaxProblem& problem, const float* y, const float* dy, float* dx) noexcept;

// y_j = (x_j - m) - log(s), with m and s as above.
void run_log_softmax(Context& context, const SoftmaxProblem& problem, const float* x, float* y) noexcept;
// dx_j = fma(-exp(y_j), sum(dy), dy_j), the sum by the 16-lane rule.
void run_log_softmax_grad(Context& context, const SoftmaxProblem& problem, const float* y, const float* dy, float* dx) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. All views contiguous; the output overlaps no input.
void softmax(Context& context, const SoftmaxAttrs& attrs, ConstTensorView x, TensorView y);
void softmax_grad(Context& context, const SoftmaxAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx);
void log_softmax(Context& context, const SoftmaxAttrs& attrs, ConstTensorView x, TensorView y);
void log_softmax_grad(Context& context, const SoftmaxAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx);

}  // namespace vitro::ops
