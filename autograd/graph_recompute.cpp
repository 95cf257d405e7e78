// SPDX-License-Identifier: Apache-2.0
// Gradients that are cheaper to make twice than to write and read: each reader gets a node of its own that makes them.
#include "graph.hpp"

namespace vitro {
namespace {

// Where the node reads the gradient, if it is one of those that may make it for themselves.
TensorId* gradient_operand(Node& node, TensorId gradient) {
  TensorId* operand = nullptr;
  if (auto* n = std::get_if<SumSquares>(&node)) operand = &n->x;
  if (auto* n = std::get_if<AllFinite>(&node)) operand = &n->x;
  if (auto* n = std::get_if<SgdUpdate>(&node)) operand = &n->dp;
  if (auto* n = std::get_if<Mul>(&node)) operand = n->a == gradient ? &n->a : &n->b;
  return operand != nullptr && *operand == gradient ? operand : nullptr;
}

class Recomputation {
 public:
  Recomputation(Graph& graph, const Backend& backend)
      : graph_(graph),
        backend_(backend),
        reader_(only_readers(graph)),
        owner_(owners(graph)),
        written_(graph.tensors.size(), false),
        maker_(graph.tensors.size(), kNoNode),
        product_(graph.tensors.size(), kNoNode) {
    for (const Node& node : graph.nodes) {
      for (TensorId id : outputs_of(node)) written_[index_of(id)] = !graph.is_computed(id);
    }
  }

  void run() {
    if (!find_gradients()) return;
    find_readers();
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const TensorId result = *outputs_of(node).begin();
      if (maker_[index_of(result)] == i || product_[index_of(result)] == i) continue;  // stand before their readers
      for (TensorId id : inputs_of(node)) {
        const std::uint32_t product = product_[index_of(id)];
        if (product != kNoNode) add_with_gradient(product, nodes);
      }
      add_with_gradient(i, nodes);
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // Whether the tensor's elements are the same later on.
  bool stays(TensorId id) const { return !written_[index_of(owner_[index_of(id)])]; }

  bool find_gradients() {
    bool any = false;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto* const n = std::get_if<LinearGradWeight>(&graph_.nodes[i]);
      if (n == nullptr || !graph_.is_computed(n->dw) || !stays(n->x) || !stays(n->dy)) continue;
      maker_[index_of(n->dw)] = i;
      any = true;
    }
    for (TensorId id : graph_.outputs) maker_[index_of(id)] = kNoNode;
    return any;
  }

  // Leaves the gradients of which the backend makes one step with each of their readers.
  void find_readers() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      for (TensorId id : inputs_of(graph_.nodes[i])) {
        std::uint32_t& maker = maker_[index_of(id)];
        if (maker != kNoNode && !is_one_step(maker, i, id)) maker = kNoNode;
      }
    }
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto* const n = std::get_if<Mul>(&graph_.nodes[i]);
      if (n == nullptr) continue;
      const bool recomputed = maker_[index_of(n->a)] != kNoNode || maker_[index_of(n->b)] != kNoNode;
      if (recomputed) product_[index_of(n->y)] = i;
    }
  }

  bool is_one_step(std::uint32_t maker, std::uint32_t reader, TensorId gradient) {
    if (gradient_operand(graph_.nodes[reader], gradient) == nullptr) return false;
    std::vector<Node> nodes = {graph_.nodes[maker], graph_.nodes[reader]};
    if (const auto* n = std::get_if<Mul>(&graph_.nodes[reader])) {  // moves, too, to the update that reads it
      const std::uint32_t next = reader_[index_of(n->y)];
      if (next >= graph_.nodes.size() || !stays(n->a) || !stays(n->b)) return false;
      nodes.push_back(graph_.nodes[next]);
    }
    return backend_.fuses(nodes, graph_.tensors);
  }

  void add_with_gradient(std::uint32_t i, std::vector<Node>& nodes) {
    Node node = graph_.nodes[i];
    for (TensorId id : inputs_of(graph_.nodes[i])) {
      std::uint32_t& maker = maker_[index_of(id)];
      if (maker == kNoNode) continue;
      LinearGradWeight made = *std::get_if<LinearGradWeight>(&graph_.nodes[maker]);
      made.dw = graph_.tensors.add(TensorInfo(graph_.tensors[id]));
      *gradient_operand(node, id) = made.dw;
      nodes.push_back(made);
    }
    nodes.push_back(node);
  }

  Graph& graph_;
  const Backend& backend_;
  std::vector<std::uint32_t> reader_;
  std::vector<TensorId> owner_;
  std::vector<bool> written_;           // parameters and states that are updated
  std::vector<std::uint32_t> maker_;    // of a gradient that is made again for each reader: the node that makes it
  std::vector<std::uint32_t> product_;  // of such a gradient times a factor: the node that multiplies
};

}  // namespace

void recompute_gradients(Graph& graph, const Backend& backend) { Recomputation(graph, backend).run(); }

}  // namespace vitro
