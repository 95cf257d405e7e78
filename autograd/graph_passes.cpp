// SPDX-License-Identifier: Apache-2.0
// What capture does to a list of nodes: dead ones go, some trade places, neighbours become one step.
#include "graph.hpp"

#include <algorithm>

namespace vitro {

std::vector<std::uint32_t> only_readers(const Graph& graph) {
  std::vector<std::uint32_t> reader(graph.tensors.size(), kNoNode);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (TensorId id : inputs_of(graph.nodes[i])) {
      std::uint32_t& r = reader[index_of(id)];
      r = r == kNoNode || r == i ? static_cast<std::uint32_t>(i) : kSeveral;
    }
  }
  for (TensorId id : graph.outputs) reader[index_of(id)] = kSeveral;
  return reader;
}

std::vector<TensorId> owners(const Graph& graph) {
  std::vector<TensorId> owner(graph.tensors.size());
  for (std::size_t i = 0; i < owner.size(); ++i) owner[i] = TensorId(i);
  for (const Node& node : graph.nodes) {
    if (const auto* n = std::get_if<Reshape>(&node)) owner[index_of(n->y)] = owner[index_of(n->x)];
  }
  return owner;
}

namespace {

constexpr std::size_t kLongestPart = 3;  // of nodes that lead to an update

// Grows steps greedily: a node takes along the only reader of its result, and an update the update next to it, with the nodes
// between that make its gradient.
class Fuser {
 public:
  Fuser(const Graph& graph, const Backend& backend)
      : graph_(graph),
        backend_(backend),
        reader_(only_readers(graph)),
        owner_(owners(graph)),
        writer_(graph.tensors.size(), kNoNode) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (TensorId id : outputs_of(graph.nodes[i])) {
        if (graph.is_computed(id)) continue;
        std::uint32_t& w = writer_[index_of(id)];
        w = w == kNoNode ? static_cast<std::uint32_t>(i) : kSeveral;
      }
    }
  }

  // The steps as lists of nodes, in the order of their last ones.
  std::vector<std::vector<std::uint32_t>> run() {
    std::vector<bool> taken(graph_.nodes.size(), false);
    std::vector<std::vector<std::uint32_t>> steps;
    std::vector<Node> nodes;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (taken[i]) continue;
      std::vector<std::uint32_t> step;
      nodes.clear();
      const auto take = [&](std::span<const std::uint32_t> part) {
        if (part.empty() || std::any_of(part.begin(), part.end(), [&](std::uint32_t node) { return taken[node]; }))
          return false;
        const auto before = static_cast<std::ptrdiff_t>(step.size());
        step.insert(step.end(), part.begin(), part.end());
        for (const std::uint32_t node : part) nodes.push_back(graph_.nodes[node]);
        if (step.size() == 1 || (backend_.fuses(nodes, graph_.tensors) && !is_overwritten_before(step))) return true;
        step.erase(step.begin() + before, step.end());
        nodes.erase(nodes.begin() + before, nodes.end());
        return false;
      };
      if (!take(part_from(i))) take({&i, 1});
      while (take(part_after(step.back()))) {
      }
      for (const std::uint32_t node : step) taken[node] = true;
      steps.push_back(std::move(step));
    }
    std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.back() < b.back(); });
    return steps;
  }

 private:
  bool ends_in_update(std::uint32_t node) const { return !graph_.is_computed(*outputs_of(graph_.nodes[node]).begin()); }

  // The node, and those behind it if each alone reads the one before and the last is an update.
  std::vector<std::uint32_t> part_from(std::uint32_t node) const {
    std::vector<std::uint32_t> part = {node};
    while (!ends_in_update(part.back()) && part.size() < kLongestPart &&
           reader_[index_of(*outputs_of(graph_.nodes[part.back()]).begin())] == part.back() + 1) {
      part.push_back(part.back() + 1);
    }
    if (!ends_in_update(part.back())) part.resize(1);
    return part;
  }

  // What a step that ends with the node may take next.
  std::vector<std::uint32_t> part_after(std::uint32_t node) const {
    if (ends_in_update(node)) return node + 1 < graph_.nodes.size() ? part_from(node + 1) : std::vector<std::uint32_t>();
    const std::uint32_t reader = reader_[index_of(*outputs_of(graph_.nodes[node]).begin())];
    return reader == kNoNode || reader == kSeveral ? std::vector<std::uint32_t>() : std::vector<std::uint32_t>{reader};
  }

  // The step runs where its last node stood, and its nodes in any order where they are updates: what its earlier nodes read
  // must not be written to in between, and what one update reads not by another.
  bool is_overwritten_before(const std::vector<std::uint32_t>& step) const {
    const std::uint32_t last = step.back();
    const auto inside = [&](std::uint32_t node) { return std::find(step.begin(), step.end(), node) != step.end(); };
    return std::any_of(step.begin(), step.end(), [&](std::uint32_t node) {
      for (TensorId id : inputs_of(graph_.nodes[node])) {
        const std::uint32_t writer = writer_[index_of(owner_[index_of(id)])];
        if (writer == kNoNode || writer == node) continue;
        if (writer == kSeveral || inside(writer) || (writer > node && writer < last)) return true;
      }
      return false;
    });
  }

  const Graph& graph_;
  const Backend& backend_;
  std::vector<std::uint32_t> reader_;
  std::vector<TensorId> owner_;
  std::vector<std::uint32_t> writer_;  // of each parameter and state
};

}  // namespace

