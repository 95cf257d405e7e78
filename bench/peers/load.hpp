// SPDX-License-Identifier: Apache-2.0
// Loads the modules of the peers that were built, each with its own namespace.
#pragma once

#include "peer.hpp"

namespace vitro_bench {

struct LoadedPeers {
  std::vector<Peer*> peers;          // Vitro first
  std::vector<std::string> missing;  // "name: why"
};

// The modules beside the program. `only`, unless empty, names those to load; Vitro is always there.
LoadedPeers load_peers(const std::vector<std::string>& only);

}  // namespace vitro_bench
