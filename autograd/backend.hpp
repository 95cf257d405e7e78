// SPDX-License-Identifier: Apache-2.0
// Backend: turns a node into a step that some processor can run.
#pragma once

#include "node.hpp"
#include "step.hpp"

namespace vitro {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const noexcept = 0;

  // The cold path: resolves shapes and places and reserves scratch memory, so that the step itself cannot fail. Requires a node
  // that check_shapes() accepts. Error `unsupported` where this backend does not implement the node.
  virtual Result<Step> try_bind(const Node& node, const TensorTable& tensors) = 0;
};

}  // namespace vitro
