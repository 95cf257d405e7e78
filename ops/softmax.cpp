// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax on their kernels, rows split over threads.
#include "softmax.hpp"

#include "checks.hpp"

namespace vitro::ops {
namespace {

using Kernel = void (*)(Index rows, Index columns, const float* x, float* y);
using GradKernel = void (*)(Index rows, Index columns, const float* y, const float* dy, float* dx);

// An exponential costs about as much as eight additions.
Index row_work(const SoftmaxProblem& problem) noexcept { return 8 * problem.columns + 16; }

void run(Context& context, const SoftmaxProblem& problem, Kernel kernel, const float* x, float* y) noexcept {
  context.parallel_for(problem.rows, row_work(problem), [&](Index begin, Index end, int) {
    kernel(end - begin, problem.columns, x + begin * problem.columns, y + begin * problem.columns);
  });
}

void run_grad(Context& context, const SoftmaxProblem& problem, GradKernel kernel, const float* y, const float* dy,
              float* dx) noexcept {
  context.parallel_for(problem.rows, row_work(problem), [&](Index begin, Index end, int) {
    const Index at = begin * problem.columns;
    kernel(end - begin, problem.columns, y + at, dy + at, dx + at);
  });
}

SoftmaxProblem checked(const char* op, const SoftmaxAttrs& attrs, ConstTensorView x, TensorView y) {
  const SoftmaxProblem problem = softmax_problem(attrs, x.shape()).value();
  require_shape(op, {"y", y}, x.shape());
  require_contiguous(op, {{"x", x}, {"y", y}});
  require_apart(op, {"y", y}, {{"x", x}});
  return problem;
}

SoftmaxProblem checked_grad(const char* op, const SoftmaxAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx) {
  const SoftmaxProblem problem = softmax_problem(attrs, y.shape()).value();
  require_shape(op, {"dy", dy}, y.shape());
  require_shape(op, {"dx", dx}, y.shape());
  require_contiguous(op, {{"y", y}, {"dy", dy}, {"dx", dx}});
  require_apart(op, {"dx", dx}, {{"y", y}, {"dy", dy}});
  return problem;
}

}  // namespace

Result<Shape> softmax_shape(const SoftmaxAttrs&, const Shape& x) {
  if (x.rank() == 0)
    return shape_error("softmax: x has shape [], but the softmax runs along a last axis; x needs at least one.");
  return x;
}

Result<SoftmaxProblem> softmax_problem(const SoftmaxAttrs& attrs, const Shape& x) {
  if (Result<Shape> shape = softmax_shape(attrs, x); !shape) return std::move(shape).error();
  const Index columns = x[x.rank() - 1];
  return SoftmaxProblem{columns == 0 ? 0 : x.elements() / columns, columns};
}

void run_softmax(Context& context, const SoftmaxProblem& problem, const float* x, float* y) noexcept {
  run(context, problem, context.kernels().softmax, x, y);
}

void run_softmax_grad(Context& context, const SoftmaxProblem& problem, const float* y, const float* dy, float* dx) noexcept {
  run_grad(context, problem, context.kernels().softmax_grad, y, dy, dx);
}

void run_log_softmax(Context& context, const SoftmaxProblem& problem, const float* x, float* y) noexcept {
  run(context, problem, context.kernels().log_softmax, x, y);
}

void run_log_softmax_grad(Context& context, const SoftmaxProblem& problem, const float* y, const float* dy,
                          float* dx) noexcept {
  run_grad(context, problem, context.kernels().log_softmax_grad, y, dy, dx);
}

void softmax(Context& context, const SoftmaxAttrs& attrs, ConstTensorView x, TensorView y) {
  run_softmax(context, checked("softmax", attrs, x, y), x.data(), y.data());
}

void softmax_grad(Context& context, const SoftmaxAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx) {
  run_softmax_grad(context, checked_grad("softmax_grad", attrs, y, dy, dx), y.data(), dy.data(), dx.data());
}

void log_softmax(Context& context, const SoftmaxAttrs& attrs, ConstTensorView x, TensorView y) {
  run_log_softmax(context, checked("log_softmax", attrs, x, y), x.data(), y.data());
}

void log_softmax_grad(Context& context, const SoftmaxAttrs& attrs, ConstTensorView y, ConstTensorView dy, TensorView dx) {
  run_log_softmax_grad(context, checked_grad("log_softmax_grad", attrs, y, dy, dx), y.data(), dy.data(), dx.data());
}

}  // namespace vitro::ops
