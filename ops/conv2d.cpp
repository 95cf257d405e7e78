// SPDX-License-Identifier: Apache-2.0
// Convolution forward: im2col as pointers into the image, multiplied by packed filters.
#include "conv2d.hpp"

#include "checks.hpp"
#include "conv2d_batch_lanes.hpp"
#include "conv2d_pixel_lanes.hpp"
#include "conv2d_rows.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

std::string conv_names(const Shape& x, const Shape& w) {
  return "conv2d: x of shape " + to_string(x) + " and w of shape " + to_string(w);
}

// Output size along one axis, or 0 where the dilated kernel is larger than the padded input. Divides instead of multiplying, as
// dilation * (kernel - 1) may overflow.
Index output_size(Index padded, Index kernel, Index stride, Index dilation) noexcept {
  if (padded == 0 || kernel - 1 > (padded - 1) / dilation) return 0;
  return (padded - 1 - dilation * (kernel - 1)) / stride + 1;
}

}  // namespace

Result<Shape> conv2d_shape(const Conv2dAttrs& a, const Shape& x, const Shape& w) {
  if (x.rank() != 4 || w.rank() != 4) {
    return shape_error(conv_names(x, w) + " do not convolve; x is [N, H, W, C] and w is [KH, KW, C / groups, OC].");
  }
  if (a.stride_h == 0 || a.stride_w == 0 || a.dilation_h == 0 || a.dilation_w == 0 || a.groups == 0) {
    return Error(ErrorCode::invalid_argument,
                 conv_names(x, w) + " have a stride, dilation or group count of 0; each is at least 1.");
  }
  if (w[0] == 0 || w[1] == 0) {
    return shape_error(conv_names(x, w) + " do not convolve; a kernel is at least 1 x 1.");
  }
  if (x[3] % a.groups != 0 || w[3] % a.groups != 0) {
    return shape_error(conv_names(x, w) + " have " + std::to_string(x[3]) + " input and " + std::to_string(w[3]) +
                       " output channels, which must both be multiples of the " + std::to_string(a.groups) + " groups.");
  }
  if (w[2] != x[3] / a.groups) {
    return shape_error(conv_names(x, w) + " do not match: each filter reads " + std::to_string(w[2]) + " channels, but with " +
                       std::to_string(a.groups) + " group(s) it must read " + std::to_string(x[3] / a.groups) + ".");
  }
  const Index padded[] = {x[1] + a.pad_top + a.pad_bottom, x[2] + a.pad_left + a.pad_right};
  const Index oh = output_size(padded[0], w[0], a.stride_h, a.dilation_h);
  const Index ow = output_size(padded[1], w[1], a.stride_w, a.dilation_w);
  if (oh == 0 || ow == 0) {
    const Index dilation[] = {a.dilation_h, a.dilation_w};
    return shape_error(conv_names(x, w) + " do not convolve: the kernel " + to_string(w.dims().first(2)) + " with dilation " +
                       to_string(dilation) + " covers more than the padded image " + to_string(padded) + ".");
  }
  const Index dims[] = {x[0], oh, ow, w[3]};
  return Shape::make(dims);
}

Result<Conv2dProblem> conv2d_problem(const Conv2dAttrs& attrs, const Shape& x, const Shape& w) {
  const Result<Shape> y = conv2d_shape(attrs, x, w);
  if (!y) return y.error();
  // Some paths copy an image with its padding: its size must not overflow either.
  const Index padded[] = {x[0], x[1] + attrs.pad_top + attrs.pad_bottom, x[2] + attrs.pad_left + attrs.pad_right, x[3]};
  if (const Result<Shape> fits = Shape::make(padded); !fits) return fits.error();
  return Conv2dProblem{x[0], x[1], x[2], x[3], w[0], w[1], y.value()[1], y.value()[2], w[3], attrs};
}

namespace {

// Shared scratch: with padding the bias, then the weights where they are packed here, then what the pixels in rows need.
std::size_t bias_bytes(const Conv2dProblem& p) noexcept { return has_padding(p.attrs) ? aligned_up(float_bytes(p.oc)) : 0; }

// With padding +0 is added to the chain, so that one which is -0 shows neither whether padding took part nor where the chain
// went on after it. Where a bias follows anyway, (chain + 0) + bias is chain + (bias + 0), as no sum but -0 + -0 is -0.
const float* bias_after_padding(const Context& context, const Conv2dProblem& p, const float* bias) noexcept {
  if (!has_padding(p.attrs)) return bias;
  float* const sums = reinterpret_cast<float*>(context.shared_scratch());
  for (Index i = 0; i < p.oc; ++i) sums[i] = bias == nullptr ? 0.0f : bias[i] + 0.0f;
  return sums;
}

}  // namespace

