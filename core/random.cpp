// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 and what is drawn from it, in IEEE operations that give the same bits everywhere.
#include "random.hpp"

#include <cmath>
#include <utility>

namespace vitro {
namespace {

void require_fan(const char* name, Index fan) {
  if (fan < 1) {
    fail(ErrorCode::invalid_argument,
         std::string(name) + ": fan_in and fan_out must be at least 1, got " + std::to_string(fan));
  }
}

void fill_symmetric(TensorView tensor, float bound, const Philox& random) { fill_uniform(tensor, -bound, bound, random); }

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept {
  // Multipliers and Weyl constants of the paper's table 2 and section 3.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

PhiloxCounter Philox::block(std::uint64_t counter) const noexcept {
  return philox4x32({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                     static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                    {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

std::uint32_t Philox::bits(std::uint64_t index) const noexcept { return block(index / 4)[index % 4]; }

float Philox::uniform(std::uint64_t index) const noexcept { return static_cast<float>(bits(index) >> 8) * 0x1p-24F; }

std::uint32_t Philox::below(std::uint64_t index, std::uint32_t bound) const noexcept {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits(index)) * bound) >> 32);
}

void fill_uniform(TensorView tensor, float low, float high, const Philox& random) {
  if (!tensor.is_contiguous()) {
    fail(ErrorCode::shape_mismatch,
         "fill_uniform: needs a contiguous tensor, got a strided view of shape " + to_string(tensor.shape()));
  }
  const Index count = tensor.elements();
  for (Index i = 0; i < count; ++i) {
    tensor.data()[i] = std::fma(high - low, random.uniform(static_cast<std::uint64_t>(i)), low);
  }
}

void fill_fan_in_uniform(TensorView tensor, Index fan_in, const Philox& random) {
  require_fan("fill_fan_in_uniform", fan_in);
  fill_symmetric(tensor, 1.0F / std::sqrt(static_cast<float>(fan_in)), random);
}

void fill_glorot_uniform(TensorView tensor, Index fan_in, Index fan_out, const Philox& random) {
  require_fan("fill_glorot_uniform", fan_in);
  require_fan("fill_glorot_uniform", fan_out);
  fill_symmetric(tensor, std::sqrt(6.0F / (static_cast<float>(fan_in) + static_cast<float>(fan_out))), random);
}

void fill_he_uniform(TensorView tensor, Index fan_in, const Philox& random) {
  require_fan("fill_he_uniform", fan_in);
  fill_symmetric(tensor, std::sqrt(6.0F / static_cast<float>(fan_in)), random);
}

std::vector<std::uint32_t> permutation(Index count, const Philox& random) {
  if (count < 0 || static_cast<std::uint64_t>(count) > 0xFFFFFFFFULL) {
    fail(ErrorCode::invalid_argument, "permutation: " + std::to_string(count) + " is outside [0, 2^32)");
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  fill_permutation(order, random);
  return order;
}

void fill_permutation(std::span<std::uint32_t> order, const Philox& random) {
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i, static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace vitro
