// SPDX-License-Identifier: Apache-2.0
// Times several contestants in alternation, so that whatever the machine does meanwhile happens to all of them.
#pragma once

#include "peer.hpp"

#include <functional>

namespace vitro_bench {

enum class Clock {
  wall,       // what a user waits
  processor,  // of the calling thread: with one thread the same on a quiet core, and of use on one that is shared
};

struct SamplerOptions {
  Clock clock = Clock::wall;
  double seconds = 1;       // for each contestant of a row, untimed warming up included
  int rounds = 10;          // turns of each contestant, in an order that rotates; fewer where one call takes long
  double pause = 0;         // seconds before each turn, in which a peer's threads may stop spinning
  int max_samples = 20000;  // for each contestant
};

// Everything that was measured, nothing trimmed.
struct Distribution {
  std::size_t samples = 0;
  double p50 = 0, p98 = 0, p999 = 0, max = 0;  // seconds; the smallest sample that so many are not above
};

struct Timed {
  Distribution distribution;
  // Processor time of the whole process over wall time, by thread: far under 1 means that something else ran on this core, and
  // the figures show it.
  double processor_share = 0;
};

struct Contestant {
  Peer* peer = nullptr;
  int threads = 1;
  std::unique_ptr<Job> job;
};

// Caches are warm: each turn begins with untimed calls (one, or as many as fit into a millisecond). `each_round` runs once
// before every round.
std::vector<Timed> measure(const std::vector<Contestant>& contestants, const SamplerOptions& options,
                           const std::function<void()>& each_round);

double wall_seconds();

}  // namespace vitro_bench
