// SPDX-License-Identifier: Apache-2.0
// Node: one recorded operation, a std::variant of plain structs that hold tensor ids and attributes.
//
// Every node type offers its name, its input and output ids, `check` (the shape rule, in shape_rules.cpp) and `gradient` (the
// gradient rule, in gradients.cpp). Gradients and the optimizer's update are nodes like any other. Shapes are written beside
// the ids; [..] stands for any leading dimensions; an id that may be kNoTensor is marked optional.
#pragma once

#include "../ops/conv2d.hpp"
#include "../ops/dropout.hpp"
#include "../ops/layout.hpp"
#include "../ops/pool2d.hpp"
#include "tensor_table.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace vitro {

class Gradients;  // gradients.hpp

template <class... Ids>
constexpr std::array<TensorId, sizeof...(Ids)> ids(Ids... list) noexcept {
  return {list...};
}

// y[M, out] = x[M, in] * w[in, out] + bias[out] (optional)
struct Linear {
  TensorId x, w, bias, y;
  static constexpr const char* kName = "linear";
  constexpr auto inputs() const noexcept { return ids(x, w, bias); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// dx[M, in] = dy[M, out] * w^T
struct LinearGradInput {
  TensorId dy, w, dx;
  static constexpr const char* kName = "linear_grad_input";
  constexpr auto inputs() const noexcept { return ids(dy, w); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// dw[in, out] = x^T * dy, in chunks of 512 rows
struct LinearGradWeight {
  TensorId x, dy, dw;
  static constexpr const char* kName = "linear_grad_weight";
  constexpr auto inputs() const noexcept { return ids(x, dy); }
  constexpr auto outputs() const noexcept { return ids(dw); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y[N, OH, OW, out] = conv(x[N, H, W, in], w[kh, kw, in / groups, out]) + bias[out] (optional)
struct Conv2d {
  TensorId x, w, bias, y;
  ops::Conv2dAttrs attrs;
  static constexpr const char* kName = "conv2d";
  constexpr auto inputs() const noexcept { return ids(x, w, bias); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct Conv2dGradInput {
  TensorId dy, w, dx;
  ops::Conv2dAttrs attrs;
  static constexpr const char* kName = "conv2d_grad_input";
  constexpr auto inputs() const noexcept { return ids(dy, w); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct Conv2dGradWeight {
  TensorId x, dy, dw;
  ops::Conv2dAttrs attrs;
  static constexpr const char* kName = "conv2d_grad_weight";
  constexpr auto inputs() const noexcept { return ids(x, dy); }
  constexpr auto outputs() const noexcept { return ids(dw); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y[.., C] = x[.., C] + bias[C]
struct AddBias {
  TensorId x, bias, y;
  static constexpr const char* kName = "add_bias";
  constexpr auto inputs() const noexcept { return ids(x, bias); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// db[C] = sum of dy[.., C] over all leading dimensions
struct BiasGrad {
  TensorId dy, db;
  static constexpr const char* kName = "bias_grad";
  constexpr auto inputs() const noexcept { return ids(dy); }
  constexpr auto outputs() const noexcept { return ids(db); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct Relu {
  TensorId x, y;
  static constexpr const char* kName = "relu";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// dx = y <= 0 ? +0 : dy, with y the output of relu
struct ReluGrad {
  TensorId y, dy, dx;
  static constexpr const char* kName = "relu_grad";
  constexpr auto inputs() const noexcept { return ids(y, dy); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// x[N, H, W, C] -> y[N, OH, OW, C], and for each y the position of its element in the window (u8, or i32 above 256 positions)
struct MaxPool2d {
  TensorId x, y, argmax;
  ops::Pool2dAttrs attrs;
  static constexpr const char* kName = "max_pool2d";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y, argmax); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct MaxPool2dGrad {
  TensorId dy, argmax, dx;
  ops::Pool2dAttrs attrs;
  static constexpr const char* kName = "max_pool2d_grad";
  constexpr auto inputs() const noexcept { return ids(dy, argmax); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct AveragePool2d {
  TensorId x, y;
  ops::Pool2dAttrs attrs;
  static constexpr const char* kName = "average_pool2d";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct AveragePool2dGrad {
  TensorId dy, dx;
  ops::Pool2dAttrs attrs;
  static constexpr const char* kName = "average_pool2d_grad";
  constexpr auto inputs() const noexcept { return ids(dy); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// Along the last axis.
struct Softmax {
  TensorId x, y;
  static constexpr const char* kName = "softmax";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct SoftmaxGrad {
  TensorId y, dy, dx;
  static constexpr const char* kName = "softmax_grad";
  constexpr auto inputs() const noexcept { return ids(y, dy); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct LogSoftmax {
  TensorId x, y;
  static constexpr const char* kName = "log_softmax";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct LogSoftmaxGrad {
  TensorId y, dy, dx;
  static constexpr const char* kName = "log_softmax_grad";
  constexpr auto inputs() const noexcept { return ids(y, dy); }
  constexpr auto outputs() const noexcept { return ids(dx); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// logits[M, classes], labels i32[M] -> loss[] (mean over rows), probabilities[M, classes]
struct CrossEntropy {
  TensorId logits, labels, loss, probabilities;
  static constexpr const char* kName = "cross_entropy";
  constexpr auto inputs() const noexcept { return ids(logits, labels); }
  constexpr auto outputs() const noexcept { return ids(loss, probabilities); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

struct CrossEntropyGrad {
  TensorId probabilities, labels, dloss, dlogits;
  static constexpr const char* kName = "cross_entropy_grad";
  constexpr auto inputs() const noexcept { return ids(probabilities, labels, dloss); }
  constexpr auto outputs() const noexcept { return ids(dlogits); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y = a + b with broadcasting
struct Add {
  TensorId a, b, y;
  static constexpr const char* kName = "add";
  constexpr auto inputs() const noexcept { return ids(a, b); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y = a * b, element by element, with broadcasting
struct Mul {
  TensorId a, b, y;
  static constexpr const char* kName = "mul";
  constexpr auto inputs() const noexcept { return ids(a, b); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y = x summed over the axes along which y's shape was broadcast to x's: the gradient of broadcasting
struct SumTo {
  TensorId x, y;
  static constexpr const char* kName = "sum_to";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y = x broadcast to y's shape; a copy.
struct Broadcast {
  TensorId x, y;
  static constexpr const char* kName = "broadcast";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// The same elements under another shape: y lies where x lies, nothing runs.
struct Reshape {
  TensorId x, y;
  static constexpr const char* kName = "reshape";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// Axis i of y is axis attrs.order[i] of x; a copy.
struct Permute {
  TensorId x, y;
  ops::PermuteAttrs attrs;
  static constexpr const char* kName = "permute";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// Every element of y becomes value.
struct Fill {
  TensorId y;
  float value;
  static constexpr const char* kName = "fill";
  constexpr auto inputs() const noexcept { return ids(); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// y = x / 255, x u8 of any shape
struct BytesToUnit {
  TensorId x, y;
  static constexpr const char* kName = "bytes_to_unit";
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// step i32[], read when the node runs, decides which elements become +0; its own gradient
struct Dropout {
  TensorId x, step, y;
  ops::DropoutAttrs attrs;
  static constexpr const char* kName = "dropout";
  constexpr auto inputs() const noexcept { return ids(x, step); }
  constexpr auto outputs() const noexcept { return ids(y); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// total[] = previous[] (optional) + the sum of x's squares
struct SumSquares {
  TensorId x, previous, total;
  static constexpr const char* kName = "sum_squares";
  constexpr auto inputs() const noexcept { return ids(x, previous); }
  constexpr auto outputs() const noexcept { return ids(total); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// ok i32[] = 1 if x is finite and previous i32[] (optional) is 1, else 0; total[] (optional) is a sum that x's squares are in
struct AllFinite {
  TensorId x, total, previous, ok;
  static constexpr const char* kName = "all_finite";
  constexpr auto inputs() const noexcept { return ids(x, total, previous); }
  constexpr auto outputs() const noexcept { return ids(ok); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// factor[] = max_norm[] / sqrt(total[]) where that is under 1, else 1
struct ClipFactor {
  TensorId total, max_norm, factor;
  static constexpr const char* kName = "clip_factor";
  constexpr auto inputs() const noexcept { return ids(total, max_norm); }
  constexpr auto outputs() const noexcept { return ids(factor); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// correct i32[] = the number of rows of scores[M, classes] whose largest element is that of labels i32[M]
struct CountCorrect {
  TensorId scores, labels, correct;
  static constexpr const char* kName = "count_correct";
  constexpr auto inputs() const noexcept { return ids(scores, labels); }
  constexpr auto outputs() const noexcept { return ids(correct); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

// In place: g = fma(weight_decay, p, dp); v = fma(momentum, v, g); p = fma(-rate, v, p); hyper = [rate, momentum, weight_decay]
// and guard i32[] (optional) are read when the node runs, which does nothing where guard is 0.
struct SgdUpdate {
  TensorId p, v, dp, hyper, guard;
  static constexpr const char* kName = "sgd_update";
  constexpr auto inputs() const noexcept { return ids(p, v, dp, hyper, guard); }
  constexpr auto outputs() const noexcept { return ids(p, v); }
  Status check(const TensorTable& tensors) const;
  void gradient(Gradients& gradients) const;
};

using Node =
    std::variant<Linear, LinearGradInput, LinearGradWeight, Conv2d, Conv2dGradInput, Conv2dGradWeight, AddBias, BiasGrad, Relu,
                 ReluGrad, MaxPool2d, MaxPool2dGrad, AveragePool2d, AveragePool2dGrad, Softmax, SoftmaxGrad, LogSoftmax,
                 LogSoftmaxGrad, CrossEntropy, CrossEntropyGrad, Add, Mul, SumTo, Broadcast, Reshape, Permute, Fill,
                 BytesToUnit, Dropout, SumSquares, AllFinite, ClipFactor, CountCorrect, SgdUpdate>;

// What a type must offer to be a node; an alternative of Node that lacks a piece does not compile.
template <class N>
concept NodeType = std::is_trivially_copyable_v<N> &&
    requires(const N& node, const TensorTable& tensors, Gradients& gradients) {
  { N::kName } -> std::convertible_to<const char*>;
  {node.inputs()};
  {node.outputs()};
  { node.check(tensors) } -> std::same_as<Status>;
  { node.gradient(gradients) } -> std::same_as<void>;
};

// Naming kIsNodeType<N> is an error that lists the missing piece unless N is a NodeType.
template <NodeType N>
inline constexpr bool kIsNodeType = true;
template <class... N>
consteval bool all_node_types(std::type_identity<std::variant<N...>>) {
  return (kIsNodeType<N> && ...);
}
static_assert(all_node_types(std::type_identity<Node>{}));
static_assert(sizeof(Node) <= 40 && std::is_trivially_copyable_v<Node>);

inline const char* name(const Node& node) noexcept {
  return std::visit([](const auto& n) -> const char* { return n.kName; }, node);
}

// The shape rule: whether the shapes and types in the table are what the node needs and makes. The error names the node and
// both.
inline Status check_shapes(const Node& node, const TensorTable& tensors) {
  return std::visit([&](const auto& n) { return n.check(tensors); }, node);
}

}  // namespace vitro
