// SPDX-License-Identifier: Apache-2.0
// Dropout: elements set to zero at random, drawn anew for each step from a counter.
#pragma once

#include "context.hpp"

#include <cstdint>

namespace vitro::ops {

// Streams of the Philox generator that dropout draws from: this bit, the layer in bits 32 to 62, the step in bits 0 to 31.
inline constexpr std::uint64_t kDropoutStream = 1ULL << 63;

struct DropoutAttrs {
  std::uint32_t seed_low = 0, seed_high = 0;  // two halves, so that a node stays aligned to 4 bytes
  std::uint32_t layer = 0;                    // tells the dropouts of one network apart; under 2^31
  float rate = 0.5F;                          // the share that is set to zero, in [0, 1)
};

// Error invalid_argument: a rate outside [0, 1) or a layer of 2^31 or more.
Status check_dropout(const DropoutAttrs& attrs);

struct DropoutProblem {
  Index elements = 0;
  DropoutAttrs attrs;
};

// y[i] = x[i] * (1 / (1 - rate)), one product with a scale from one division, where number i of Philox(seed, stream of layer
// and step) as a uniform() is at least `rate`; else +0. `step` points to one number, read when run. Its own gradient: dx from
// dy by the same call. y may be x. Dense arrays, no scratch. (Srivastava et al., "Dropout", JMLR 2014, in the form that scales
// while training.)
void run_dropout(Context& context, const DropoutProblem& problem, const float* x, const std::int32_t* step, float* y) noexcept;

}  // namespace vitro::ops
