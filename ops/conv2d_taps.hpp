// SPDX-License-Identifier: Apache-2.0
// Internal: which taps of a convolution reach a pixel, and images copied with their padding.
#pragma once

#include "conv2d.hpp"

#include <algorithm>
#include <numeric>

namespace vitro::ops {

// One axis of a convolution.
struct Axis {
  Index stride, dilation, pad, kernel, outputs;
};

inline Axis height_axis(const Conv2dProblem& p) noexcept {
  return {p.attrs.stride_h, p.attrs.dilation_h, p.attrs.pad_top, p.kh, p.oh};
}
inline Axis width_axis(const Conv2dProblem& p) noexcept {
  return {p.attrs.stride_w, p.attrs.dilation_w, p.attrs.pad_left, p.kw, p.ow};
}

// Positions of one axis of the image that are reached by the same taps: position begin + i * stride (i < count) by tap
// tap + j * tap_step (j < taps), from output out + i - j * out_step.
struct TapRun {
  Index begin, count;
  Index tap, tap_step, taps;
  Index out, out_step;
};

// The run of one position: tap k reaches it from output (position + pad - k * dilation) / stride where that division leaves no
// rest.
inline TapRun taps_at(const Axis& axis, Index position) noexcept {
  const Index shared = std::gcd(axis.stride, axis.dilation);
  TapRun run{position, 1, 0, axis.stride / shared, 0, 0, axis.dilation / shared};
  for (Index k = 0; k < axis.kernel; ++k) {
    const Index distance = position + axis.pad - k * axis.dilation;
    if (distance < 0) break;
    if (distance % axis.stride != 0 || distance / axis.stride >= axis.outputs) continue;
    if (run.taps++ == 0) {
      run.tap = k;
      run.out = distance / axis.stride;
    }
  }
  return run;
}

// Outputs [begin, end) of one axis whose tap `tap` lies on the pixels [low, high).
struct Outputs {
  Outputs(const Axis& axis, Index tap, Index low, Index high) noexcept {
    const Index shift = tap * axis.dilation - axis.pad;  // the pixel is output * stride + shift
    begin = low <= shift ? 0 : (low - shift + axis.stride - 1) / axis.stride;
    end = high <= shift ? 0 : std::min((high - shift + axis.stride - 1) / axis.stride, axis.outputs);
    first_pixel = begin * axis.stride + shift;
  }
  Index begin, end, first_pixel;
};

// The outputs, from the first to the last, that any tap brings to the pixels [low, high); none as [outputs, outputs).
struct OutputRange {
  OutputRange(const Axis& axis, Index low, Index high) noexcept : begin(axis.outputs), end(0) {
    for (Index tap = 0; tap < axis.kernel; ++tap) {
      const Outputs outputs(axis, tap, low, high);
      if (outputs.begin >= outputs.end) continue;
      begin = std::min(begin, outputs.begin);
      end = std::max(end, outputs.end);
    }
    end = std::max(begin, end);
  }
  Index begin, end;
};

inline bool has_padding(const Conv2dAttrs& a) noexcept { return (a.pad_top | a.pad_left | a.pad_bottom | a.pad_right) != 0; }
inline Index padded_height(const Conv2dProblem& p) noexcept { return p.h + p.attrs.pad_top + p.attrs.pad_bottom; }
inline Index padded_width(const Conv2dProblem& p) noexcept { return p.w + p.attrs.pad_left + p.attrs.pad_right; }

// One image of x with zeros around it: [padded_height, padded_width, C].
inline void copy_padded_image(const Conv2dProblem& p, const float* from, float* to) noexcept {
  const Index pitch = padded_width(p) * p.c, row = p.w * p.c;
  to = std::fill_n(to, p.attrs.pad_top * pitch, 0.0f);
  for (Index ih = 0; ih < p.h; ++ih) {
    to = std::fill_n(to, p.attrs.pad_left * p.c, 0.0f);
    to = std::copy_n(from + ih * row, row, to);
    to = std::fill_n(to, p.attrs.pad_right * p.c, 0.0f);
  }
  std::fill_n(to, p.attrs.pad_bottom * pitch, 0.0f);
}

}  // namespace vitro::ops
