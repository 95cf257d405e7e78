// SPDX-License-Identifier: Apache-2.0
// Average pooling on its kernels, and its divisors.
#include "checks.hpp"
#include "pool2d.hpp"
#include "pool_windows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// The divisor of a rectangle's windows. Windows with the same taps have the same: those that the padding's far edge cuts differ
// in their last tap. (But for windows without any, whose sum is +0 and whose gradient goes nowhere.)
float divisor_of(const Pool2dProblem& p, const PoolRectangle& r) noexcept {
  const Pool2dAttrs& a = p.attrs;
  switch (a.divisor) {
    case AverageDivisor::valid: return static_cast<float>(r.windows.taps());
    case AverageDivisor::window: break;
    case AverageDivisor::padded: {
      const Index rows = std::min<Index>(a.kernel_h, p.h + a.pad_top + a.pad_bottom - r.oh * a.stride_h);
      const Index columns = std::min<Index>(a.kernel_w, p.w + a.pad_left + a.pad_right - r.ow * a.stride_w);
      return static_cast<float>(rows * columns);
    }
  }
  return static_cast<float>(p.window());
}

}  // namespace

void run_average_pool2d(Context& context, const Pool2dProblem& p, const float* x, float* y) noexcept {
  context.parallel_for(p.n * p.oh, row_work(p), [&](Index begin, Index end, int thread) {
    const PoolScratch scratch(context.thread_scratch(thread));
    for_each_rectangle_of_rows(p, begin, end, scratch, [&](const PoolRectangle& r, Index image, Index output) {
      context.kernels().average_pool(r.windows, x + image, divisor_of(p, r), y + output);
    });
  });
}

void run_average_pool2d_grad(Context& context, const Pool2dProblem& p, const float* dy, float* dx) noexcept {
  context.parallel_for(p.n, image_work(p), [&](Index begin, Index end, int thread) {
    const PoolScratch scratch(context.thread_scratch(thread));
    for (Index n = begin; n < end; ++n) {
      for_each_gradient_rectangle(p, n, scratch, dx, [&](const PoolRectangle& r, Index image, Index output) {
        context.kernels().average_pool_grad(r.windows, overlapping(p), divisor_of(p, r), dy + output, dx + image);
      });
    }
  });
}

void average_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y) {
  const Pool2dProblem problem = average_pool2d_problem(attrs, x.shape()).value();
  require_shape("average_pool2d", {"y", y}, Shape{problem.n, problem.oh, problem.ow, problem.c});
  require_contiguous("average_pool2d", {{"x", x}, {"y", y}});
  require_apart("average_pool2d", {"y", y}, {{"x", x}});
  context.reserve_scratch(pool2d_scratch(context, problem));
  run_average_pool2d(context, problem, x.data(), y.data());
}

void average_pool2d_grad(Context& context, const Pool2dAttrs& attrs, ConstTensorView dy, TensorView dx) {
  const Pool2dProblem problem = average_pool2d_problem(attrs, dx.shape()).value();
  require_shape("average_pool2d_grad", {"dy", dy}, Shape{problem.n, problem.oh, problem.ow, problem.c});
  require_contiguous("average_pool2d_grad", {{"dy", dy}, {"dx", dx}});
  require_apart("average_pool2d_grad", {"dx", dx}, {{"dy", dy}});
  context.reserve_scratch(pool2d_scratch(context, problem));
  run_average_pool2d_grad(context, problem, dy.data(), dx.data());
}

}  // namespace vitro::ops
