// SPDX-License-Identifier: Apache-2.0
// What capture must know of single node types: what they may write over, what they can leave out, what they compute.
#include "graph.hpp"

namespace vitro {
namespace {

// Calls one of several lambdas by the node's type.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

double elements(TensorId id, const TensorTable& tensors) noexcept { return static_cast<double>(tensors.shape(id).elements()); }

// 2 * out-elements * (elements of w per output channel), for the product and both of its gradients alike.
double product_flops(TensorId y, TensorId w, const TensorTable& tensors) noexcept {
  const Shape& shape = tensors.shape(w);
  const Index columns = shape[shape.rank() - 1];
  return columns == 0 ? 0 : 2 * elements(y, tensors) * elements(w, tensors) / static_cast<double>(columns);
}

}  // namespace

TensorId optional_output(const Node& node) noexcept {
  const auto* pool = std::get_if<MaxPool2d>(&node);
  return pool == nullptr ? kNoTensor : pool->argmax;
}

// Only the first node of a step may be written over: later ones read their operands after the first part of the result stands.
OperandList overwritable(std::span<const Node> step, const TensorTable& tensors) {
  const auto binary = [&](const auto& n) {
    const Shape& y = tensors.shape(n.y);
    return OperandList(ids(tensors.shape(n.a) == y ? n.a : kNoTensor, tensors.shape(n.b) == y ? n.b : kNoTensor));
  };
  return std::visit(Overload{[](const Relu& n) { return OperandList(ids(n.x)); },
                             [](const ReluGrad& n) { return OperandList(ids(n.dy, n.y)); },
                             [](const AddBias& n) { return OperandList(ids(n.x)); },
                             [](const Dropout& n) { return OperandList(ids(n.x)); }, [&](const Add& n) { return binary(n); },
                             [&](const Mul& n) { return binary(n); }, [](const auto&) { return OperandList(ids()); }},
                    step.front());
}

double flops(const Node& node, const TensorTable& t) noexcept {
  const auto each = [&](TensorId id, double operations) { return operations * elements(id, t); };
  const auto window = [](const ops::Pool2dAttrs& a) { return static_cast<double>(a.kernel_h) * a.kernel_w; };
  return std::visit(
      Overload{[&](const Linear& n) { return product_flops(n.y, n.w, t) + (n.bias == kNoTensor ? 0 : each(n.y, 1)); },
               [&](const LinearGradInput& n) { return product_flops(n.dy, n.w, t); },
               [&](const LinearGradWeight& n) { return product_flops(n.dy, n.dw, t); },
               [&](const Conv2d& n) { return product_flops(n.y, n.w, t) + (n.bias == kNoTensor ? 0 : each(n.y, 1)); },
               [&](const Conv2dGradInput& n) { return product_flops(n.dy, n.w, t); },
               [&](const Conv2dGradWeight& n) { return product_flops(n.dy, n.dw, t); },
               [&](const AddBias& n) { return each(n.y, 1); }, [&](const BiasGrad& n) { return each(n.dy, 1); },
               [&](const Relu& n) { return each(n.y, 1); }, [&](const ReluGrad& n) { return each(n.dx, 1); },
               [&](const MaxPool2d& n) { return each(n.y, window(n.attrs)); },
               [&](const MaxPool2dGrad& n) { return each(n.dy, 1); },
               [&](const AveragePool2d& n) { return each(n.y, window(n.attrs) + 1); },
               [&](const AveragePool2dGrad& n) { return each(n.dy, window(n.attrs) + 1); },
               // Maximum, difference, exponential, sum, quotient: one each, an exponential counted as one.
               [&](const Softmax& n) { return each(n.y, 5); }, [&](const SoftmaxGrad& n) { return each(n.dx, 4); },
               [&](const LogSoftmax& n) { return each(n.y, 5); }, [&](const LogSoftmaxGrad& n) { return each(n.dx, 4); },
               [&](const CrossEntropy& n) { return each(n.logits, 5); },
               [&](const CrossEntropyGrad& n) { return each(n.dlogits, 1); }, [&](const Add& n) { return each(n.y, 1); },
               [&](const Mul& n) { return each(n.y, 1); }, [&](const SumTo& n) { return each(n.x, 1); },
               [&](const BytesToUnit& n) { return each(n.y, 1); }, [&](const Dropout& n) { return each(n.y, 1); },
               [&](const SumSquares& n) { return each(n.x, 2); }, [&](const AllFinite&) { return 0.0; },
               [&](const ClipFactor&) { return 2.0; }, [&](const CountCorrect& n) { return each(n.scores, 1); },
               [&](const SgdUpdate& n) { return each(n.p, 6); },
               [](const auto&) { return 0.0; }},  // Broadcast, Reshape, Permute, Fill move elements only
      node);
}

}  // namespace vitro
