// SPDX-License-Identifier: Apache-2.0
// The gradient rules, one short function per node type, and the reverse walk that calls them.
#include "gradients.hpp"

namespace vitro {

void Linear::gradient(Gradients& g) const {
  const TensorId dy = g.of(y);
  g.add(x, [&](TensorId dx) { return LinearGradInput{dy, w, dx}; });
  g.add(w, [&](TensorId dw) { return LinearGradWeight{x, dy, dw}; });
  g.add(bias, [&](TensorId db) { return BiasGrad{dy, db}; });
}

void Conv2d::gradient(Gradients& g) const {
  const TensorId dy = g.of(y);
  g.add(x, [&](TensorId dx) { return Conv2dGradInput{dy, w, dx, attrs}; });
  g.add(w, [&](TensorId dw) { return Conv2dGradWeight{x, dy, dw, attrs}; });
  g.add(bias, [&](TensorId db) { return BiasGrad{dy, db}; });
}

void AddBias::gradient(Gradients& g) const {
  const TensorId dy = g.of(y);
  g.add_reshaped(x, dy);
  g.add(bias, [&](TensorId db) { return BiasGrad{dy, db}; });
}

void Relu::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return ReluGrad{y, g.of(y), dx}; });
}

void MaxPool2d::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return MaxPool2dGrad{g.of(y), argmax, dx, attrs}; });
}

void AveragePool2d::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return AveragePool2dGrad{g.of(y), dx, attrs}; });
}

void Softmax::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return SoftmaxGrad{y, g.of(y), dx}; });
}

void LogSoftmax::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return LogSoftmaxGrad{y, g.of(y), dx}; });
}

void CrossEntropy::gradient(Gradients& g) const {
  if (g.of(probabilities) != kNoTensor) g.refuse("cross_entropy (through its probabilities; use softmax)");
  g.add(logits, [&](TensorId dlogits) { return CrossEntropyGrad{probabilities, labels, g.of(loss), dlogits}; });
}

void Add::gradient(Gradients& g) const {
  g.add_summed(a, g.of(y));
  g.add_summed(b, g.of(y));
}

void Mul::gradient(Gradients& g) const {
  const auto add_product = [&](TensorId factor, TensorId other) {
    if (!g.wanted(factor)) return;
    const TensorId product = g.tape().make(g.shape(y));
    g.tape().emit(Mul{g.of(y), other, product});
    g.add_summed(factor, product);
  };
  add_product(a, b);
  add_product(b, a);
}

void SumTo::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return Broadcast{g.of(y), dx}; });
}

void Broadcast::gradient(Gradients& g) const { g.add_summed(x, g.of(y)); }

void Reshape::gradient(Gradients& g) const { g.add_reshaped(x, g.of(y)); }

void Permute::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return Permute{g.of(y), dx, ops::inverse(attrs)}; });
}

void Dropout::gradient(Gradients& g) const {
  g.add(x, [&](TensorId dx) { return Dropout{g.of(y), step, dx, attrs}; });
}

void Fill::gradient(Gradients&) const {}         // a constant
void BytesToUnit::gradient(Gradients&) const {}  // of bytes, which have no gradient

// What watches a training has no gradient, nor have the nodes that backward() itself appends: second derivatives are not
// offered.
void SumSquares::gradient(Gradients& g) const { g.refuse(kName); }
void AllFinite::gradient(Gradients& g) const { g.refuse(kName); }
void ClipFactor::gradient(Gradients& g) const { g.refuse(kName); }
void CountCorrect::gradient(Gradients& g) const { g.refuse(kName); }
void LinearGradInput::gradient(Gradients& g) const { g.refuse(kName); }
void LinearGradWeight::gradient(Gradients& g) const { g.refuse(kName); }
void Conv2dGradInput::gradient(Gradients& g) const { g.refuse(kName); }
void Conv2dGradWeight::gradient(Gradients& g) const { g.refuse(kName); }
void BiasGrad::gradient(Gradients& g) const { g.refuse(kName); }
void ReluGrad::gradient(Gradients& g) const { g.refuse(kName); }
void MaxPool2dGrad::gradient(Gradients& g) const { g.refuse(kName); }
void AveragePool2dGrad::gradient(Gradients& g) const { g.refuse(kName); }
void SoftmaxGrad::gradient(Gradients& g) const { g.refuse(kName); }
void LogSoftmaxGrad::gradient(Gradients& g) const { g.refuse(kName); }
void CrossEntropyGrad::gradient(Gradients& g) const { g.refuse(kName); }
void SgdUpdate::gradient(Gradients& g) const { g.refuse(kName); }

TensorId Gradients::of(TensorId y) const noexcept {
  const auto index = static_cast<std::size_t>(y);
  return index < gradient_of_.size() ? gradient_of_[index] : kNoTensor;
}

void Gradients::add_summed(TensorId x, TensorId broadcast_gradient) {
  if (!wanted(x)) return;
  if (shape(x) == shape(broadcast_gradient)) return accumulate(x, broadcast_gradient);
  add(x, [&](TensorId dx) { return SumTo{broadcast_gradient, dx}; });
}

void Gradients::add_reshaped(TensorId x, TensorId gradient) {
  if (!wanted(x)) return;
  if (shape(x) == shape(gradient)) return accumulate(x, gradient);
  const TensorId dx = tape_.make_alias(gradient, shape(x));
  tape_.emit(Reshape{gradient, dx});
  accumulate(x, dx);
}

void Gradients::accumulate(TensorId x, TensorId contribution) {
  TensorId& gradient = gradient_of_[static_cast<std::size_t>(x)];
  if (gradient == kNoTensor) {
    gradient = contribution;
    return;
  }
  const TensorId sum = tape_.make(shape(x));
  tape_.emit(Add{gradient, contribution, sum});
  gradient = sum;
}

void Gradients::refuse(const char* node_name) const {
  fail(ErrorCode::unsupported, std::string("backward: no gradient is defined through the node ") + node_name);
}

void Tape::backward(Var loss) {
  if (differentiated_) fail(ErrorCode::invalid_argument, "Tape::backward: called a second time; clear() the tape first");
  if (!tensors_.contains(loss.id) || tensors_.shape(loss.id).elements() != 1 || tensors_[loss.id].type != DType::f32) {
    fail(ErrorCode::shape_mismatch, "Tape::backward: the loss must be one float, got " + describe(loss.id, tensors_));
  }
  if (!tensors_[loss.id].needs_gradient) {
    fail(ErrorCode::invalid_argument, "Tape::backward: the loss " + describe(loss.id, tensors_) +
                                          " does not depend on a parameter or on an input that needs a gradient");
  }
  differentiated_ = true;
  gradient_of_.assign(tensors_.size(), kNoTensor);
  const TensorId seed = make(tensors_.shape(loss.id));
  emit(Fill{seed, 1.0F});
  gradient_of_[static_cast<std::size_t>(loss.id)] = seed;

  Gradients gradients(*this, gradient_of_);
  std::size_t index = nodes_.size() - 1;  // the nodes that rules append from here on are not walked
  while (index-- > 0) {
    const Node node = nodes_[index];  // a copy: rules append to nodes_
    std::visit(
        [&](const auto& n) {
          for (TensorId output : n.outputs()) {
            if (gradients.of(output) == kNoTensor) continue;
            n.gradient(gradients);
            return;
          }
        },
        node);
  }
}

}  // namespace vitro
