// SPDX-License-Identifier: Apache-2.0
// Vitro as one of the peers: linked into the program, and measured through the same interface as all others.
#pragma once

#include "../../simd/kernels.hpp"
#include "peer.hpp"

namespace vitro_bench {

// With the best kernels of this machine, or those of VITRO_BENCH_ISA (scalar, blocked, avx2, avx512) where it is set.
Peer& vitro_peer();
// One of its own, with the kernels of `isa`, which the machine must have.
std::unique_ptr<Peer> make_vitro_peer(vitro::simd::Isa isa);
vitro::simd::Isa vitro_isa();

}  // namespace vitro_bench
