// SPDX-License-Identifier: Apache-2.0
// Pixels on their kernel.
#include "pixels.hpp"

namespace vitro::ops {

void run_bytes_to_unit(Context& context, Index count, const std::uint8_t* x, float* y) noexcept {
  context.parallel_for(
      count, 1, [&](Index begin, Index end, int) { context.kernels().bytes_to_unit(end - begin, x + begin, y + begin); });
}

}  // namespace vitro::ops
