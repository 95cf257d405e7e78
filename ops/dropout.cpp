// SPDX-License-Identifier: Apache-2.0
// Dropout by counter-based random numbers: the mask is drawn again for the gradient instead of being kept.
#include "dropout.hpp"

#include "../core/random.hpp"
#include "../core/text.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

constexpr Index kBlock = 4;  // numbers that one call of the generator draws

}  // namespace

Status check_dropout(const DropoutAttrs& attrs) {
  if (attrs.rate >= 0.0f && attrs.rate < 1.0f && attrs.layer < (1U << 31)) return {};
  return Error(ErrorCode::invalid_argument, "dropout: rate " + decimal(attrs.rate) + " and layer " +
                                                std::to_string(attrs.layer) +
                                                "; the rate must be in [0, 1) and the layer under 2^31");
}

void run_dropout(Context& context, const DropoutProblem& problem, const float* x, const std::int32_t* step, float* y) noexcept {
  const DropoutAttrs& attrs = problem.attrs;
  const std::uint64_t stream =
      kDropoutStream | std::uint64_t{attrs.layer} << 32 | static_cast<std::uint64_t>(static_cast<std::uint32_t>(*step));
  const Philox random(std::uint64_t{attrs.seed_high} << 32 | attrs.seed_low, stream);
  const float scale = 1.0f / (1.0f - attrs.rate);
  context.parallel_for((problem.elements + kBlock - 1) / kBlock, 16 * kBlock, [&](Index begin, Index end, int) {
    for (Index block = begin; block < end; ++block) {
      const PhiloxCounter numbers = random.block(static_cast<std::uint64_t>(block));
      const Index count = std::min(kBlock, problem.elements - block * kBlock);
      for (Index i = 0; i < count; ++i) {
        const float uniform = static_cast<float>(numbers[static_cast<std::size_t>(i)] >> 8) * 0x1p-24f;
        const Index at = block * kBlock + i;
        y[at] = uniform >= attrs.rate ? x[at] * scale : 0.0f;
      }
    }
  });
}

}  // namespace vitro::ops
