// SPDX-License-Identifier: Apache-2.0
// Internal: what a gradient rule works with while backward() walks the tape in reverse.
#pragma once

#include "tape.hpp"

namespace vitro {

// A rule is called only for a node one of whose outputs has a gradient. An accumulated gradient (of a tensor used several
// times) is a sum in the order in which the contributions are appended to the tape: the last use of the tensor comes first.
class Gradients {
 public:
  Gradients(Tape& tape, std::vector<TensorId>& gradient_of) : tape_(tape), gradient_of_(gradient_of) {}

  Tape& tape() noexcept { return tape_; }
  const Shape& shape(TensorId x) const noexcept { return tape_.tensors().shape(x); }

  // d loss / d y, or kNoTensor if y does not contribute.
  TensorId of(TensorId y) const noexcept;
  // Whether x is there and needs a gradient.
  bool wanted(TensorId x) const noexcept { return x != kNoTensor && tape_.tensors()[x].needs_gradient; }

  // Where x is wanted: appends the node that `make(dx)` returns, with dx a new tensor of x's shape, and adds dx to x's
  // gradient.
  template <class Make>
  void add(TensorId x, const Make& make) {
    if (!wanted(x)) return;
    const TensorId dx = tape_.make(shape(x));
    tape_.emit(make(dx));
    accumulate(x, dx);
  }
  // The same for a gradient that is there already, with the shape that x was broadcast to.
  void add_summed(TensorId x, TensorId broadcast_gradient);
  // The same for a gradient with x's elements under another shape.
  void add_reshaped(TensorId x, TensorId gradient);

  // For nodes without a rule: fails, naming the node.
  [[noreturn]] void refuse(const char* node_name) const;

 private:
  void accumulate(TensorId x, TensorId contribution);

  Tape& tape_;
  std::vector<TensorId>& gradient_of_;
};

}  // namespace vitro
