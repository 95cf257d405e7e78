// SPDX-License-Identifier: Apache-2.0
// Internal: which pixels pooling windows cover, as the rectangles of like windows that the kernels work on.
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

// A thread's scratch: the valid taps of a window.
struct PoolScratch {
  simd::PoolTap* taps;

  static std::size_t bytes(const Pool2dProblem& p) noexcept {
    const Index valid = std::min<Index>(p.attrs.kernel_h, p.h) * std::min<Index>(p.attrs.kernel_w, p.w);
    return aligned_up(static_cast<std::size_t>(valid) * sizeof(simd::PoolTap));
  }
  explicit PoolScratch(std::byte* memory) noexcept : taps(reinterpret_cast<simd::PoolTap*>(memory)) {}
};

// Windows of one image that have the same taps, where in the image (its first pixel is element 0) their first tap stands, and
// the first one's place among the outputs.
struct PoolRectangle {
  simd::PoolWindows windows;
  Index x;
  Index oh, ow;
};

// How many of the outputs [first, end) have the taps of the first one.
template <class TapsOf>
Index same_taps(Index first, Index end, const TapsOf& taps_at) noexcept {
  const Taps taps = taps_at(first);
  Index next = first + 1;
  while (next < end && taps_at(next).begin == taps.begin && taps_at(next).end == taps.end) ++next;
  return next - first;
}

// Calls call(rectangle) for rectangles that cover the output rows [begin, end) of an image, of at most `most_rows` rows each: 1
// visits all windows in rising (oh, ow).
template <class Call>
void for_each_rectangle(const Pool2dProblem& p, Index begin, Index end, Index most_rows, const PoolScratch& scratch,
                        const Call& call) noexcept {
  const auto rows_at = [&p](Index oh) { return row_taps(p, oh); };
  const auto columns_at = [&p](Index ow) { return column_taps(p, ow); };
  for (Index oh = begin, rows = 0; oh < end; oh += rows) {
    rows = same_taps(oh, std::min(end, oh + most_rows), rows_at);
    const Taps high = rows_at(oh);
    for (Index ow = 0, columns = 0; ow < p.ow; ow += columns) {
      columns = same_taps(ow, p.ow, columns_at);
      const Taps wide = columns_at(ow);
      simd::PoolTap* tap = scratch.taps;
      for (Index i = 0; i < high.count(); ++i) {
        for (Index j = 0; j < wide.count(); ++j) {
          const Index position = (high.begin + i) * p.attrs.kernel_w + wide.begin + j;
          *tap++ = {(i * p.w + j) * p.c, static_cast<std::int32_t>(position)};
        }
      }
      const simd::PoolWindows windows{.rows = rows,
                                      .columns = columns,
                                      .channels = p.c,
                                      .x_row_step = p.attrs.stride_h * p.w * p.c,
                                      .x_column_step = p.attrs.stride_w * p.c,
                                      .y_row_step = p.ow * p.c,
                                      .tap_rows = high.count(),
                                      .tap_columns = wide.count(),
                                      .tap = scratch.taps};
      call(PoolRectangle{windows, (high.input * p.w + wide.input) * p.c, oh, ow});
    }
  }
}

// Calls call(rectangle, image, output) for rectangles that cover the output rows [begin, end) of all images, n * OH + oh;
// `image` is the element of x at which the rectangle's windows stand, `output` that of y.
template <class Call>
void for_each_rectangle_of_rows(const Pool2dProblem& p, Index begin, Index end, const PoolScratch& scratch,
                                const Call& call) noexcept {
  for (Index row = begin; row < end;) {
    const Index n = row / p.oh, oh = row % p.oh, rows = std::min(p.oh - oh, end - row);
    for_each_rectangle(p, oh, oh + rows, rows, scratch, [&](const PoolRectangle& r) {
      call(r, n * p.h * p.w * p.c + r.x, ((n * p.oh + r.oh) * p.ow + r.ow) * p.c);
    });
    row += rows;
  }
}

// Whether some input is in two windows.
inline bool overlapping(const Pool2dProblem& p) noexcept {
  const Pool2dAttrs& a = p.attrs;
  return (p.oh > 1 && a.stride_h < a.kernel_h) || (p.ow > 1 && a.stride_w < a.kernel_w);
}

// Calls call(rectangle, image, output) as above for the gradient of image n, whose dx it fills with +0 before where windows
// overlap or leave something out.
template <class Call>
void for_each_gradient_rectangle(const Pool2dProblem& p, Index n, const PoolScratch& scratch, float* dx,
                                 const Call& call) noexcept {
  const Pool2dAttrs& a = p.attrs;
  const Index image = p.h * p.w * p.c;
  const bool tiled = a.stride_h == a.kernel_h && a.stride_w == a.kernel_w && p.oh * a.stride_h >= p.h + a.pad_top &&
                     p.ow * a.stride_w >= p.w + a.pad_left;
  if (!tiled) std::fill_n(dx + n * image, image, 0.0f);
  for_each_rectangle(p, 0, p.oh, overlapping(p) ? 1 : p.oh, scratch,
                     [&](const PoolRectangle& r) { call(r, n * image + r.x, ((n * p.oh + r.oh) * p.ow + r.ow) * p.c); });
}

// The cost of one output row or image for Context::parallel_for.
inline Index row_work(const Pool2dProblem& p) noexcept { return p.ow * p.window() * (p.c + 8); }
inline Index image_work(const Pool2dProblem& p) noexcept { return p.oh * row_work(p); }

}  // namespace vitro::ops
