// SPDX-License-Identifier: Apache-2.0
// The shape rules: for each node type, whether the tensors it names have the shapes and element types it needs and makes.
#include "../ops/bias.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/cross_entropy.hpp"
#include "../ops/linear.hpp"
#include "../ops/metrics.hpp"
#include "../ops/relu.hpp"
#include "../ops/sgd.hpp"
#include "../ops/softmax.hpp"
#include "node.hpp"

namespace vitro {
namespace {

// Checks one node: collects the first error, so that a rule reads as a list of what must hold.
class Checker {
 public:
  template <class N>
  Checker(const N& node, const TensorTable& tensors) : name_(N::kName), tensors_(tensors) {
    for (TensorId id : node.inputs()) known(id);
    for (TensorId id : node.outputs()) known(id);
  }

  // The tensor's shape; an absent tensor or one that is not in the table (an error is noted then) has the shape [].
  Shape shape(TensorId id) const { return tensors_.contains(id) ? tensors_.shape(id) : Shape(); }

  // The tensor must have this shape (or the error that says why there is none) and type.
  Checker& expect(TensorId id, const Result<Shape>& shape, DType type = DType::f32) {
    if (!status_) return *this;
    if (!shape) {
      status_ = shape.error();
    } else if (tensors_.shape(id) != shape.value() || tensors_[id].type != type) {
      status_ = Error(ErrorCode::shape_mismatch, std::string(name_) + ": " + describe(id, tensors_) + " should be " +
                                                     to_string(type) + to_string(shape.value()));
    }
    return *this;
  }
  // The tensor may have any shape.
  Checker& expect_type(TensorId id, DType type = DType::f32) { return expect(id, shape(id), type); }
  // An optional tensor.
  Checker& expect_if(TensorId id, const Result<Shape>& shape, DType type = DType::f32) {
    return id == kNoTensor ? *this : expect(id, shape, type);
  }
  // A condition on the node's attributes.
  Checker& require(Status status) {
    if (status_) status_ = std::move(status);
    return *this;
  }

  // The tensor must be the caller's to write to: handed to Tape::parameter() or Tape::state(), and not an alias of such a one.
  Checker& expect_writable(TensorId id, const char* what) {
    if (status_ && tensors_[id].role != Role::parameter) {
      status_ = Error(ErrorCode::invalid_argument, std::string(name_) + ": the " + what + " " + describe(id, tensors_) +
                                                       " would be written to and must come from Tape::parameter() or "
                                                       "Tape::state()");
    }
    return *this;
  }

  Status done() const { return status_; }

 private:
  void known(TensorId id) {
    if (status_ && id != kNoTensor && !tensors_.contains(id)) {
      status_ = Error(ErrorCode::invalid_argument, std::string(name_) + ": " + describe(id, tensors_));
    }
  }

  const char* name_;
  const TensorTable& tensors_;
  Status status_;
};

// [C] for a shape that ends in C.
Shape last_axis(const Shape& shape) { return shape.rank() == 0 ? Shape() : Shape({shape[shape.rank() - 1]}); }

DType argmax_type(const ops::Pool2dAttrs& attrs) {
  return ops::Pool2dProblem{.attrs = attrs}.argmax_bytes() == 1 ? DType::u8 : DType::i32;
}

}  // namespace

Status Linear::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x)
      .expect_type(w)
      .expect(y, ops::linear_shape({}, c.shape(x), c.shape(w)))
      .expect_if(bias, last_axis(c.shape(y)))
      .done();
}

Status LinearGradInput::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(w).expect_type(dx).expect(dy, ops::linear_shape({}, c.shape(dx), c.shape(w))).done();
}

Status LinearGradWeight::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_type(dw).expect(dy, ops::linear_shape({}, c.shape(x), c.shape(dw))).done();
}

Status Conv2d::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x)
      .expect_type(w)
      .expect(y, ops::conv2d_shape(attrs, c.shape(x), c.shape(w)))
      .expect_if(bias, last_axis(c.shape(y)))
      .done();
}

Status Conv2dGradInput::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(w).expect_type(dx).expect(dy, ops::conv2d_shape(attrs, c.shape(dx), c.shape(w))).done();
}

Status Conv2dGradWeight::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_type(dw).expect(dy, ops::conv2d_shape(attrs, c.shape(x), c.shape(dw))).done();
}

Status AddBias::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_type(bias).expect(y, ops::bias_shape({}, c.shape(x), c.shape(bias))).done();
}

Status BiasGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(dy).expect_type(db).expect(dy, ops::bias_shape({}, c.shape(dy), c.shape(db))).done();
}

