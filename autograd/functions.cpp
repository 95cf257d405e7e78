// SPDX-License-Identifier: Apache-2.0
// Each function infers the result's shape, makes the tensor and emits the node.
#include "functions.hpp"

#include "../ops/bias.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/cross_entropy.hpp"
#include "../ops/layout.hpp"
#include "../ops/linear.hpp"
#include "../ops/softmax.hpp"

#include <algorithm>
#include <functional>

namespace vitro {
namespace {

// The tape that all arguments share.
template <class... Vars>
Tape& common_tape(const char* name, Var first, Vars... rest) {
  if (first.tape == nullptr || ((rest.tape != first.tape) || ...)) {
    fail(ErrorCode::invalid_argument, std::string(name) + ": the arguments do not belong to one tape");
  }
  for (TensorId id : ids(first.id, rest.id...)) {
    if (!first.tape->tensors().contains(id)) {
      fail(ErrorCode::invalid_argument,
           std::string(name) + ": the argument " + to_string(id) + " is not on the tape (was it made before clear()?)");
    }
  }
  return *first.tape;
}

Var linear_node(Tape& tape, TensorId x, TensorId w, TensorId bias) {
  const TensorTable& tensors = tape.tensors();
  const TensorId y = tape.make(ops::linear_shape({}, tensors.shape(x), tensors.shape(w)).value());
  tape.emit(Linear{x, w, bias, y});
  return {&tape, y};
}

Var conv2d_node(Tape& tape, TensorId x, TensorId w, TensorId bias, const ops::Conv2dAttrs& attrs) {
  const TensorTable& tensors = tape.tensors();
  const TensorId y = tape.make(ops::conv2d_shape(attrs, tensors.shape(x), tensors.shape(w)).value());
  tape.emit(Conv2d{x, w, bias, y, attrs});
  return {&tape, y};
}

// A node with one input whose result has the input's shape.
template <class N>
Var same_shape(Var x) {
  Tape& tape = common_tape(N::kName, x);
  const TensorId y = tape.make(x.shape());
  tape.emit(N{x.id, y});
  return {&tape, y};
}

// A node with one input whose result has a given shape; the shape rule says whether that fits.
template <class N>
Var reshaped(Var x, const Shape& shape) {
  Tape& tape = common_tape(N::kName, x);
  const TensorId y = tape.make(shape);
  tape.emit(N{x.id, y});
  return {&tape, y};
}

template <class N>
Var broadcasting(ops::BinaryOp op, Var a, Var b) {
  Tape& tape = common_tape(N::kName, a, b);
  const TensorId y = tape.make(ops::binary_shape({op}, a.shape(), b.shape()).value());
  tape.emit(N{a.id, b.id, y});
  return {&tape, y};
}

// `written` must lie apart from `other`. Only the tape knows addresses, so no shape rule can check this. What is computed lies
// apart from all else.
void require_apart(const Tape& tape, Var written, Var other) {
  const auto bytes = [](Var x) { return static_cast<std::size_t>(x.shape().elements()) * sizeof(float); };
  const std::byte *const a = tape.memory_of(written.id), *const b = tape.memory_of(other.id);
  const std::less<const std::byte*> before;
  if (a == nullptr || b == nullptr || !before(a, b + bytes(other)) || !before(b, a + bytes(written))) return;
  fail(ErrorCode::invalid_argument, "sgd_update: " + describe(written.id, tape.tensors()) +
                                        " is written to and lies in the same " + "memory as " +
                                        describe(other.id, tape.tensors()) + "; they must not overlap");
}

void emit_update(Tape& tape, Var parameter, Var velocity, Var gradient, Var hyper, TensorId guard) {
  require_apart(tape, parameter, velocity);
  for (const Var other : {gradient, hyper}) {
    require_apart(tape, parameter, other);
    require_apart(tape, velocity, other);
  }
  tape.emit(SgdUpdate{parameter.id, velocity.id, gradient.id, hyper.id, guard});
}

Var sum_squares_node(Tape& tape, TensorId x, TensorId previous) {
  const TensorId total = tape.make(Shape());
  tape.emit(SumSquares{x, previous, total});
  return {&tape, total};
}

Var all_finite_node(Tape& tape, TensorId x, TensorId total, TensorId previous) {
  const TensorId ok = tape.make(Shape(), DType::i32);
  tape.emit(AllFinite{x, total, previous, ok});
  return {&tape, ok};
}

// x under another shape, for x of the same number of elements.
Var alias(Tape& tape, TensorId x, const Shape& shape) {
  const TensorId y = tape.make_alias(x, shape);
  tape.emit(Reshape{x, y});
  return {&tape, y};
}

}  // namespace

Var linear(Var x, Var w) { return linear_node(common_tape("linear", x, w), x.id, w.id, kNoTensor); }
Var linear(Var x, Var w, Var bias) { return linear_node(common_tape("linear", x, w, bias), x.id, w.id, bias.id); }

Var conv2d(Var x, Var w, const ops::Conv2dAttrs& attrs) {
  return conv2d_node(common_tape("conv2d", x, w), x.id, w.id, kNoTensor, attrs);
}
Var conv2d(Var x, Var w, Var bias, const ops::Conv2dAttrs& attrs) {
  return conv2d_node(common_tape("conv2d", x, w, bias), x.id, w.id, bias.id, attrs);
}

Var add_bias(Var x, Var bias) {
  Tape& tape = common_tape("add_bias", x, bias);
  const TensorId y = tape.make(ops::bias_shape({}, x.shape(), bias.shape()).value());
  tape.emit(AddBias{x.id, bias.id, y});
  return {&tape, y};
}

Var relu(Var x) { return same_shape<Relu>(x); }
Var softmax(Var x) { return same_shape<Softmax>(x); }
Var log_softmax(Var x) { return same_shape<LogSoftmax>(x); }

Var max_pool2d(Var x, const ops::Pool2dAttrs& attrs) {
  Tape& tape = common_tape("max_pool2d", x);
  const Shape shape = ops::max_pool2d_shape(attrs, x.shape()).value();
  const Index argmax_bytes = ops::max_pool2d_problem(attrs, x.shape()).value().argmax_bytes();
  const TensorId y = tape.make(shape);
  const TensorId argmax = tape.make(shape, argmax_bytes == 1 ? DType::u8 : DType::i32);
  tape.emit(MaxPool2d{x.id, y, argmax, attrs});
  return {&tape, y};
}

Var average_pool2d(Var x, const ops::Pool2dAttrs& attrs) {
  Tape& tape = common_tape("average_pool2d", x);
  const TensorId y = tape.make(ops::average_pool2d_shape(attrs, x.shape()).value());
  tape.emit(AveragePool2d{x.id, y, attrs});
  return {&tape, y};
}

CrossEntropyResult cross_entropy_with_probabilities(Var logits, Var labels) {
  Tape& tape = common_tape("cross_entropy", logits, labels);
  const TensorId loss = tape.make(ops::cross_entropy_shape({}, logits.shape(), labels.shape()).value());
  if (tape.mode() == TapeMode::run) {
    const LabelView view = tape.labels(labels);
    ops::check_labels({view.data(), static_cast<std::size_t>(view.elements())}, logits.shape()[1]).value();
  }
  const TensorId probabilities = tape.make(logits.shape());
  tape.emit(CrossEntropy{logits.id, labels.id, loss, probabilities});
  return {{&tape, loss}, {&tape, probabilities}};
}

Var add(Var a, Var b) { return broadcasting<Add>(ops::BinaryOp::add, a, b); }
Var mul(Var a, Var b) { return broadcasting<Mul>(ops::BinaryOp::mul, a, b); }

Var sum_to(Var x, const Shape& shape) { return reshaped<SumTo>(x, shape); }
Var broadcast_to(Var x, const Shape& shape) { return reshaped<Broadcast>(x, shape); }

Var reshape(Var x, std::initializer_list<Index> dims) {
  Tape& tape = common_tape("reshape", x);
  return alias(tape, x.id, ops::reshape_shape(x.shape(), {dims.begin(), dims.size()}).value());
}

Var flatten(Var x) {
  Tape& tape = common_tape("flatten", x);
  return alias(tape, x.id, ops::flatten_shape({}, x.shape()).value());
}

Var permute(Var x, std::span<const int> order) {
  Tape& tape = common_tape("permute", x);
  ops::PermuteAttrs attrs;
  // Whether it is a permutation is the shape rule's to say; what does not fit its attributes must be said here.
  const auto fits = [&](int axis) { return axis >= 0 && axis < x.shape().rank(); };
  if (order.size() > attrs.order.size() || !std::all_of(order.begin(), order.end(), fits)) {
    std::string axes;
    for (int axis : order) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
    fail(ErrorCode::invalid_argument,
         "permute: [" + axes + "] is no order of the " + std::to_string(x.shape().rank()) + " axes of " + to_string(x.shape()));
  }
  for (int axis : order) attrs.order[attrs.rank++] = static_cast<std::uint8_t>(axis);
  const TensorId y = tape.make(ops::permute_shape(attrs, x.shape()).value());
  tape.emit(Permute{x.id, y, attrs});
  return {&tape, y};
}

void sgd_update(Var parameter, Var velocity, Var gradient, Var hyper) {
  emit_update(common_tape("sgd_update", parameter, velocity, gradient, hyper), parameter, velocity, gradient, hyper, kNoTensor);
}

void sgd_update(Var parameter, Var velocity, Var gradient, Var hyper, Var guard) {
  emit_update(common_tape("sgd_update", parameter, velocity, gradient, hyper, guard), parameter, velocity, gradient, hyper,
              guard.id);
}

Var bytes_to_unit(Var x) { return same_shape<BytesToUnit>(x); }

Var dropout(Var x, Var step, const ops::DropoutAttrs& attrs) {
  Tape& tape = common_tape("dropout", x, step);
  const TensorId y = tape.make(x.shape());
  tape.emit(Dropout{x.id, step.id, y, attrs});
  return {&tape, y};
}

Var sum_squares(Var x) { return sum_squares_node(common_tape("sum_squares", x), x.id, kNoTensor); }
Var sum_squares(Var x, Var previous) { return sum_squares_node(common_tape("sum_squares", x, previous), x.id, previous.id); }

Var all_finite(Var x) { return all_finite_node(common_tape("all_finite", x), x.id, kNoTensor, kNoTensor); }
Var all_finite(Var x, Var total, Var previous) {
  return all_finite_node(common_tape("all_finite", x, total, previous), x.id, total.id, previous.id);
}

Var clip_factor(Var total, Var max_norm) {
  Tape& tape = common_tape("clip_factor", total, max_norm);
  const TensorId factor = tape.make(Shape());
  tape.emit(ClipFactor{total.id, max_norm.id, factor});
  return {&tape, factor};
}

Var count_correct(Var scores, Var labels) {
  Tape& tape = common_tape("count_correct", scores, labels);
  const TensorId correct = tape.make(Shape(), DType::i32);
  tape.emit(CountCorrect{scores.id, labels.id, correct});
  return {&tape, correct};
}

}  // namespace vitro
