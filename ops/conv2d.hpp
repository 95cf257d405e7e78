// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution of NHWC images, with bias, residual and ReLU on request, and both gradients.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"
#include "epilogue.hpp"

#include <cstdint>

namespace vitro::ops {

// x[N, H, W, C] with w[KH, KW, C / groups, OC] -> y[N, OH, OW, OC]. Group g reads channels [g * C / groups, ...) and writes
// output channels [g * OC / groups, ...); groups = C is the depthwise convolution. As in all neural-network libraries the
// filter is not mirrored: y(oh, ow) sums x(oh * stride_h - pad_top + kh * dilation_h, ...) * w(kh, kw).
struct Conv2dAttrs {
  std::uint16_t stride_h = 1, stride_w = 1;
  std::uint16_t dilation_h = 1, dilation_w = 1;
  std::uint16_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::uint16_t groups = 1;
};
static_assert(sizeof(Conv2dAttrs) <= 20);

// OH = (H + pad_top + pad_bottom - (dilation_h * (KH - 1) + 1)) / stride_h + 1, rounded down; OW likewise. A window may lie in
// the padding altogether. Errors: a rank other than 4; a stride, dilation, group count, KH or KW of 0; channels that the groups
// do not divide or that differ from the filters'; a dilated kernel larger than the padded input.
Result<Shape> conv2d_shape(const Conv2dAttrs& attrs, const Shape& x, const Shape& w);

struct Conv2dProblem {
  Index n = 0, h = 0, w = 0, c = 0;  // x
  Index kh = 0, kw = 0;              // filters
  Index oh = 0, ow = 0, oc = 0;      // y
  Conv2dAttrs attrs;

  Index group_in() const noexcept { return c / attrs.groups; }
  Index group_out() const noexcept { return oc / attrs.groups; }
};

Result<Conv2dProblem> conv2d_problem(const Conv2dAttrs& attrs, const Shape& x, const Shape& w);

// All arrays dense. Each y is one chain of fused multiply-adds over (kh, kw, ic), rising, from +0, in which padding takes part
// as the input +0 (so an infinite or NaN weight shows there); with padding, chain + 0 (so that -0 becomes +0, and it does not
// show whether padding was multiplied by finite weights or left out); then the epilogue. C = 0 leaves the epilogue of +0.
ScratchSize conv2d_scratch(const Context& context, const Conv2dProblem& problem);
void run_conv2d(Context& context, const Conv2dProblem& problem, const float* x, const float* w, const Epilogue& epilogue,
                float* y) noexcept;

// The same with weights packed before: memory of this size, 64-byte aligned, filled by pack_conv2d with this context's kernels.
// Needs less scratch.
std::size_t conv2d_packed_bytes(const Context& context, const Conv2dProblem& problem);
ScratchSize conv2d_packed_scratch(const Context& context, const Conv2dProblem& problem);
void pack_conv2d(Context& context, const Conv2dProblem& problem, const float* w, float* packed) noexcept;
void run_conv2d_packed(Context& context, const Conv2dProblem& problem, const float* x, const float* packed,
                       const Epilogue& epilogue, float* y) noexcept;

// A gather: each dx is one chain over (kh, kw, oc), rising, from +0, of dy(oh, ow, oc) * w(kh, kw, ic, oc). Taps that fall
// outside of dy or between its strides are left out (they are not multiplied by zero).
ScratchSize conv2d_grad_input_scratch(const Context& context, const Conv2dProblem& problem);
void run_conv2d_grad_input(Context& context, const Conv2dProblem& problem, const float* dy, const float* w, float* dx) noexcept;

// The same with weights packed before, as for the forward pass (another layout); packing needs the scratch, too.
std::size_t conv2d_grad_input_packed_bytes(const Context& context, const Conv2dProblem& problem);
void pack_conv2d_grad_input(Context& context, const Conv2dProblem& problem, const float* w, float* packed) noexcept;
void run_conv2d_grad_input_packed(Context& context, const Conv2dProblem& problem, const float* dy, const float* packed,
                                  float* dx) noexcept;

// Images in chunks of max(1, 512 / (OH * OW)); in each chunk one chain over (n, oh, ow), rising, from +0, of x * dy, where
// padding takes part as x = +0; chunks added to +0 in rising order. N = 0 gives +0.
Index conv2d_grad_weight_images(const Conv2dProblem& problem) noexcept;
ScratchSize conv2d_grad_weight_scratch(const Context& context, const Conv2dProblem& problem);
void run_conv2d_grad_weight(Context& context, const Conv2dProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept;

// Checked forms: fail() with shape_mismatch, invalid_argument or overflow. All views contiguous; the output overlaps no input.
void conv2d(Context& context, const Conv2dAttrs& attrs, ConstTensorView x, ConstTensorView w, TensorView y,
            const EpilogueViews& epilogue = {});
void conv2d_grad_input(Context& context, const Conv2dAttrs& attrs, ConstTensorView dy, ConstTensorView w, TensorView dx);
void conv2d_grad_weight(Context& context, const Conv2dAttrs& attrs, ConstTensorView x, ConstTensorView dy, TensorView dw);

}  // namespace vitro::ops
