// SPDX-License-Identifier: Apache-2.0
// Internal: which tensors of a captured graph lie in the same memory, for how long they are needed, and where that is.
#pragma once

#include "arena.hpp"
#include "graph.hpp"
#include "plan.hpp"

namespace vitro {

// Memory that one tensor needs, or several that are the same elements or follow one another in place.
struct Storage {
  enum class Where : std::uint8_t { arena, constants, port, nowhere } where = Where::nowhere;
  TensorId tensor = kNoTensor;  // the one that made it
  std::size_t bytes = 0;
  std::uint32_t first = kNoNode, last = 0;  // steps that need it
  Place place = kNowhere;
};

struct StoragePlan {
  std::vector<std::uint32_t> storage_of;  // index into storages, by tensor; kNoNode for one that no live node names
  std::vector<Storage> storages;          // in the order in which the steps first name them
  ArenaLayout arena;
};

// Finds the storages and places those in the arena; the others have no place yet. With `reuse`, memory that is no longer needed
// is given to others, and elementwise steps write over their operand where nobody else needs it.
StoragePlan plan_storage(const Graph& graph, bool reuse);

}  // namespace vitro
