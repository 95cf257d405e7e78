// SPDX-License-Identifier: Apache-2.0
// Aliases, lifetimes and writing in place.
#include "storage_plan.hpp"

#include <algorithm>

namespace vitro {
namespace {

class StoragePlanner {
 public:
  explicit StoragePlanner(const Graph& graph) : graph_(graph) { plan_.storage_of.assign(graph.tensors.size(), kNoNode); }

  StoragePlan run(bool reuse) {
    for (std::uint32_t step = 0; step < graph_.ends.size(); ++step) visit(step);
    for (TensorId id : graph_.outputs) {
      Storage& storage = storage_for(id);
      if (storage.where == Storage::Where::arena || storage.where == Storage::Where::nowhere)
        storage.where = Storage::Where::port;
      storage.last = static_cast<std::uint32_t>(graph_.ends.size());
    }
    if (reuse) share_in_place();
    place_arena(reuse);
    return std::move(plan_);
  }

 private:
  Storage& storage_for(TensorId id) {
    std::uint32_t& index = plan_.storage_of[index_of(id)];
    if (index == kNoNode) {
      index = static_cast<std::uint32_t>(plan_.storages.size());
      const TensorInfo& info = graph_.tensors[id];
      const auto where = info.role == Role::computed   ? Storage::Where::arena
                         : info.role == Role::constant ? Storage::Where::constants
                                                       : Storage::Where::port;
      plan_.storages.push_back({where, id, bytes_of(info.shape, info.type)});
    }
    return plan_.storages[index];
  }

  void use(TensorId id, std::uint32_t step) {
    Storage& storage = storage_for(id);
    storage.first = std::min(storage.first, step);
    storage.last = std::max(storage.last, step);
  }

  // Results that the next node of the step reads and nobody else does are the step's own affair: they get no memory.
  void visit(std::uint32_t step) {
    const std::span<const Node> nodes = graph_.step(step);
    if (const auto* reshape = std::get_if<Reshape>(&nodes.front())) {
      use(reshape->x, step);
      plan_.storage_of[index_of(reshape->y)] = plan_.storage_of[index_of(reshape->x)];
      return;
    }
    std::vector<TensorId> own;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (TensorId id : inputs_of(nodes[i])) {
        if (std::find(own.begin(), own.end(), id) == own.end()) use(id, step);
      }
      const bool last = i + 1 == nodes.size();
      for (TensorId id : outputs_of(nodes[i])) {
        if (!last && graph_.is_computed(id)) {
          own.push_back(id);
        } else if (id != optional_output(nodes[i]) || is_read(id)) {
          use(id, step);
        }
      }
    }
  }

  bool is_read(TensorId id) {
    if (read_.empty()) {
      read_.assign(graph_.tensors.size(), false);
      for (const Node& node : graph_.nodes) {
        for (TensorId input : inputs_of(node)) read_[index_of(input)] = true;
      }
      for (TensorId output : graph_.outputs) read_[index_of(output)] = true;
    }
    return read_[index_of(id)];
  }

  // Where a step may write over an operand that nobody needs after it, the result takes over the operand's memory.
  void share_in_place() {
    merged_.assign(plan_.storages.size(), kNoNode);
    for (std::uint32_t step = 0; step < graph_.ends.size(); ++step) {
      const std::span<const Node> nodes = graph_.step(step);
      for (TensorId id : overwritable(nodes, graph_.tensors)) {
        const std::uint32_t to = storage_index(id), from = storage_index(*outputs_of(nodes.back()).begin());
        Storage &operand = plan_.storages[to], &made = plan_.storages[from];
        if (to == from || operand.where != Storage::Where::arena || made.where != Storage::Where::arena ||
            operand.last != step || operand.bytes != made.bytes || is_read_later_in(nodes, to)) {
          continue;
        }
        operand.last = made.last;
        made.where = Storage::Where::nowhere;
        merged_[from] = to;
        break;
      }
    }
    for (std::size_t i = 0; i < plan_.storage_of.size(); ++i) plan_.storage_of[i] = storage_index(TensorId(i));
  }

  std::uint32_t storage_index(TensorId id) const {
    std::uint32_t index = plan_.storage_of[index_of(id)];
    while (index != kNoNode && merged_[index] != kNoNode) index = merged_[index];
    return index;
  }

  // Whether a node after the step's first one reads the storage: it would find it overwritten.
  bool is_read_later_in(std::span<const Node> nodes, std::uint32_t storage) const {
    for (const Node& node : nodes.subspan(1)) {
      for (TensorId id : inputs_of(node)) {
        if (storage_index(id) == storage) return true;
      }
    }
    return false;
  }

  void place_arena(bool reuse) {
    std::vector<Lifetime> lifetimes;
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < plan_.storages.size(); ++i) {
      const Storage& storage = plan_.storages[i];
      if (storage.where != Storage::Where::arena) continue;
      lifetimes.push_back({storage.bytes, storage.first, storage.last});
      which.push_back(i);
    }
    plan_.arena = reuse ? pack_arena(lifetimes) : spread_arena(lifetimes);
    for (std::size_t i = 0; i < which.size(); ++i) {
      plan_.storages[which[i]].place = {plan_.arena.offsets[i], Plan::kArena};
    }
  }

  const Graph& graph_;
  StoragePlan plan_;
  std::vector<bool> read_;
  std::vector<std::uint32_t> merged_;  // storage -> the one whose memory it took over
};

}  // namespace

StoragePlan plan_storage(const Graph& graph, bool reuse) { return StoragePlanner(graph).run(reuse); }

}  // namespace vitro
