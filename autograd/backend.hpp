// SPDX-License-Identifier: Apache-2.0
// Backend: turns nodes into steps that some processor can run.
#pragma once

#include "../ops/context.hpp"
#include "node.hpp"
#include "step.hpp"

#include <optional>
#include <span>

namespace vitro {

// A step, and the scratch memory that the context it runs with must have reserved.
struct BoundStep {
  Step step;
  ScratchSize scratch;
};

// A constant operand in the layout that the backend multiplies by.
struct Packing {
  TensorId operand;
  std::size_t bytes;  // of the packed form
  BoundStep pack;     // reads place `from` and writes place `to`
  static constexpr Place kFrom{0, 0}, kTo{0, 1};
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const noexcept = 0;
  // What a tape runs its steps with; null where they need no context.
  virtual Context* context() noexcept { return nullptr; }

  // The cold path: resolves shapes and places, so that the step itself cannot fail. Requires one node that check_shapes()
  // accepts, or several that fuses() accepts. Error `unsupported` where this backend does not implement the node.
  virtual Result<BoundStep> try_bind(std::span<const Node> nodes, const TensorTable& tensors) = 0;

  // Whether these nodes, of which each but the first reads the one before and nobody else does (or which all update
  // parameters, perhaps each behind nodes that make its gradient), can be one step. What a step keeps to itself lies nowhere.
  // The step gives the same bits as its nodes one by one.
  virtual bool fuses(std::span<const Node> nodes, const TensorTable& tensors) const;

  // How the node would like its constant operand to lie, if it has one that is worth it; try_bind() is told by
  // TensorInfo::packed. The operand has no other reader.
  virtual std::optional<Packing> packing(const Node& node, const TensorTable& tensors);
};

}  // namespace vitro
