// SPDX-License-Identifier: Apache-2.0
// Bias: one number for each channel (the last axis), added to every row; and its gradient.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

namespace vitro::ops {

// x[..., C] + b[C] -> y[..., C].
struct BiasAttrs {};

// The shape of x. Errors: x without axes, or b not of shape [C].
Result<Shape> bias_shape(const BiasAttrs& attrs, const Shape& x, const Shape& b);

struct BiasProblem {
  Index rows = 0, channels = 0;
};

Result<BiasProblem> bias_problem(const BiasAttrs& attrs, const Shape& x, const Shape& b);

// y = x + b, one addition for each element. In place (y == x) is allowed. All arrays dense.
ScratchSize bias_scratch(const Context& context, const BiasProblem& problem);
void run_bias(Context& context, const BiasProblem& problem, const float* x, const float* b, float* y) noexcept;

// db = the sum of dy's rows: for each channel one chain of additions in chunks of 512 rows, chunks added to +0 in rising order.
// (The gradient of x is dy itself.)
ScratchSize bias_grad_scratch(const Context& context, const BiasProblem& problem);
void run_bias_grad(Context& context, const BiasProblem& problem, const float* dy, float* db) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. All views contiguous; y may be x, other overlaps are errors.
void bias(Context& context, const BiasAttrs& attrs, ConstTensorView x, ConstTensorView b, TensorView y);
void bias_grad(Context& context, const BiasAttrs& attrs, ConstTensorView dy, TensorView db);

}  // namespace vitro::ops
