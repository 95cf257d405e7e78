// SPDX-License-Identifier: Apache-2.0
// What the pooling kernels work on: a rectangle of windows of one NHWC image that have the same taps.
#pragma once

#include "variant.hpp"

#include <cstdint>

namespace vitro::simd {

struct PoolTap {
  Index offset;        // in floats, from the window's first tap
  std::int32_t index;  // what argmax calls it: its position in the full window, so that a window cut by padding names it too
};

// Window (row, column) has its first tap at x + row * x_row_step + column * x_column_step and its result at
// y + row * y_row_step + column * channels, likewise in argmax; a tap is `channels` dense floats. Steps are in elements.
struct PoolWindows {
  Index rows, columns, channels;
  Index x_row_step, x_column_step, y_row_step;
  Index tap_rows, tap_columns;  // >= 0 (max: >= 1)
  // In row-major order; from one to the next in a row, offset rises by `channels` and index by 1.
  const PoolTap* tap;

  Index taps() const noexcept { return tap_rows * tap_columns; }
};

}  // namespace vitro::simd
