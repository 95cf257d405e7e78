// SPDX-License-Identifier: Apache-2.0
// ReLU and its gradient.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

namespace vitro::ops {

// y = x < 0 ? +0 : x, so relu(-0) is -0 and relu(NaN) is NaN.
struct ReluAttrs {};

// The shape of x; every shape is legal.
Result<Shape> relu_shape(const ReluAttrs& attrs, const Shape& x);

struct ReluProblem {
  Index elements = 0;
};

Result<ReluProblem> relu_problem(const ReluAttrs& attrs, const Shape& x);

// In place (y == x) is allowed. Dense arrays, no scratch.
void run_relu(Context& context, const ReluProblem& problem, const float* x, float* y) noexcept;

// dx = y <= 0 ? +0 : dy, where y is relu's output (its input gives the same). A NaN in y passes dy on. dx may be dy.
void run_relu_grad(Context& context, const ReluProblem& problem, const float* y, const float* dy, float* dx) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. All views contiguous; y may be x and dx may be dy or y, other
// overlaps are errors.
void relu(Context& context, const ReluAttrs& attrs, ConstTensorView x, TensorView y);
void relu_grad(Context& context, const ReluAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx);

}  // namespace vitro::ops
