// SPDX-License-Identifier: Apache-2.0
// Arena: where tensors that are needed for some steps only lie in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitro {

// A block of memory that is needed from the start of step `first` to the end of step `last`.
struct Lifetime {
  std::size_t bytes = 0;
  std::uint32_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  // of each lifetime; multiples of 64
  std::size_t bytes = 0;             // of the arena
  std::size_t lower_bound = 0;       // the largest sum of sizes (rounded up to 64) that are needed in one step
};

// Places blocks so that no two that are needed in the same step overlap. (Dynamic storage allocation; finding the smallest
// arena is NP-hard: Garey & Johnson 1979, problem SR2.) Takes the best of several greedy orders: in the order of time, freed
// memory first; and by size and by size times duration, each block into the tightest or into the lowest gap between those
// placed before that it meets in time, improved by a search of bounded length. The same lifetimes give the same layout
// everywhere. Time O(n log n) for the first, and O(p log n) for p pairs of blocks that meet in time for the others, which are
// left out where p is over 4 million.
ArenaLayout pack_arena(std::span<const Lifetime> lifetimes);

// The same without sharing: every block has memory of its own.
ArenaLayout spread_arena(std::span<const Lifetime> lifetimes);

}  // namespace vitro
