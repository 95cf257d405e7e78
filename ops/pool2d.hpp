// SPDX-License-Identifier: Apache-2.0
// Max and average pooling of NHWC images, and their gradients.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

#include <cstdint>

namespace vitro::ops {

// What an average divides its window's sum by.
enum class AverageDivisor : std::uint8_t {
  valid,   // the number of taps inside the input
  padded,  // the number of taps inside the padded input (PyTorch's count_include_pad): a window that ceil_mode lets hang over
           // the padding's edge counts only what it covers
  window,  // kernel_h * kernel_w, always
};

struct Pool2dAttrs {
  std::uint16_t kernel_h = 1, kernel_w = 1;
  std::uint16_t stride_h = 1, stride_w = 1;
  std::uint16_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool ceil_mode = false;
  AverageDivisor divisor = AverageDivisor::valid;  // ignored by max pooling

  friend bool operator==(const Pool2dAttrs&, const Pool2dAttrs&) noexcept = default;
};
static_assert(sizeof(Pool2dAttrs) <= 20);

// x[N, H, W, C] -> y[N, OH, OW, C]; OH = (H + pad_top + pad_bottom - kernel_h) / stride_h + 1, rounded down; with ceil_mode up,
// but then without windows that start in the bottom or right padding. Errors: a rank other than 4, a kernel or stride of 0, a
// kernel larger than the padded input; for max pooling, and for averages that divide by `valid`, a window without a tap in the
// input.
Result<Shape> max_pool2d_shape(const Pool2dAttrs& attrs, const Shape& x);
Result<Shape> average_pool2d_shape(const Pool2dAttrs& attrs, const Shape& x);

struct Pool2dProblem {
  Index n = 0, h = 0, w = 0, c = 0;  // x
  Index oh = 0, ow = 0;              // y
  Pool2dAttrs attrs;

  Index window() const noexcept { return Index{attrs.kernel_h} * attrs.kernel_w; }
  // Size of one entry of argmax, which has y's shape: a std::uint8_t for windows of up to 256 taps, a std::int32_t beyond.
  Index argmax_bytes() const noexcept { return window() <= 256 ? 1 : 4; }
};

Result<Pool2dProblem> max_pool2d_problem(const Pool2dAttrs& attrs, const Shape& x);
Result<Pool2dProblem> average_pool2d_problem(const Pool2dAttrs& attrs, const Shape& x);
ScratchSize pool2d_scratch(const Context& context, const Pool2dProblem& problem);  // enough for all four functions

// y = the window's largest valid element: starting with the first, a later one replaces it when !(x <= best) && best == best.
// So a NaN in the window gives NaN, ties go to the first in row-major order, and a window of -inf gives -inf. argmax names the
// tap's position in the full window, kh * kernel_w + kw; null for none. All arrays dense.
void run_max_pool2d(Context& context, const Pool2dProblem& problem, const float* x, float* y, void* argmax) noexcept;
// dx = +0, then one addition of dy for each window that chose the element, windows in rising (oh, ow).
void run_max_pool2d_grad(Context& context, const Pool2dProblem& problem, const void* argmax, const float* dy,
                         float* dx) noexcept;

// y = (sum of the valid taps: one chain of additions in row-major order in chunks of 512, from +0) / divisor, one division. A
// window without valid taps gives +0.
void run_average_pool2d(Context& context, const Pool2dProblem& problem, const float* x, float* y) noexcept;
// dx = +0, then one addition of dy / divisor (one division) for each window that covers the element, windows in rising (oh,
// ow).
void run_average_pool2d_grad(Context& context, const Pool2dProblem& problem, const float* dy, float* dx) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. All views contiguous; outputs overlap nothing. argmax has y's
// shape and the element type that Pool2dProblem::argmax_bytes() says; the other overload's type is an error that names the
// right one.
void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y);
void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y, BasicView<std::uint8_t> argmax);
void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y, BasicView<std::int32_t> argmax);
void max_pool2d_grad(Context& context, const Pool2dAttrs& attrs, BasicView<const std::uint8_t> argmax, ConstTensorView dy,
                     TensorView dx);
void max_pool2d_grad(Context& context, const Pool2dAttrs& attrs, BasicView<const std::int32_t> argmax, ConstTensorView dy,
                     TensorView dx);
void average_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y);
void average_pool2d_grad(Context& context, const Pool2dAttrs& attrs, ConstTensorView dy, TensorView dx);

}  // namespace vitro::ops
