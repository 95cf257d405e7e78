// SPDX-License-Identifier: Apache-2.0
// Predictions by plain comparison: exact, so that no kernel per instruction set is needed.
#include "metrics.hpp"

#include "checks.hpp"

namespace vitro::ops {
namespace {

std::int32_t largest(const float* scores, Index classes) noexcept {
  Index best = -1;
  for (Index j = 0; j < classes; ++j) {
    if (scores[j] != scores[j]) return -1;
    if (best < 0 || scores[j] > scores[best]) best = j;
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace

Result<PredictProblem> predict_problem(const Shape& scores) {
  if (scores.rank() != 2) {
    return shape_error("predict: scores have shape " + to_string(scores) + ", but [rows, classes] is needed.");
  }
  return PredictProblem{scores[0], scores[1]};
}

void run_predict(Context& context, const PredictProblem& problem, const float* scores, std::int32_t* predicted) noexcept {
  context.parallel_for(problem.rows, 2 * problem.classes + 1, [&](Index begin, Index end, int) {
    for (Index i = begin; i < end; ++i) predicted[i] = largest(scores + i * problem.classes, problem.classes);
  });
}

Index run_count_correct(const PredictProblem& problem, const float* scores, const std::int32_t* labels) noexcept {
  Index correct = 0;
  for (Index i = 0; i < problem.rows; ++i) {
    const std::int32_t predicted = largest(scores + i * problem.classes, problem.classes);
    correct += predicted >= 0 && predicted == labels[i] ? 1 : 0;
  }
  return correct;
}

void predict(Context& context, ConstTensorView scores, BasicView<std::int32_t> predicted) {
  const PredictProblem problem = predict_problem(scores.shape()).value();
  require_shape("predict", {"predicted", predicted}, Shape{problem.rows});
  require_contiguous("predict", {{"scores", scores}, {"predicted", predicted}});
  require_apart("predict", {"predicted", predicted}, {{"scores", scores}});
  run_predict(context, problem, scores.data(), predicted.data());
}

Index count_correct(ConstTensorView scores, LabelView labels) {
  const PredictProblem problem = predict_problem(scores.shape()).value();
  require_shape("count_correct", {"labels", labels}, Shape{problem.rows});
  require_contiguous("count_correct", {{"scores", scores}, {"labels", labels}});
  return run_count_correct(problem, scores.data(), labels.data());
}

}  // namespace vitro::ops