Status Relu::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(y, ops::relu_shape({}, c.shape(x))).done();
}

Status ReluGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(y).expect(dy, c.shape(y)).expect(dx, c.shape(y)).done();
}

Status MaxPool2d::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  const Result<Shape> shape = ops::max_pool2d_shape(attrs, c.shape(x));
  return c.expect_type(x).expect(y, shape).expect(argmax, shape, argmax_type(attrs)).done();
}

Status MaxPool2dGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  const Result<Shape> shape = ops::max_pool2d_shape(attrs, c.shape(dx));
  return c.expect_type(dx).expect(dy, shape).expect(argmax, shape, argmax_type(attrs)).done();
}

Status AveragePool2d::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(y, ops::average_pool2d_shape(attrs, c.shape(x))).done();
}

Status AveragePool2dGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(dx).expect(dy, ops::average_pool2d_shape(attrs, c.shape(dx))).done();
}

Status Softmax::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(y, ops::softmax_shape({}, c.shape(x))).done();
}

Status SoftmaxGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect(y, ops::softmax_shape({}, c.shape(y))).expect(dy, c.shape(y)).expect(dx, c.shape(y)).done();
}

Status LogSoftmax::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(y, ops::softmax_shape({}, c.shape(x))).done();
}

Status LogSoftmaxGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect(y, ops::softmax_shape({}, c.shape(y))).expect(dy, c.shape(y)).expect(dx, c.shape(y)).done();
}

Status CrossEntropy::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(logits)
      .expect_type(labels, DType::i32)
      .expect(loss, ops::cross_entropy_shape({}, c.shape(logits), c.shape(labels)))
      .expect(probabilities, c.shape(logits))
      .done();
}

Status CrossEntropyGrad::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(probabilities)
      .expect_type(labels, DType::i32)
      .expect(dloss, ops::cross_entropy_shape({}, c.shape(probabilities), c.shape(labels)))
      .expect(dlogits, c.shape(probabilities))
      .done();
}

Status Add::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(a).expect_type(b).expect(y, ops::binary_shape({ops::BinaryOp::add}, c.shape(a), c.shape(b))).done();
}

Status Mul::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(a).expect_type(b).expect(y, ops::binary_shape({ops::BinaryOp::mul}, c.shape(a), c.shape(b))).done();
}

Status SumTo::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_type(y).expect(x, broadcast_shapes(c.shape(x), c.shape(y))).done();
}

Status Broadcast::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_type(y).expect(y, broadcast_shapes(c.shape(x), c.shape(y))).done();
}

Status Reshape::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  const DType type = tensors.contains(x) ? tensors[x].type : DType::f32;
  return c.expect(y, ops::reshape_shape(c.shape(x), c.shape(y).dims()), type).done();
}

Status Permute::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(y, ops::permute_shape(attrs, c.shape(x))).done();
}

Status Fill::check(const TensorTable& tensors) const { return Checker(*this, tensors).expect_type(y).done(); }

Status BytesToUnit::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x, DType::u8).expect(y, c.shape(x)).done();
}

Status Dropout::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect(step, Shape(), DType::i32).expect(y, c.shape(x)).require(ops::check_dropout(attrs)).done();
}

Status SumSquares::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x).expect_if(previous, Shape()).expect(total, Shape()).done();
}

Status AllFinite::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(x)
      .expect_if(total, Shape())
      .expect_if(previous, Shape(), DType::i32)
      .expect(ok, Shape(), DType::i32)
      .done();
}

Status ClipFactor::check(const TensorTable& tensors) const {
  return Checker(*this, tensors).expect(total, Shape()).expect(max_norm, Shape()).expect(factor, Shape()).done();
}

Status CountCorrect::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  const Result<ops::PredictProblem> problem = ops::predict_problem(c.shape(scores));
  return c.expect_type(scores)
      .require(problem ? Status() : Status(problem.error()))
      .expect(labels, Shape({problem ? problem.value().rows : 0}), DType::i32)
      .expect(correct, Shape(), DType::i32)
      .done();
}

Status SgdUpdate::check(const TensorTable& tensors) const {
  Checker c(*this, tensors);
  return c.expect_type(p)
      .expect_type(v)
      .expect_type(dp)
      .expect_type(hyper)
      .expect(p, ops::sgd_shape({}, c.shape(hyper), c.shape(dp), c.shape(v), c.shape(p)))
      .expect_writable(p, "parameter")
      .expect_writable(v, "velocity")
      .expect_if(guard, Shape(), DType::i32)
      .done();
}

}  // namespace vitro
