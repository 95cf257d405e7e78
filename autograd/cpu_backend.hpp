// SPDX-License-Identifier: Apache-2.0
// CpuBackend: binds every node type to the operations in ops/.
#pragma once

#include "../ops/context.hpp"
#include "backend.hpp"

namespace vitro {

class CpuBackend final : public Backend {
 public:
  // The context must outlive the backend.
  explicit CpuBackend(Context& context) noexcept : context_(context) {}

  const char* name() const noexcept override { return "cpu"; }
  Context* context() noexcept override { return &context_; }
  // Implements every node. Steps may run with any context of the same kernels and number of threads.
  Result<BoundStep> try_bind(std::span<const Node> nodes, const TensorTable& tensors) override;
  // A product with bias, residual and ReLU; elementwise chains; several updates; the gradient of a linear layer's weights for
  // one row with what reads it.
  bool fuses(std::span<const Node> nodes, const TensorTable& tensors) const override;
  // The weights of linear layers and convolutions.
  std::optional<Packing> packing(const Node& node, const TensorTable& tensors) override;

 private:
  Context& context_;
};

}  // namespace vitro
