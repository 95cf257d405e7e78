// SPDX-License-Identifier: Apache-2.0
// Max pooling: windows as pointers to their valid pixels; the gradient scattered window by window.
#include "checks.hpp"
#include "pool2d.hpp"
#include "pool_windows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// A window of more than 256 taps: the kernels name taps by bytes, so this rare case (global pooling) is a plain loop.
void max_of_large_window(const Pool2dProblem& p, const Taps& rows, const Taps& columns, const float* const* taps, float* y,
                         std::int32_t* argmax) noexcept {
  for (Index c = 0; c < p.c; ++c) {
    float best = taps[0][c];
    Index chosen = 0;
    for (Index t = 1; t < rows.count() * columns.count(); ++t) {
      const float x = taps[t][c];
      if (!(x <= best) && best == best) {
        best = x;
        chosen = t;
      }
    }
    y[c] = best;
    if (argmax == nullptr) continue;
    const Index kh = rows.begin + chosen / columns.count(), kw = columns.begin + chosen % columns.count();
    argmax[c] = static_cast<std::int32_t>(kh * p.attrs.kernel_w + kw);
  }
}

// One row of the output, at most 256 taps in a window.
void max_of_row(const simd::KernelTable& kernels, const Pool2dProblem& p, const PoolScratch& scratch, const float* image,
                const Taps& rows, float* y, std::uint8_t* argmax) noexcept {
  Taps numbered{};  // the columns whose positions are in scratch
  for (Index ow = 0; ow < p.ow; ++ow) {
    const Taps columns = column_taps(p, ow);
    collect_taps(p, rows, columns, image, scratch.taps);
    if (ow == 0 || columns.begin != numbered.begin || columns.end != numbered.end) {
      std::uint8_t* position = scratch.positions;
      for (Index kh = rows.begin; kh < rows.end; ++kh) {
        for (Index kw = columns.begin; kw < columns.end; ++kw)
          *position++ = static_cast<std::uint8_t>(kh * p.attrs.kernel_w + kw);
      }
      numbered = columns;
    }
    // The kernel always writes the choice; who does not want it gets it written to scratch.
    std::uint8_t* const chosen = argmax == nullptr ? reinterpret_cast<std::uint8_t*>(scratch.pixel) : argmax + ow * p.c;
    kernels.max_pool(rows.count() * columns.count(), p.c, scratch.taps, scratch.positions, y + ow * p.c, chosen);
  }
}

// dx at the chosen taps += dy. `offset_of(choice)` is the element offset of a tap from its window's first.
template <class Choice, class OffsetOf>
void scatter(const Pool2dProblem& p, Index n, const Choice* argmax, const float* dy, float* dx,
             const OffsetOf& offset_of) noexcept {
  const Pool2dAttrs& a = p.attrs;
  std::fill_n(dx + n * p.h * p.w * p.c, p.h * p.w * p.c, 0.0f);
  for (Index oh = 0; oh < p.oh; ++oh) {
    for (Index ow = 0; ow < p.ow; ++ow) {
      // The window's first tap; before the image where that lies in the padding, which is never chosen.
      const Index corner = ((n * p.h + oh * a.stride_h - a.pad_top) * p.w + ow * a.stride_w - a.pad_left) * p.c;
      const Index pixel = ((n * p.oh + oh) * p.ow + ow) * p.c;
      for (Index c = 0; c < p.c; ++c) dx[corner + offset_of(argmax[pixel + c]) + c] += dy[pixel + c];
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
    const PoolScratch scratch(p, context.thread_scratch(thread));
    for (Index row = begin; row < end; ++row) {  // row n * OH + oh of the output
      const float* const image = x + row / p.oh * p.h * p.w * p.c;
      const Taps rows = row_taps(p, row % p.oh);
      const Index at = row * p.ow * p.c;
      if (p.argmax_bytes() == 1) {
        std::uint8_t* const chosen = argmax == nullptr ? nullptr : static_cast<std::uint8_t*>(argmax) + at;
        max_of_row(context.kernels(), p, scratch, image, rows, y + at, chosen);
        continue;
      }
      for (Index ow = 0; ow < p.ow; ++ow) {
        const Taps columns = column_taps(p, ow);
        collect_taps(p, rows, columns, image, scratch.taps);
        std::int32_t* const chosen = argmax == nullptr ? nullptr : static_cast<std::int32_t*>(argmax) + at + ow * p.c;
        max_of_large_window(p, rows, columns, scratch.taps, y + at + ow * p.c, chosen);
      }
    }
  });
}

void run_max_pool2d_grad(Context& context, const Pool2dProblem& p, const void* argmax, const float* dy, float* dx) noexcept {
  const Index width = p.attrs.kernel_w;
  context.parallel_for(p.n, image_work(p), [&](Index begin, Index end, int thread) {
    if (p.argmax_bytes() == 1) {
      Index* const offsets = PoolScratch(p, context.thread_scratch(thread)).offsets;  // a table, to save the division
      for (Index tap = 0; tap < p.window(); ++tap) offsets[tap] = (tap / width * p.w + tap % width) * p.c;
      for (Index n = begin; n < end; ++n) {
        scatter(p, n, static_cast<const std::uint8_t*>(argmax), dy, dx, [offsets](std::uint8_t tap) { return offsets[tap]; });
      }
    } else {
      for (Index n = begin; n < end; ++n) {
        scatter(p, n, static_cast<const std::int32_t*>(argmax), dy, dx,
                [&](std::int32_t tap) { return (tap / width * p.w + tap % width) * p.c; });
      }
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
