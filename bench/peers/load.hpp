// SPDX-License-Identifier: Apache-2.0
// Loads the modules of the peers that were built, each with its own namespace.
#pragma once

#include "peer.hpp"

namespace vitro_bench {

struct LoadedPeers {
  std::vector<Peer*> peers;
  std::vector<std::string> missing;  // "name: why"
};

// The modules in `folder`, relative to the program's own. `only`, unless empty, names those to load.
LoadedPeers load_peers(const std::string& folder, const std::vector<std::string>& only);

}  // namespace vitro_bench
