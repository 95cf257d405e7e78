// SPDX-License-Identifier: Apache-2.0
// Average pooling: windows as pointers to their valid pixels; the gradient spread window by window.
#include "checks.hpp"
#include "pool2d.hpp"
#include "pool_windows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

float divisor_of(const Pool2dProblem& p, Index oh, Index ow, Index valid) noexcept {
  const Pool2dAttrs& a = p.attrs;
  switch (a.divisor) {
    case AverageDivisor::valid: return static_cast<float>(valid);
    case AverageDivisor::window: break;
    case AverageDivisor::padded: {
      const Index rows = std::min<Index>(a.kernel_h, p.h + a.pad_top + a.pad_bottom - oh * a.stride_h);
      const Index columns = std::min<Index>(a.kernel_w, p.w + a.pad_left + a.pad_right - ow * a.stride_w);
      return static_cast<float>(rows * columns);
    }
  }
  return static_cast<float>(p.window());
}

// dx of one image += dy / divisor over each window. `share` is memory for one pixel.
void spread(const Pool2dProblem& p, const float* dy, float* dx, float* share) noexcept {
  for (Index oh = 0; oh < p.oh; ++oh) {
    const Taps rows = row_taps(p, oh);
    for (Index ow = 0; ow < p.ow; ++ow, dy += p.c) {
      const Taps columns = column_taps(p, ow);
      const float divisor = divisor_of(p, oh, ow, rows.count() * columns.count());
      for (Index c = 0; c < p.c; ++c) share[c] = dy[c] / divisor;
      for (Index i = 0; i < rows.count(); ++i) {
        for (Index j = 0; j < columns.count(); ++j) {
          float* const pixel = dx + ((rows.input + i) * p.w + columns.input + j) * p.c;
          for (Index c = 0; c < p.c; ++c) pixel[c] += share[c];
        }
      }
    }
  }
}

}  // namespace

void run_average_pool2d(Context& context, const Pool2dProblem& p, const float* x, float* y) noexcept {
  context.parallel_for(p.n * p.oh, row_work(p), [&](Index begin, Index end, int thread) {
    const PoolScratch scratch(p, context.thread_scratch(thread));
    for (Index row = begin; row < end; ++row) {  // row n * OH + oh of the output
      const Index oh = row % p.oh;
      const Taps rows = row_taps(p, oh);
      for (Index ow = 0; ow < p.ow; ++ow) {
        const Taps columns = column_taps(p, ow);
        collect_taps(p, rows, columns, x + row / p.oh * p.h * p.w * p.c, scratch.taps);
        const Index taps = rows.count() * columns.count();
        context.kernels().average_pool(taps, p.c, scratch.taps, divisor_of(p, oh, ow, taps), y + (row * p.ow + ow) * p.c);
      }
    }
  });
}

void run_average_pool2d_grad(Context& context, const Pool2dProblem& p, const float* dy, float* dx) noexcept {
  context.parallel_for(p.n, image_work(p), [&](Index begin, Index end, int thread) {
    float* const share = PoolScratch(p, context.thread_scratch(thread)).pixel;
    for (Index n = begin; n < end; ++n) {
      float* const image = dx + n * p.h * p.w * p.c;
      std::fill_n(image, p.h * p.w * p.c, 0.0f);
      spread(p, dy + n * p.oh * p.ow * p.c, image, share);
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
