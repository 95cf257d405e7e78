// SPDX-License-Identifier: Apache-2.0
// Max pooling on its kernels, and plain loops for windows of more than 256 taps.
#include "checks.hpp"
#include "pool2d.hpp"
#include "pool_windows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// Windows of more than 256 taps: the kernels name taps by bytes, so this rare case (global pooling) is a plain loop.
void max_of_large_windows(const simd::PoolWindows& w, const float* x, float* y, std::int32_t* argmax) noexcept {
  for (Index row = 0; row < w.rows; ++row) {
    for (Index column = 0; column < w.columns; ++column) {
      const float* const window = x + row * w.x_row_step + column * w.x_column_step;
      const Index at = row * w.y_row_step + column * w.channels;
      for (Index c = 0; c < w.channels; ++c) {
        float best = window[c];
        const simd::PoolTap* chosen = w.tap;
        for (const simd::PoolTap* tap = w.tap + 1; tap != w.tap + w.taps(); ++tap) {
          const float value = window[tap->offset + c];
          if (!(value <= best) && best == best) {
            best = value;
            chosen = tap;
          }
        }
        y[at + c] = best;
        if (argmax != nullptr) argmax[at + c] = chosen->index;
      }
    }
  }
}

// dx at the chosen taps += dy, for the same windows.
void scatter_large_windows(const Pool2dProblem& p, Index n, const std::int32_t* argmax, const float* dy, float* dx) noexcept {
  const Pool2dAttrs& a = p.attrs;
  const Index width = a.kernel_w;
  std::fill_n(dx + n * p.h * p.w * p.c, p.h * p.w * p.c, 0.0f);
  for (Index oh = 0; oh < p.oh; ++oh) {
    for (Index ow = 0; ow < p.ow; ++ow) {
      // The window's first tap; before the image where that lies in the padding, which is never chosen.
      const Index corner = ((n * p.h + oh * a.stride_h - a.pad_top) * p.w + ow * a.stride_w - a.pad_left) * p.c;
      const Index pixel = ((n * p.oh + oh) * p.ow + ow) * p.c;
      for (Index c = 0; c < p.c; ++c) {
        const Index tap = argmax[pixel + c];
        dx[corner + (tap / width * p.w + tap % width) * p.c + c] += dy[pixel + c];
      }
    }
  }
}

void require_argmax(const char* op, const Pool2dProblem& problem, const Operand& argmax, const Shape& y) {
  if (argmax.element_bytes != static_cast<std::size_t>(problem.argmax_bytes())) {
    fail(ErrorCode::invalid_argument, std::string(op) + ": a window of " + std::to_string(problem.window()) +
                                          " taps needs an argmax of " +
                                          (problem.argmax_bytes() == 1 ? "std::uint8_t" : "std::int32_t") + ".");
  }
  require_shape(op, argmax, y);
  require_contiguous(op, {argmax});
}

template <class Choice>
void checked_max_pool(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y,
                      const BasicView<Choice>* argmax) {
  const Pool2dProblem problem = max_pool2d_problem(attrs, x.shape()).value();
  require_shape("max_pool2d", {"y", y}, Shape{problem.n, problem.oh, problem.ow, problem.c});
  require_contiguous("max_pool2d", {{"x", x}, {"y", y}});
  require_apart("max_pool2d", {"y", y}, {{"x", x}});
  if (argmax != nullptr) {
    require_argmax("max_pool2d", problem, {"argmax", *argmax}, y.shape());
    require_apart("max_pool2d", {"argmax", *argmax}, {{"x", x}, {"y", y}});
  }
  context.reserve_scratch(pool2d_scratch(context, problem));
  run_max_pool2d(context, problem, x.data(), y.data(), argmax == nullptr ? nullptr : argmax->data());
}

template <class Choice>
void checked_max_pool_grad(Context& context, const Pool2dAttrs& attrs, BasicView<const Choice> argmax, ConstTensorView dy,
                           TensorView dx) {
  const Pool2dProblem problem = max_pool2d_problem(attrs, dx.shape()).value();
  require_shape("max_pool2d_grad", {"dy", dy}, Shape{problem.n, problem.oh, problem.ow, problem.c});
  require_argmax("max_pool2d_grad", problem, {"argmax", argmax}, dy.shape());
  require_contiguous("max_pool2d_grad", {{"dy", dy}, {"dx", dx}});
  require_apart("max_pool2d_grad", {"dx", dx}, {{"argmax", argmax}, {"dy", dy}});
  context.reserve_scratch(pool2d_scratch(context, problem));
  run_max_pool2d_grad(context, problem, argmax.data(), dy.data(), dx.data());
}

}  // namespace

void run_max_pool2d(Context& context, const Pool2dProblem& p, const float* x, float* y, void* argmax) noexcept {
  if (p.c == 0) return;
  context.parallel_for(p.n * p.oh, row_work(p), [&](Index begin, Index end, int thread) {
    const PoolScratch scratch(context.thread_scratch(thread));
    for_each_rectangle_of_rows(p, begin, end, scratch, [&](const PoolRectangle& r, Index image, Index output) {
      if (p.argmax_bytes() == 1) {
        std::uint8_t* const chosen = argmax == nullptr ? nullptr : static_cast<std::uint8_t*>(argmax) + output;
        context.kernels().max_pool(r.windows, x + image, y + output, chosen);
      } else {
        std::int32_t* const chosen = argmax == nullptr ? nullptr : static_cast<std::int32_t*>(argmax) + output;
        max_of_large_windows(r.windows, x + image, y + output, chosen);
      }
    });
  });
}

void run_max_pool2d_grad(Context& context, const Pool2dProblem& p, const void* argmax, const float* dy, float* dx) noexcept {
  context.parallel_for(p.n, image_work(p), [&](Index begin, Index end, int thread) {
    const PoolScratch scratch(context.thread_scratch(thread));
    for (Index n = begin; n < end; ++n) {
      if (p.argmax_bytes() == 4) {
        scatter_large_windows(p, n, static_cast<const std::int32_t*>(argmax), dy, dx);
        continue;
      }
      for_each_gradient_rectangle(p, n, scratch, dx, [&](const PoolRectangle& r, Index image, Index output) {
        context.kernels().max_pool_grad(r.windows, overlapping(p), static_cast<const std::uint8_t*>(argmax) + output,
                                        dy + output, dx + image);
      });
    }
  });
}

void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y) {
  checked_max_pool<std::uint8_t>(context, attrs, x, y, nullptr);
}

void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y, BasicView<std::uint8_t> argmax) {
  checked_max_pool(context, attrs, x, y, &argmax);
}

void max_pool2d(Context& context, const Pool2dAttrs& attrs, ConstTensorView x, TensorView y, BasicView<std::int32_t> argmax) {
  checked_max_pool(context, attrs, x, y, &argmax);
}

void max_pool2d_grad(Context& context, const Pool2dAttrs& attrs, BasicView<const std::uint8_t> argmax, ConstTensorView dy,
                     TensorView dx) {
  checked_max_pool_grad(context, attrs, argmax, dy, dx);
}

void max_pool2d_grad(Context& context, const Pool2dAttrs& attrs, BasicView<const std::int32_t> argmax, ConstTensorView dy,
                     TensorView dx) {
  checked_max_pool_grad(context, attrs, argmax, dy, dx);
}

}  // namespace vitro::ops
