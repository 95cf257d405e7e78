// SPDX-License-Identifier: Apache-2.0
// ReLU on the elementwise kernels.
#include "relu.hpp"

#include "checks.hpp"

namespace vitro::ops {

Result<Shape> relu_shape(const ReluAttrs&, const Shape& x) { return x; }

Result<ReluProblem> relu_problem(const ReluAttrs&, const Shape& x) { return ReluProblem{x.elements()}; }

void run_relu(Context& context, const ReluProblem& problem, const float* x, float* y) noexcept {
  context.parallel_for(problem.elements, 1,
                       [&](Index begin, Index end, int) { context.kernels().relu(end - begin, x + begin, y + begin); });
}

void run_relu_grad(Context& context, const ReluProblem& problem, const float* y, const float* dy, float* dx) noexcept {
  context.parallel_for(problem.elements, 1, [&](Index begin, Index end, int) {
    context.kernels().relu_grad(end - begin, y + begin, dy + begin, dx + begin);
  });
}

void relu(Context& context, const ReluAttrs& attrs, ConstTensorView x, TensorView y) {
  require_shape("relu", {"y", y}, relu_shape(attrs, x.shape()).value());
  require_contiguous("relu", {{"x", x}, {"y", y}});
  require_apart("relu", {"y", y}, {{"x", x}}, true);
  run_relu(context, relu_problem(attrs, x.shape()).value(), x.data(), y.data());
}

void relu_grad(Context& context, const ReluAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx) {
  require_shape("relu_grad", {"dy", dy}, y.shape());
  require_shape("relu_grad", {"dx", dx}, y.shape());
  require_contiguous("relu_grad", {{"y", y}, {"dy", dy}, {"dx", dx}});
  require_apart("relu_grad", {"dx", dx}, {{"y", y}, {"dy", dy}}, true);
  run_relu_grad(context, relu_problem(attrs, y.shape()).value(), y.data(), dy.data(), dx.data());
}

}  // namespace vitro::ops