std::size_t conv2d_packed_bytes(const Context& context, const Conv2dProblem& problem) {
  const bool other_roles = forward_in_pixel_lanes(context, problem) || forward_in_batch_lanes(context, problem);
  if (other_roles) return float_bytes(problem.kh * problem.kw * problem.c * problem.oc);
  return forward_rows_packed_bytes(context, problem);
}

ScratchSize conv2d_packed_scratch(const Context& context, const Conv2dProblem& problem) {
  const std::size_t bias = bias_bytes(problem);
  if (forward_in_pixel_lanes(context, problem)) return {bias, forward_pixel_lanes_bytes(problem)};
  if (forward_in_batch_lanes(context, problem)) return {bias, forward_batch_lanes_bytes(context, problem)};
  const ScratchSize rows = forward_rows_scratch(problem);
  return {bias + rows.shared_bytes, rows.thread_bytes};
}

ScratchSize conv2d_scratch(const Context& context, const Conv2dProblem& problem) {
  ScratchSize size = conv2d_packed_scratch(context, problem);
  if (!forward_in_pixel_lanes(context, problem)) size.shared_bytes += aligned_up(conv2d_packed_bytes(context, problem));
  return size;
}

void pack_conv2d(Context& context, const Conv2dProblem& p, const float* w, float* packed) noexcept {
  if (forward_in_pixel_lanes(context, p)) {
    std::copy_n(w, p.kh * p.kw * p.c * p.oc, packed);
    return;
  }
  if (forward_in_batch_lanes(context, p)) {
    const Index depth = p.kh * p.kw * p.c;
    return context.kernels().transpose(depth, p.oc, w, p.oc, packed, depth);
  }
  pack_forward_rows(context, p, w, packed);
}

namespace {

// packed_bytes: of weights that lie in the shared scratch behind the bias.
void run_with_packed(Context& context, const Conv2dProblem& p, const float* x, const float* packed, std::size_t packed_bytes,
                     Epilogue epilogue, float* y) noexcept {
  if (p.n == 0 || p.oc == 0) return;
  epilogue.bias = bias_after_padding(context, p, epilogue.bias);
  if (forward_in_pixel_lanes(context, p)) return run_forward_pixel_lanes(context, p, x, packed, epilogue, y);
  if (forward_in_batch_lanes(context, p)) return run_forward_batch_lanes(context, p, x, packed, epilogue, y);
  run_forward_rows(context, p, x, packed, epilogue, context.shared_scratch() + bias_bytes(p) + packed_bytes, y);
}

}  // namespace

void run_conv2d(Context& context, const Conv2dProblem& p, const float* x, const float* w, const Epilogue& epilogue,
                float* y) noexcept {
  if (forward_in_pixel_lanes(context, p)) return run_with_packed(context, p, x, w, 0, epilogue, y);
  float* const packed = reinterpret_cast<float*>(context.shared_scratch() + bias_bytes(p));
  pack_conv2d(context, p, w, packed);
  run_with_packed(context, p, x, packed, aligned_up(conv2d_packed_bytes(context, p)), epilogue, y);
}

void run_conv2d_packed(Context& context, const Conv2dProblem& p, const float* x, const float* packed, const Epilogue& epilogue,
                       float* y) noexcept {
  run_with_packed(context, p, x, packed, 0, epilogue, y);
}

void conv2d(Context& context, const Conv2dAttrs& attrs, ConstTensorView x, ConstTensorView w, TensorView y,
            const EpilogueViews& epilogue) {
  const Conv2dProblem problem = conv2d_problem(attrs, x.shape(), w.shape()).value();
  require_shape("conv2d", {"y", y}, Shape{problem.n, problem.oh, problem.ow, problem.oc});
  require_contiguous("conv2d", {{"x", x}, {"w", w}, {"y", y}});
  require_apart("conv2d", {"y", y}, {{"x", x}, {"w", w}});
  context.reserve_scratch(conv2d_scratch(context, problem));
  run_conv2d(context, problem, x.data(), w.data(), checked_epilogue("conv2d", epilogue, y), y.data());
}

}  // namespace vitro::ops
