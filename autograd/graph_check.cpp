// SPDX-License-Identifier: Apache-2.0
// Whether a list of nodes can be captured: every operand known, computed once and before it is read, shapes and types right.
#include "graph.hpp"

#include <algorithm>

namespace vitro {
namespace {

Error bad_graph(ErrorCode code, const std::string& message) { return Error(code, "capture: " + message); }

class GraphCheck {
 public:
  explicit GraphCheck(const Graph& graph) : graph_(graph), producer_(graph.tensors.size(), kNoNode) {}

  Status run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Status status = check_operands(i); !status) return status;
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Status status = check_order(i); !status) return status;
      if (Status status = check_shapes(graph_.nodes[i], graph_.tensors); !status) {
        return bad_graph(status.error().code(), graph_.label(i) + ": " + status.error().message());
      }
    }
    return check_outputs();
  }

 private:
  Status check_operands(std::size_t i) {
    const Node& node = graph_.nodes[i];
    const auto missing = [&](TensorId id) { return !graph_.tensors.contains(id); };
    for (const OperandList& list : {inputs_of(node), outputs_of(node)}) {
      if (const auto* id = std::find_if(list.begin(), list.end(), missing); id != list.end()) {
        return bad_graph(ErrorCode::invalid_argument, graph_.label(i) + " names " + to_string(*id) + ", but there are only " +
                                                          std::to_string(graph_.tensors.size()) + " tensors");
      }
    }
    for (TensorId id : outputs_of(node)) {
      const Role role = graph_.tensors[id].role;
      if (role == Role::input || role == Role::constant) {
        return bad_graph(ErrorCode::invalid_argument, graph_.label(i) + " writes to " + describe(id, graph_.tensors) +
                                                          ", which is " + (role == Role::input ? "an input" : "a constant"));
      }
      if (role != Role::computed) continue;
      if (producer_[index_of(id)] != kNoNode) {
        return bad_graph(ErrorCode::invalid_argument, graph_.label(i) + " computes " + describe(id, graph_.tensors) +
                                                          ", which " + graph_.label(producer_[index_of(id)]) +
                                                          " computes already");
      }
      producer_[index_of(id)] = static_cast<std::uint32_t>(i);
    }
    return {};
  }

  // What node i reads must be there: given from outside, or computed by a node before it.
  Status check_order(std::size_t i) const {
    for (TensorId id : inputs_of(graph_.nodes[i])) {
      if (!graph_.is_computed(id)) continue;
      const std::uint32_t producer = producer_[index_of(id)];
      if (producer == kNoNode) {
        return bad_graph(ErrorCode::invalid_argument,
                         graph_.label(i) + " reads " + describe(id, graph_.tensors) + ", which no node computes");
      }
      if (producer < i) continue;
      const std::string path = cycle_through(static_cast<std::uint32_t>(i));
      return bad_graph(ErrorCode::invalid_argument,
                       path.empty()
                           ? graph_.label(i) + " reads " + describe(id, graph_.tensors) + ", which " + graph_.label(producer) +
                                 " computes only later; nodes must stand in the order in which they can run"
                           : path + " form a cycle: each needs what the next one computes");
    }
    return {};
  }

  // The nodes of a cycle that goes through `start`, or nothing. A search by hand, as chains may be long.
  std::string cycle_through(std::uint32_t start) const {
    std::vector<std::uint32_t> from(graph_.nodes.size(), kNoNode), open = {start};
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (TensorId id : inputs_of(graph_.nodes[node])) {
        const std::uint32_t producer = graph_.is_computed(id) ? producer_[index_of(id)] : kNoNode;
        if (producer == kNoNode) continue;
        if (producer == start) return path_to(node, start, from);
        if (from[producer] != kNoNode) continue;
        from[producer] = node;
        open.push_back(producer);
      }
    }
    return {};
  }

  std::string path_to(std::uint32_t node, std::uint32_t start, const std::vector<std::uint32_t>& from) const {
    constexpr int kMostNames = 8;
    std::vector<std::uint32_t> path = {node};
    while (path.back() != start) path.push_back(from[path.back()]);
    std::string text;
    int names = 0;
    for (auto it = path.rbegin(); it != path.rend() && names < kMostNames; ++it, ++names) {
      text += (text.empty() ? "" : ", ") + graph_.label(*it);
    }
    return text + (path.size() > kMostNames ? ", ..." : "");
  }

  Status check_outputs() const {
    for (TensorId id : graph_.outputs) {
      if (graph_.tensors.contains(id) && (!graph_.is_computed(id) || producer_[index_of(id)] != kNoNode)) continue;
      return bad_graph(ErrorCode::invalid_argument,
                       "the output " + (graph_.tensors.contains(id) ? describe(id, graph_.tensors) : to_string(id)) +
                           " is computed by no node and is no input");
    }
    return {};
  }

  const Graph& graph_;
  std::vector<std::uint32_t> producer_;  // of each computed tensor
};

}  // namespace

std::string Graph::label(std::size_t node) const { return "node " + std::to_string(node) + " (" + name(nodes[node]) + ")"; }

Status check_graph(const Graph& graph) { return GraphCheck(graph).run(); }

}  // namespace vitro
