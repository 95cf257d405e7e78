// SPDX-License-Identifier: Apache-2.0
// A node type that lacks a piece does not compile, and the compiler names the piece.
#include "../../autograd/node.hpp"

namespace vitro {

struct Negate {
  TensorId x, y;
#ifndef NO_NAME
  static constexpr const char* kName = "negate";
#endif
  constexpr auto inputs() const noexcept { return ids(x); }
  constexpr auto outputs() const noexcept { return ids(y); }
#ifndef NO_SHAPE_RULE
  Status check(const TensorTable& tensors) const;
#endif
#ifndef NO_GRADIENT_RULE
  void gradient(Gradients& gradients) const;
#endif
};

static_assert(all_node_types(std::type_identity<std::variant<Relu, Negate>>{}));

}  // namespace vitro
