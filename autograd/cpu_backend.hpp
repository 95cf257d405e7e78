// SPDX-License-Identifier: Apache-2.0
// CpuBackend: binds every node type to the operations in ops/.
#pragma once

#include "../ops/context.hpp"
#include "backend.hpp"

namespace vitro {

class CpuBackend final : public Backend {
 public:
  // The context must outlive the backend and the steps it binds.
  explicit CpuBackend(Context& context) noexcept : context_(context) {}

  const char* name() const noexcept override { return "cpu"; }
  // Implements every node; reserves the node's scratch memory in the context.
  Result<Step> try_bind(const Node& node, const TensorTable& tensors) override;

 private:
  Context& context_;
};

}  // namespace vitro
