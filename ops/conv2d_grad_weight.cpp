// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's filters: which way it goes.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_grad_weight_blocks.hpp"
#include "conv2d_grad_weight_columns.hpp"
#include "conv2d_grad_weight_lanes.hpp"
#include "conv2d_grad_weight_pixels.hpp"
#include "conv2d_grad_weight_planes.hpp"
#include "conv2d_grad_weight_rows.hpp"

#include <algorithm>

namespace vitro::ops {

Index conv2d_grad_weight_images(const Conv2dProblem& p) noexcept { return std::max<Index>(1, 512 / (p.oh * p.ow)); }

ScratchSize conv2d_grad_weight_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_weight_in_lanes(context, p)) return grad_weight_lanes_scratch(context, p);
  if (grad_weight_in_planes(context, p)) return grad_weight_planes_scratch(context, p);
  if (grad_weight_by_columns(context, p)) return grad_weight_columns_scratch(context, p);
  if (grad_weight_by_pixels(p)) return grad_weight_pixels_scratch(context, p);
  if (grad_weight_by_blocks(p)) return grad_weight_blocks_scratch(context, p);
  return grad_weight_rows_scratch(context, p);
}

void run_conv2d_grad_weight(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  if (grad_weight_in_lanes(context, p)) return run_grad_weight_lanes(context, p, x, dy, dw);
  if (grad_weight_in_planes(context, p)) return run_grad_weight_planes(context, p, x, dy, dw);
  if (grad_weight_by_columns(context, p)) return run_grad_weight_columns(context, p, x, dy, dw);
  if (p.n == 0) std::fill_n(dw, p.kh * p.kw * p.group_in() * p.oc, 0.0f);
  if (p.n == 0 || p.oc == 0 || p.c == 0) return;
  if (grad_weight_by_pixels(p)) return run_grad_weight_pixels(context, p, x, dy, dw);
  if (grad_weight_by_blocks(p)) return run_grad_weight_blocks(context, p, x, dy, dw);
  run_grad_weight_rows(context, p, x, dy, dw);
}

void conv2d_grad_weight(Context& context, const Conv2dAttrs& attrs, ConstTensorView x, ConstTensorView dy, TensorView dw) {
  const Conv2dProblem problem = conv2d_problem(attrs, x.shape(), dw.shape()).value();
  require_shape("conv2d_grad_weight", {"dy", dy}, Shape{problem.n, problem.oh, problem.ow, problem.oc});
  require_contiguous("conv2d_grad_weight", {{"x", x}, {"dy", dy}, {"dw", dw}});
  require_apart("conv2d_grad_weight", {"dw", dw}, {{"x", x}, {"dy", dy}});
  context.reserve_scratch(conv2d_grad_weight_scratch(context, problem));
  run_conv2d_grad_weight(context, problem, x.data(), dy.data(), dw.data());
}

}  // namespace vitro::ops
