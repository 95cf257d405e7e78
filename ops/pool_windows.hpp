// SPDX-License-Identifier: Apache-2.0
// Internal: which pixels a pooling window covers, and a thread's scratch memory for them.
#pragma once

#include "pool2d.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {

// The taps of a window along one axis that lie in the input: kernel positions [begin, end), the first one at input position
// `input`.
struct Taps {
  Index begin, end, input;

  Index count() const noexcept { return end - begin; }
  friend bool operator==(const Taps&, const Taps&) noexcept = default;
};

inline Taps taps_of(Index output, Index stride, Index pad, Index kernel, Index size) noexcept {
  const Index start = output * stride - pad;
  const Index begin = std::clamp<Index>(-start, 0, kernel);
  return {begin, std::clamp<Index>(size - start, begin, kernel), start + begin};
}

inline Taps row_taps(const Pool2dProblem& p, Index oh) noexcept {
  return taps_of(oh, p.attrs.stride_h, p.attrs.pad_top, p.attrs.kernel_h, p.h);
}

inline Taps column_taps(const Pool2dProblem& p, Index ow) noexcept {
  return taps_of(ow, p.attrs.stride_w, p.attrs.pad_left, p.attrs.kernel_w, p.w);
}

// A thread's scratch: room for pointers to the valid taps of a window (or, for gradients, offsets of up to 256 taps), for the
// taps' positions in the full window where it has up to 256, and for one pixel of floats or bytes.
struct PoolScratch {
  const float** taps;
  Index* offsets;  // the same memory as taps
  std::uint8_t* positions;
  float* pixel;

  static std::size_t pointer_bytes(const Pool2dProblem& p) noexcept {
    const Index valid = std::min<Index>(p.attrs.kernel_h, p.h) * std::min<Index>(p.attrs.kernel_w, p.w);
    return rounded_up(static_cast<std::size_t>(std::max<Index>(valid, 256)) * sizeof(float*));
  }
  static std::size_t bytes(const Pool2dProblem& p) noexcept { return pointer_bytes(p) + 256 + rounded_up(float_bytes(p.c)); }

  PoolScratch(const Pool2dProblem& p, std::byte* memory) noexcept
      : taps(reinterpret_cast<const float**>(memory)),
        offsets(reinterpret_cast<Index*>(memory)),
        positions(reinterpret_cast<std::uint8_t*>(memory + pointer_bytes(p))),
        pixel(reinterpret_cast<float*>(memory + pointer_bytes(p) + 256)) {}
};

// Pointers to a window's valid pixels in `image`, row by row.
inline void collect_taps(const Pool2dProblem& p, const Taps& rows, const Taps& columns, const float* image,
                         const float** taps) noexcept {
  for (Index i = 0; i < rows.count(); ++i) {
    const float* const row = image + ((rows.input + i) * p.w + columns.input) * p.c;
    for (Index j = 0; j < columns.count(); ++j) *taps++ = row + j * p.c;
  }
}

// The cost of one output row or image for Context::parallel_for.
inline Index row_work(const Pool2dProblem& p) noexcept { return p.ow * p.window() * (p.c + 8); }
inline Index image_work(const Pool2dProblem& p) noexcept { return p.oh * row_work(p); }

}  // namespace vitro::ops
