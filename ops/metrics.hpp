// SPDX-License-Identifier: Apache-2.0
// What a classifier predicts, and how often that is right.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

#include <cstdint>

namespace vitro::ops {

struct PredictProblem {
  Index rows = 0, classes = 0;
};

// scores[rows, classes]. Error: a rank other than 2.
Result<PredictProblem> predict_problem(const Shape& scores);

// predicted[i] = the index of row i's largest score, the first one on ties; -1 where the row holds a NaN or is empty. Dense
// arrays; no scratch.
void run_predict(Context& context, const PredictProblem& problem, const float* scores, std::int32_t* predicted) noexcept;

// The number of rows whose prediction is their label. A row with a NaN counts as wrong.
Index run_count_correct(const PredictProblem& problem, const float* scores, const std::int32_t* labels) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. Contiguous views; labels and predicted have shape [rows].
void predict(Context& context, ConstTensorView scores, BasicView<std::int32_t> predicted);
Index count_correct(ConstTensorView scores, LabelView labels);

}  // namespace vitro::ops
