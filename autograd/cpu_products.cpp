// SPDX-License-Identifier: Apache-2.0
// Linear layers and convolutions: alone, with the nodes that their epilogue can take over, and with weights packed before.
#include "../ops/linear.hpp"
#include "cpu_binder.hpp"

namespace vitro {
namespace {

// What a product ends with: + bias, + residual, ReLU, in this order and each at most once.
struct Ending {
  TensorId bias, residual = kNoTensor, y;
  bool relu = false;
};

bool extend(Ending& ending, const Node& node, const TensorTable& tensors) {
  if (const auto* n = std::get_if<AddBias>(&node)) {
    if (ending.bias != kNoTensor || ending.residual != kNoTensor || ending.relu || n->x != ending.y) return false;
    ending.bias = n->bias;
    ending.y = n->y;
    return true;
  }
  if (const auto* n = std::get_if<Add>(&node)) {
    if (ending.residual != kNoTensor || ending.relu || (n->a == ending.y) == (n->b == ending.y)) return false;
    const TensorId other = n->a == ending.y ? n->b : n->a;
    if (tensors.shape(other) != tensors.shape(ending.y)) return false;  // either of them may broadcast
    ending.residual = other;
    ending.y = n->y;
    return true;
  }
  const auto* n = std::get_if<Relu>(&node);
  if (n == nullptr || ending.relu || n->x != ending.y) return false;
  ending.relu = true;
  ending.y = n->y;
  return true;
}

std::optional<Ending> ending_of(TensorId bias, TensorId y, std::span<const Node> rest, const TensorTable& tensors) {
  Ending ending{.bias = bias, .y = y};
  for (const Node& node : rest) {
    if (!extend(ending, node, tensors)) return std::nullopt;
  }
  return ending;
}

template <class P>
struct Product {
  P problem;
  bool relu;
};

// Of a call on x, w, bias, residual, y.
template <class Call>
ops::Epilogue epilogue_of(const Call& c, const Execution& e) noexcept {
  return {c.template at_or_null<const float>(2, e), c.template at_or_null<const float>(3, e), c.problem.relu};
}

}  // namespace

bool ends_product(const Node& head, std::span<const Node> rest, const TensorTable& tensors) {
  if (const auto* n = std::get_if<Linear>(&head)) return ending_of(n->bias, n->y, rest, tensors).has_value();
  if (const auto* n = std::get_if<Conv2d>(&head)) return ending_of(n->bias, n->y, rest, tensors).has_value();
  return false;
}

BoundStep bind_product(const Linear& n, std::span<const Node> rest, const Binder& b) {
  const Ending end = *ending_of(n.bias, n.y, rest, b.tensors());
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.x), b.shape(n.w)).value();
  const bool packed = b.info(n.w).packed;
  const ScratchSize scratch =
      packed ? ops::linear_packed_scratch(b.context(), problem) : ops::linear_scratch(b.context(), problem);
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  constexpr auto run_packed = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear_packed(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  const Product<ops::LinearProblem> product{problem, end.relu};
  return packed ? b.step(run_packed, product, scratch, n.x, n.w, end.bias, end.residual, end.y)
                : b.step(run, product, scratch, n.x, n.w, end.bias, end.residual, end.y);
}

BoundStep bind_product(const Conv2d& n, std::span<const Node> rest, const Binder& b) {
  const Ending end = *ending_of(n.bias, n.y, rest, b.tensors());
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.w)).value();
  const bool packed = b.info(n.w).packed;
  const ScratchSize scratch =
      packed ? ops::conv2d_packed_scratch(b.context(), problem) : ops::conv2d_scratch(b.context(), problem);
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  constexpr auto run_packed = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d_packed(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  const Product<ops::Conv2dProblem> product{problem, end.relu};
  return packed ? b.step(run_packed, product, scratch, n.x, n.w, end.bias, end.residual, end.y)
                : b.step(run, product, scratch, n.x, n.w, end.bias, end.residual, end.y);
}

std::optional<Packing> pack_product(const Node& node, const Binder& b) {
  const auto make = [](TensorId w, std::size_t bytes, const auto& pack, const auto& problem) {
    return Packing{
        w, bytes, {Step::make(pack, Call<std::decay_t<decltype(problem)>, 2>{problem, {Packing::kFrom, Packing::kTo}}), {}}};
  };
  if (const auto* n = std::get_if<Linear>(&node)) {
    const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n->x), b.shape(n->w)).value();
    constexpr auto pack = [](const auto& c, const Execution& e) noexcept {
      ops::pack_linear(*e.context, c.problem, c.at(0, e), c.at(1, e));
    };
    return make(n->w, ops::linear_packed_bytes(b.context(), problem), pack, problem);
  }
  if (const auto* n = std::get_if<Conv2d>(&node)) {
    const ops::Conv2dProblem problem = ops::conv2d_problem(n->attrs, b.shape(n->x), b.shape(n->w)).value();
    constexpr auto pack = [](const auto& c, const Execution& e) noexcept {
      ops::pack_conv2d(*e.context, c.problem, c.at(0, e), c.at(1, e));
    };
    return make(n->w, ops::conv2d_packed_bytes(b.context(), problem), pack, problem);
  }
  return std::nullopt;
}

}  // namespace vitro
