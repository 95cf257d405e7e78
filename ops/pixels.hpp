// SPDX-License-Identifier: Apache-2.0
// Pixels: bytes as numbers in [0, 1].
#pragma once

#include "context.hpp"

#include <cstdint>

namespace vitro::ops {

// y[i] = x[i] / 255, one division. Dense arrays that do not overlap; no scratch.
void run_bytes_to_unit(Context& context, Index count, const std::uint8_t* x, float* y) noexcept;

}  // namespace vitro::ops
