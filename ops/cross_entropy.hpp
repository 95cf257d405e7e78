// SPDX-License-Identifier: Apache-2.0
// Sparse cross-entropy: the mean over rows of -log softmax(x)[label], and its gradient.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

#include <cstdint>
#include <span>

namespace vitro::ops {

// x[rows, classes], labels[rows] (int32, each in [0, classes)) -> loss[].
struct CrossEntropyAttrs {};

// Shape []. Errors: x not of rank 2, labels not of shape [rows], rows without classes.
Result<Shape> cross_entropy_shape(const CrossEntropyAttrs& attrs, const Shape& x, const Shape& labels);

struct CrossEntropyProblem {
  Index rows = 0, classes = 0;
};

Result<CrossEntropyProblem> cross_entropy_problem(const CrossEntropyAttrs& attrs, const Shape& x, const Shape& labels);

// Error invalid_argument names the first row whose label is outside [0, classes), the label and the number of classes. The cold
// path before a run: the runs below trust their labels.
Status check_labels(std::span<const std::int32_t> labels, Index classes);

// loss_i = log(s) - (x[label] - m) with the row's m and s as for softmax; loss = sum(loss_i) by the 16-lane rule, then one
// division by the number of rows. 0 rows give loss +0. probabilities[rows, classes] = softmax(x), kept for the gradient. Dense,
// not overlapping.
ScratchSize cross_entropy_scratch(const Context& context, const CrossEntropyProblem& problem);
void run_cross_entropy(Context& context, const CrossEntropyProblem& problem, const float* x, const std::int32_t* labels,
                       float* loss, float* probabilities) noexcept;
// scale = dloss / rows (one division); dx = scale * (probabilities - one_hot(label)), one subtraction where j = label, then one
// product. 0 rows give an empty dx. `dloss` points to one float, read when run. No scratch.
void run_cross_entropy_grad(Context& context, const CrossEntropyProblem& problem, const float* probabilities,
                            const std::int32_t* labels, const float* dloss, float* dx) noexcept;

// Checked forms, labels included: fail() with shape_mismatch or invalid_argument. All views contiguous; outputs overlap no
// input.
void cross_entropy(Context& context, const CrossEntropyAttrs& attrs, ConstTensorView x, LabelView labels, TensorView loss,
                   TensorView probabilities);
void cross_entropy_grad(Context& context, const CrossEntropyAttrs& attrs, ConstTensorView probabilities, LabelView labels,
                        ConstTensorView dloss, TensorView dx);

}  // namespace vitro::ops
