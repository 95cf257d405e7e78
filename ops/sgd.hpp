// SPDX-License-Identifier: Apache-2.0
// The update of stochastic gradient descent with momentum and weight decay.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

namespace vitro::ops {

// hyper[3] = {rate, momentum, weight decay}: a tensor, not attributes, because schedules change it from step to step.
struct SgdAttrs {};

// The shape of the parameter. Errors: gradient or velocity of another shape, hyper not of shape [3].
Result<Shape> sgd_shape(const SgdAttrs& attrs, const Shape& hyper, const Shape& gradient, const Shape& velocity,
                        const Shape& parameter);

struct SgdProblem {
  Index elements = 0;
};

Result<SgdProblem> sgd_problem(const SgdAttrs& attrs, const Shape& hyper, const Shape& gradient, const Shape& velocity,
                               const Shape& parameter);

// For each element: g = fma(weight_decay, p, gradient); v = fma(momentum, v, g); p = fma(-rate, v, p). In place in velocity and
// parameter; hyper is read when run. Dense arrays that do not overlap; no scratch.
void run_sgd(Context& context, const SgdProblem& problem, const float* hyper, const float* gradient, float* velocity,
             float* parameter) noexcept;

// Checked form: fails with shape_mismatch or invalid_argument. All views contiguous, none overlapping another.
void sgd(Context& context, const SgdAttrs& attrs, ConstTensorView hyper, ConstTensorView gradient, TensorView velocity,
         TensorView parameter);

}  // namespace vitro::ops
