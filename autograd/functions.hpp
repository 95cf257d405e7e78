// SPDX-License-Identifier: Apache-2.0
// The operations as functions of Vars: each records (and in eager mode runs) one node, reshape excepted, which runs nothing.
//
// All arguments of a call belong to one tape. Errors are programming errors and fail() with a sentence that names the operation
// and the shapes. What each operation computes, to the bit, stands at its forward function in ops/.
#pragma once

#include "../ops/conv2d.hpp"
#include "../ops/dropout.hpp"
#include "../ops/pool2d.hpp"
#include "tape.hpp"

#include <initializer_list>

namespace vitro {

// x[M, in] * w[in, out] (+ bias[out]) -> [M, out]
Var linear(Var x, Var w);
Var linear(Var x, Var w, Var bias);

// x[N, H, W, C], w[kh, kw, C / groups, out] (+ bias[out]) -> [N, OH, OW, out]
Var conv2d(Var x, Var w, const ops::Conv2dAttrs& attrs = {});
Var conv2d(Var x, Var w, Var bias, const ops::Conv2dAttrs& attrs = {});

// x[.., C] + bias[C]
Var add_bias(Var x, Var bias);
Var relu(Var x);

// x[N, H, W, C] -> [N, OH, OW, C]
Var max_pool2d(Var x, const ops::Pool2dAttrs& attrs);
Var average_pool2d(Var x, const ops::Pool2dAttrs& attrs);

// Along the last axis.
Var softmax(Var x);
Var log_softmax(Var x);

// logits[M, classes], labels i32[M] -> the mean loss, a scalar. A tape that runs reads and checks the labels now: one outside
// [0, classes) is an error that names its row. Whoever runs a plan checks them first (ops::check_labels).
struct CrossEntropyResult {
  Var loss;
  Var probabilities;  // [M, classes], for reading only: gradients do not flow through it
};
CrossEntropyResult cross_entropy_with_probabilities(Var logits, Var labels);
inline Var cross_entropy(Var logits, Var labels) { return cross_entropy_with_probabilities(logits, labels).loss; }

// Element by element, with broadcasting.
Var add(Var a, Var b);
Var mul(Var a, Var b);

// x summed over the axes along which `shape` would be broadcast to x's shape.
Var sum_to(Var x, const Shape& shape);

// x repeated along the axes that broadcasting to `shape` adds or widens; a copy.
Var broadcast_to(Var x, const Shape& shape);

// x u8 -> x / 255
Var bytes_to_unit(Var x);

// x with each element set to +0 at random or scaled by 1 / (1 - rate); `step`, i32[], is read when run and draws anew
// (ops/dropout.hpp).
Var dropout(Var x, Var step, const ops::DropoutAttrs& attrs);

// The same elements in row-major order under another shape, of which one dimension may be -1 (whatever is left over); no copy.
// flatten keeps the first axis and joins the others.
Var reshape(Var x, std::initializer_list<Index> dims);
Var flatten(Var x);
// Axis i of the result is axis order[i] of x; a copy.
Var permute(Var x, std::span<const int> order);
inline Var permute(Var x, std::initializer_list<int> order) { return permute(x, std::span(order.begin(), order.size())); }

// In place: one step of SGD with momentum on `parameter` and `velocity`, which come from Tape::parameter() or Tape::state() and
// overlap neither each other nor the rest; hyper[3] = rate, momentum, weight decay, read when run.
void sgd_update(Var parameter, Var velocity, Var gradient, Var hyper);
// The same where `guard`, i32[], is not 0 when the node runs; else nothing happens.
void sgd_update(Var parameter, Var velocity, Var gradient, Var hyper, Var guard);

// What watches a training. Nothing here has a gradient.
// previous[] + the sum of x's squares; the squares of several tensors are summed by a chain of these.
Var sum_squares(Var x);
Var sum_squares(Var x, Var previous);
// i32[]: whether x is finite. `total` is a sum_squares that x is in, which mostly answers already. With `previous`, another
// such answer: whether both are.
Var all_finite(Var x);
Var all_finite(Var x, Var total, Var previous);
// max_norm / sqrt(total) where that is under 1, else 1: mul(gradient, clip_factor(...)) is a gradient clipped by norm.
Var clip_factor(Var total, Var max_norm);
// i32[]: rows of scores[M, classes] whose largest element is that of labels i32[M].
Var count_correct(Var scores, Var labels);

}  // namespace vitro
