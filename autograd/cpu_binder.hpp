// SPDX-License-Identifier: Apache-2.0
// Internal: what the CPU backend makes its steps of.
#pragma once

#include "../ops/epilogue.hpp"
#include "backend.hpp"

#include <algorithm>

namespace vitro {

// What a step of kOperands tensors keeps: the numbers of its problem, and where the tensors lie.
template <class Problem, std::size_t kOperands>
struct Call {
  Problem problem;
  Place places[kOperands];

  bool has(std::size_t operand) const noexcept { return !is_nowhere(places[operand]); }
  template <class T = float>
  T* at(std::size_t operand, const Execution& execution) const noexcept {
    return resolve<T>(places[operand], execution.bases);
  }
  // The same, or null for a tensor that is absent.
  template <class T = float>
  T* at_or_null(std::size_t operand, const Execution& execution) const noexcept {
    return has(operand) ? at<T>(operand, execution) : nullptr;
  }
};

// Makes the step that runs `function(call, execution)` on `problem` and the tensors named.
class Binder {
 public:
  Binder(Context& context, const TensorTable& tensors) : context_(context), tensors_(tensors) {}

  const Shape& shape(TensorId id) const noexcept { return tensors_.shape(id); }
  const TensorInfo& info(TensorId id) const noexcept { return tensors_[id]; }
  const TensorTable& tensors() const noexcept { return tensors_; }
  Context& context() const noexcept { return context_; }
  Place place(TensorId id) const noexcept { return id == kNoTensor ? kNowhere : tensors_[id].place; }

  template <class Function, class Problem, class... Ids>
  BoundStep step(Function function, const Problem& problem, const ScratchSize& scratch, Ids... operands) const {
    return {Step::make(function, Call<Problem, sizeof...(Ids)>{problem, {place(operands)...}}), scratch};
  }

 private:
  Context& context_;
  const TensorTable& tensors_;
};

// cpu_fusion.cpp
bool cpu_fuses(std::span<const Node> nodes, const TensorTable& tensors);
BoundStep bind_fused(std::span<const Node> nodes, const Binder& binder);
// cpu_products.cpp: linear and convolution with the nodes that can end them; `rest` may be empty.
BoundStep bind_product(const Linear& node, std::span<const Node> rest, const Binder& binder);
BoundStep bind_product(const Conv2d& node, std::span<const Node> rest, const Binder& binder);
// The same of a convolution whose ending a max pooling follows.
bool ends_in_pool(const Node& head, std::span<const Node> rest, const TensorTable& tensors);
BoundStep bind_pooled(const Conv2d& node, std::span<const Node> rest, const Binder& binder);
bool ends_product(const Node& head, std::span<const Node> rest, const TensorTable& tensors);
std::optional<Packing> pack_product(const Node& node, const Binder& binder);
// cpu_updates.cpp: updates of one guard and the same hyper-parameters. Before each of them may stand what makes its gradient:
// the gradient of a linear layer's weights for one row, and a product with one number.
bool are_updates(std::span<const Node> nodes, const TensorTable& tensors);
BoundStep bind_updates(std::span<const Node> nodes, const Binder& b);
// The gradient of a linear layer's weights for one row, and what reads it: a sum of squares, or the test for infinities.
bool reads_outer(std::span<const Node> nodes, const TensorTable& tensors);
BoundStep bind_outer_reader(std::span<const Node> nodes, const Binder& b);

}  // namespace vitro
