// SPDX-License-Identifier: Apache-2.0
// The SGD update on its kernel.
#include "sgd.hpp"

#include "checks.hpp"

namespace vitro::ops {

Result<Shape> sgd_shape(const SgdAttrs&, const Shape& hyper, const Shape& gradient, const Shape& velocity,
                        const Shape& parameter) {
  if (hyper != Shape{3}) {
    return shape_error("sgd: hyper has shape " + to_string(hyper) + ", but it must be [3]: rate, momentum, weight decay.");
  }
  if (gradient != parameter || velocity != parameter) {
    return shape_error("sgd: the parameter has shape " + to_string(parameter) + ", its gradient " + to_string(gradient) +
                       " and its velocity " + to_string(velocity) + "; all three must be equal.");
  }
  return parameter;
}

Result<SgdProblem> sgd_problem(const SgdAttrs& attrs, const Shape& hyper, const Shape& gradient, const Shape& velocity,
                               const Shape& parameter) {
  if (Result<Shape> shape = sgd_shape(attrs, hyper, gradient, velocity, parameter); !shape) return std::move(shape).error();
  return SgdProblem{parameter.elements()};
}

void run_sgd(Context& context, const SgdProblem& problem, const float* hyper, const float* gradient, float* velocity,
             float* parameter) noexcept {
  context.parallel_for(problem.elements, 3, [&](Index begin, Index end, int) {
    context.kernels().sgd_update(end - begin, hyper[0], hyper[1], hyper[2], gradient + begin, velocity + begin,
                                 parameter + begin);
  });
}

void sgd(Context& context, const SgdAttrs& attrs, ConstTensorView hyper, ConstTensorView gradient, TensorView velocity,
         TensorView parameter) {
  const SgdProblem problem = sgd_problem(attrs, hyper.shape(), gradient.shape(), velocity.shape(), parameter.shape()).value();
  require_contiguous("sgd", {{"hyper", hyper}, {"gradient", gradient}, {"velocity", velocity}, {"parameter", parameter}});
  require_apart("sgd", {"parameter", parameter}, {{"hyper", hyper}, {"gradient", gradient}, {"velocity", velocity}});
  require_apart("sgd", {"velocity", velocity}, {{"hyper", hyper}, {"gradient", gradient}});
  run_sgd(context, problem, hyper.data(), gradient.data(), velocity.data(), parameter.data());
}

}  // namespace vitro::ops