Status remove_dead_nodes(Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (TensorId id : graph.outputs) needed[index_of(id)] = true;
  std::vector<bool> live(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    for (TensorId id : outputs_of(graph.nodes[i])) live[i] = live[i] || needed[index_of(id)] || !graph.is_computed(id);
    if (!live[i]) continue;
    for (TensorId id : inputs_of(graph.nodes[i])) needed[index_of(id)] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (live[i]) graph.nodes[kept++] = graph.nodes[i];
  }
  graph.nodes.resize(kept, graph.nodes.empty() ? Node(Reshape{}) : graph.nodes.front());
  if (kept > 0) return {};
  return Error(ErrorCode::invalid_argument,
               "capture: there is nothing to do: no output that is asked for is computed, and no parameter is updated");
}

void move_relu_grads(Graph& graph) {
  const std::vector<std::uint32_t> reader = only_readers(graph);
  const std::vector<TensorId> owner = owners(graph);
  std::vector<std::uint32_t> pool_of(graph.tensors.size(), kNoNode);  // by argmax
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (const auto* pool = std::get_if<MaxPool2d>(&graph.nodes[i])) {
      pool_of[index_of(pool->argmax)] = static_cast<std::uint32_t>(i);
    }
    auto* const pool_grad = std::get_if<MaxPool2dGrad>(&graph.nodes[i]);
    if (pool_grad == nullptr || pool_of[index_of(pool_grad->argmax)] == kNoNode) continue;
    const std::uint32_t next = reader[index_of(pool_grad->dx)];
    auto* const relu_grad = next < graph.nodes.size() ? std::get_if<ReluGrad>(&graph.nodes[next]) : nullptr;
    const auto& pool = *std::get_if<MaxPool2d>(&graph.nodes[pool_of[index_of(pool_grad->argmax)]]);
    if (relu_grad == nullptr || relu_grad->dy != pool_grad->dx || relu_grad->y != pool.x || pool_grad->attrs != pool.attrs) {
      continue;
    }
    if (!graph.is_computed(owner[index_of(pool.x)])) continue;  // a parameter may have been updated since the pool read it
    TensorInfo masked = graph.tensors[pool_grad->dy];
    masked.role = Role::computed;
    const TensorId dy = graph.tensors.add(masked);
    const ReluGrad first{pool.y, pool_grad->dy, dy};
    const MaxPool2dGrad second{dy, pool_grad->argmax, relu_grad->dx, pool_grad->attrs};
    graph.nodes[i] = first;
    graph.nodes[next] = second;
  }
}

void cut_into_steps(Graph& graph, const Backend& backend, bool fuse) {
  graph.ends.clear();
  if (!fuse) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) graph.ends.push_back(static_cast<std::uint32_t>(i + 1));
    return;
  }
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (const std::vector<std::uint32_t>& step : Fuser(graph, backend).run()) {
    for (const std::uint32_t node : step) nodes.push_back(graph.nodes[node]);
    graph.ends.push_back(static_cast<std::uint32_t>(nodes.size()));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace vitro
