// SPDX-License-Identifier: Apache-2.0
// Internal: the list of nodes while it is captured - checked, rid of what nobody needs, and cut into steps.
#pragma once

#include "backend.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitro {

// The ids of a node's operands that are there.
class OperandList {
 public:
  template <std::size_t n>
  explicit OperandList(const std::array<TensorId, n>& list) {
    static_assert(n <= 5);
    for (TensorId id : list) {
      if (id != kNoTensor) ids_[size_++] = id;
    }
  }
  const TensorId* begin() const noexcept { return ids_.data(); }
  const TensorId* end() const noexcept { return ids_.data() + size_; }

 private:
  std::array<TensorId, 5> ids_{};
  std::size_t size_ = 0;
};

inline OperandList inputs_of(const Node& node) {
  return std::visit([](const auto& n) { return OperandList(n.inputs()); }, node);
}
inline OperandList outputs_of(const Node& node) {
  return std::visit([](const auto& n) { return OperandList(n.outputs()); }, node);
}

constexpr std::uint32_t kNoNode = 0xFFFFFFFFU;
constexpr std::size_t index_of(TensorId id) noexcept { return static_cast<std::size_t>(id); }

struct Graph {
  std::vector<Node> nodes;  // in the order of execution
  TensorTable tensors;
  std::vector<TensorId> outputs;    // what is read after a run
  std::vector<std::uint32_t> ends;  // filled by cut_into_steps(): step i is nodes [ends[i - 1], ends[i])

  std::span<const Node> step(std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::span(nodes).subspan(begin, ends[i] - begin);
  }
  // "node 12 (conv2d)"
  std::string label(std::size_t node) const;
  bool is_computed(TensorId id) const noexcept { return tensors[id].role == Role::computed; }
};

// Every error names the node: an operand that is not in the table or is computed by no node, by two, or only later; a cycle;
// a shape or type that disagrees; a write to an input or constant; an output that nothing computes.
Status check_graph(const Graph& graph);

constexpr std::uint32_t kSeveral = kNoNode - 1;
// For each tensor the node that alone reads it; kNoNode where none does, kSeveral where several do or it is an output.
std::vector<std::uint32_t> only_readers(const Graph& graph);
// For each tensor the one whose elements it shows: x for reshape(x), itself otherwise.
std::vector<TensorId> owners(const Graph& graph);

// Leaves the nodes that an output or an update of a parameter depends on. Error: there is none.
Status remove_dead_nodes(Graph& graph);

// relu_grad(y, max_pool2d_grad(dy)) with y the pool's input becomes max_pool2d_grad(relu_grad(pooled y, dy)): the same bits,
// as a window's gradient goes to the element whose value the pool has, on a tensor of the pool's size instead of the window's
// times that.
void move_relu_grads(Graph& graph);

// The gradient of a linear layer's weights of which the backend makes one step with each of its readers (a sum of squares, the
// test for infinities, an update, perhaps of its product with a number) is computed again for each, right before it, so that it
// needs no memory: what it is made of stays until the last of them.
void recompute_gradients(Graph& graph, const Backend& backend);

// Cuts the nodes into steps: neighbours that the backend fuses (if asked) become one, at the place of the last of them.
void cut_into_steps(Graph& graph, const Backend& backend, bool fuse);

// The input over which the step may write its output `y`, in order of preference, as elementwise steps may.
OperandList overwritable(std::span<const Node> step, const TensorTable& tensors);

// The output that the node can do without; kNoTensor for none.
TensorId optional_output(const Node& node) noexcept;

// Multiplications, additions and comparisons of one run, as the formula has them; 0 for what only moves elements.
double flops(const Node& node, const TensorTable& tensors) noexcept;

}  // namespace vitro
