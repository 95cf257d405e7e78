// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers (Philox4x32-10), and the initialisers and permutations made from them.
//
// Source of the generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A number is a
// pure function of (seed, stream, counter): results do not depend on who asks first, on threads or on the machine.
#pragma once

#include "view.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace vitro {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The bijection itself: ten rounds.
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept;

// An endless random-access sequence. `seed` is the key; `stream` names an independent sequence under it (one per purpose).
class Philox {
 public:
  constexpr Philox(std::uint64_t seed, std::uint64_t stream) noexcept : seed_(seed), stream_(stream) {}

  // The four 32-bit numbers of block `counter`.
  PhiloxCounter block(std::uint64_t counter) const noexcept;
  // Number `index` of the sequence (element index % 4 of block index / 4): 32 bits.
  std::uint32_t bits(std::uint64_t index) const noexcept;
  // The top 24 bits of bits(index), divided by 2^24: a multiple of 2^-24 in [0, 1).
  float uniform(std::uint64_t index) const noexcept;
  // A whole number in [0, bound): the high half of bits(index) * bound. Requires bound >= 1. Its bias is at most bound / 2^32.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const noexcept;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// Fills a contiguous view in row-major order: element i becomes fma(high - low, uniform(i), low). A strided view fails, here
// and in the initialisers below.
void fill_uniform(TensorView tensor, float low, float high, const Philox& random);

// U(-1/sqrt(fan_in), 1/sqrt(fan_in)): He et al. 2015 ("kaiming uniform") with the gain that PyTorch's layers use by default, a
// = sqrt(5). fan_in >= 1 is the number of inputs that one output sums over (kh * kw * in for a convolution); fails otherwise.
void fill_fan_in_uniform(TensorView tensor, Index fan_in, const Philox& random);

// U(-a, a) with a = sqrt(6 / (fan_in + fan_out)): Glorot & Bengio 2010.
void fill_glorot_uniform(TensorView tensor, Index fan_in, Index fan_out, const Philox& random);

// U(-a, a) with a = sqrt(6 / fan_in): He et al. 2015, for layers that ReLU follows.
void fill_he_uniform(TensorView tensor, Index fan_in, const Philox& random);

// The numbers 0 .. count-1 in an order drawn by Fisher and Yates' method, from the end. Requires 0 <= count < 2^32.
std::vector<std::uint32_t> permutation(Index count, const Philox& random);
// The same into memory that is there; its size is the count. Allocates nothing.
void fill_permutation(std::span<std::uint32_t> order, const Philox& random);

}  // namespace vitro
