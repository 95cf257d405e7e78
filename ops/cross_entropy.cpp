// SPDX-License-Identifier: Apache-2.0
// Sparse cross-entropy on its kernels, rows split over threads.
#include "cross_entropy.hpp"

#include "checks.hpp"

#include <string>

namespace vitro::ops {
namespace {

Index row_work(const CrossEntropyProblem& problem) noexcept { return 8 * problem.classes + 32; }

std::span<const std::int32_t> span_of(LabelView labels) { return {labels.data(), static_cast<std::size_t>(labels.elements())}; }

}  // namespace

Result<Shape> cross_entropy_shape(const CrossEntropyAttrs&, const Shape& x, const Shape& labels) {
  if (x.rank() != 2 || labels.rank() != 1 || labels[0] != x[0]) {
    return shape_error("cross_entropy: x of shape " + to_string(x) + " and labels of shape " + to_string(labels) +
                       " do not match; x is [rows, classes] and labels is [rows].");
  }
  if (x[0] > 0 && x[1] == 0) {
    return shape_error("cross_entropy: x of shape " + to_string(x) + " has rows but no classes, so no label can be right.");
  }
  return Shape{};
}

Result<CrossEntropyProblem> cross_entropy_problem(const CrossEntropyAttrs& attrs, const Shape& x, const Shape& labels) {
  if (Result<Shape> shape = cross_entropy_shape(attrs, x, labels); !shape) return std::move(shape).error();
  return CrossEntropyProblem{x[0], x[1]};
}

Status check_labels(std::span<const std::int32_t> labels, Index classes) {
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] >= 0 && labels[row] < classes) continue;
    return Error(ErrorCode::invalid_argument, "cross_entropy: the label of row " + std::to_string(row) + " is " +
                                                  std::to_string(labels[row]) + ", outside the " + std::to_string(classes) +
                                                  " classes (0 to " + std::to_string(classes - 1) + ").");
  }
  return {};
}

ScratchSize cross_entropy_scratch(const Context&, const CrossEntropyProblem& problem) {
  return {static_cast<std::size_t>(problem.rows) * sizeof(float), 0};
}

void run_cross_entropy(Context& context, const CrossEntropyProblem& problem, const float* x, const std::int32_t* labels,
                       float* loss, float* probabilities) noexcept {
  float* const losses = reinterpret_cast<float*>(context.shared_scratch());
  context.parallel_for(problem.rows, row_work(problem), [&](Index begin, Index end, int) {
    const Index at = begin * problem.classes;
    context.kernels().cross_entropy(end - begin, problem.classes, x + at, labels + begin, losses + begin, probabilities + at);
  });
  *loss = problem.rows == 0 ? 0.0f : context.kernels().sum(problem.rows, losses) / static_cast<float>(problem.rows);
}

void run_cross_entropy_grad(Context& context, const CrossEntropyProblem& problem, const float* probabilities,
                            const std::int32_t* labels, const float* dloss, float* dx) noexcept {
  if (problem.rows == 0) return;
  const float scale = *dloss / static_cast<float>(problem.rows);
  context.parallel_for(problem.rows, problem.classes + 8, [&](Index begin, Index end, int) {
    const Index at = begin * problem.classes;
    context.kernels().cross_entropy_grad(end - begin, problem.classes, probabilities + at, labels + begin, scale, dx + at);
  });
}

void cross_entropy(Context& context, const CrossEntropyAttrs& attrs, ConstTensorView x, LabelView labels, TensorView loss,
                   TensorView probabilities) {
  const CrossEntropyProblem problem = cross_entropy_problem(attrs, x.shape(), labels.shape()).value();
  require_shape("cross_entropy", {"loss", loss}, Shape{});
  require_shape("cross_entropy", {"probabilities", probabilities}, x.shape());
  require_contiguous("cross_entropy", {{"x", x}, {"labels", labels}, {"probabilities", probabilities}});
  require_apart("cross_entropy", {"loss", loss}, {{"x", x}, {"labels", labels}, {"probabilities", probabilities}});
  require_apart("cross_entropy", {"probabilities", probabilities}, {{"x", x}, {"labels", labels}});
  check_labels(span_of(labels), problem.classes).value();
  context.reserve_scratch(cross_entropy_scratch(context, problem));
  run_cross_entropy(context, problem, x.data(), labels.data(), loss.data(), probabilities.data());
}

void cross_entropy_grad(Context& context, const CrossEntropyAttrs& attrs, ConstTensorView probabilities, LabelView labels,
                        ConstTensorView dloss, TensorView dx) {
  const CrossEntropyProblem problem = cross_entropy_problem(attrs, probabilities.shape(), labels.shape()).value();
  require_shape("cross_entropy_grad", {"dloss", dloss}, Shape{});
  require_shape("cross_entropy_grad", {"dx", dx}, probabilities.shape());
  require_contiguous("cross_entropy_grad", {{"probabilities", probabilities}, {"labels", labels}, {"dx", dx}});
  require_apart("cross_entropy_grad", {"dx", dx}, {{"probabilities", probabilities}, {"labels", labels}, {"dloss", dloss}});
  check_labels(span_of(labels), problem.classes).value();
  run_cross_entropy_grad(context, problem, probabilities.data(), labels.data(), dloss.data(), dx.data());
}

}  // namespace vitro::ops
