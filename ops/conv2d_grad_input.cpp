// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's input: a gather over the taps that reach a pixel.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_batch_lanes.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// Calls body(run) for runs that together hold the positions [begin, end). Positions that are a stride apart see taps of one
// arithmetic progression, of which the first and the number say all.
template <class Body>
void for_each_run(const Axis& axis, Index begin, Index end, const Body& body) {
  for (Index phase = begin; phase < std::min(begin + axis.stride, end); ++phase) {
    for (Index position = phase; position < end;) {
      TapRun run = taps_at(axis, position);
      for (position += axis.stride; position < end; position += axis.stride, ++run.count) {
        const TapRun next = taps_at(axis, position);
        if (next.tap != run.tap || next.taps != run.taps) break;
      }
      body(run);
    }
  }
}

// Shared scratch: the filters with their channels transposed, [groups][KH, KW, group_out, group_in], then the same packed.
Index grad_input_step(const Context& context, const Conv2dProblem& p) noexcept {
  return packed_b_step(context.kernels(), p.kh * p.kw * p.group_out(), p.group_in());
}

void pack_transposed(Context& context, const Conv2dProblem& p, const float* w, float* transposed, float* packed) noexcept {
  const Index in = p.group_in(), out = p.group_out(), taps = p.kh * p.kw;
  for (Index group = 0; group < p.attrs.groups; ++group) {
    float* to = transposed + group * taps * out * in;
    context.parallel_for(taps, in * out, [&](Index begin, Index end, int) {
      for (Index tap = begin; tap < end; ++tap) {
        context.kernels().transpose(in, out, w + tap * in * p.oc + group * out, p.oc, to + tap * out * in, in);
      }
    });
    context.kernels().pack_b(taps * out, in, to, in, 1, packed + group * grad_input_step(context, p));
  }
}

// A thread's scratch: the batch's tables, then which filter rows each segment multiplies, then a source pointer for each
// segment.
std::size_t segment_bytes(const Conv2dProblem& p) noexcept {
  return rounded_up(static_cast<std::size_t>(p.kh * p.kw) * sizeof(Index));
}

// The gradient of the pixels (ih, iw) in `rows` x `columns` of images [n_begin, n_end): one matrix product.
void multiply_run(const Context& context, const Conv2dProblem& p, simd::GemmRows product, const GroupStep& step,
                  const TapRun& rows, const TapRun& columns, Index n_begin, Index n_end, const float* dy, float* dx,
                  std::byte* scratch) noexcept {
  Index* const b_segments = reinterpret_cast<Index*>(scratch + row_batch_bytes(p.kh * p.kw));
  product.segments = rows.taps * columns.taps;
  product.b_segments = b_segments;
  for (Index a = 0; a < rows.taps; ++a) {
    for (Index b = 0; b < columns.taps; ++b) {
      const Index tap = (rows.tap + a * rows.tap_step) * p.kw + columns.tap + b * columns.tap_step;
      b_segments[a * columns.taps + b] = tap * p.group_out();
    }
  }
  RowBatch batch(context.kernels(), product, step, false, scratch);
  for (Index n = n_begin; n < n_end; ++n) {
    for (Index i = 0; i < rows.count; ++i) {
      float* const pixels = dx + ((n * p.h + rows.begin + i * p.attrs.stride_h) * p.w + columns.begin) * p.c;
      const Index pixel_step = p.attrs.stride_w * p.c;
      for (Index j = 0; j < columns.count;) {
        const RowBatch::Rows added = batch.add(columns.count - j, pixels + j * pixel_step, pixel_step);
        const float** slots = added.slots;
        for (Index a = 0; a < rows.taps; ++a) {
          const Index oh = rows.out + i - a * rows.out_step;
          const float* const source = dy + ((n * p.oh + oh) * p.ow + columns.out + j) * p.oc;
          for (Index b = 0; b < columns.taps; ++b, ++slots) {
            for (Index k = 0; k < added.count; ++k) slots[k * product.segments] = source + (k - b * columns.out_step) * p.oc;
          }
        }
        j += added.count;
      }
    }
  }
  batch.flush();
}

}  // namespace

ScratchSize conv2d_grad_input_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_input_in_batch_lanes(context, p)) return {0, grad_input_batch_lanes_bytes(context, p)};
  const Index taps = p.kh * p.kw;
  return {rounded_up(float_bytes(taps * p.group_in() * p.oc)) + float_bytes(grad_input_step(context, p) * p.attrs.groups),
          row_batch_bytes(taps) + segment_bytes(p)};
}

void run_conv2d_grad_input(Context& context, const Conv2dProblem& p, const float* dy, const float* w, float* dx) noexcept {
  if (p.n == 0 || p.c == 0) return;
  if (grad_input_in_batch_lanes(context, p)) return run_grad_input_batch_lanes(context, p, dy, w, dx);
  float* const transposed = reinterpret_cast<float*>(context.shared_scratch());
  float* const packed =
      reinterpret_cast<float*>(context.shared_scratch() + rounded_up(float_bytes(p.kh * p.kw * p.group_in() * p.oc)));
  pack_transposed(context, p, w, transposed, packed);

  const Conv2dAttrs& a = p.attrs;
  const Axis h_axis = height_axis(p), w_axis = width_axis(p);
  simd::GemmRows product;
  product.n = p.group_in();
  product.segment_length = p.group_out();
  product.packed_b = packed;
  product.packed_k = p.kh * p.kw * p.group_out();
  const GroupStep step{a.groups, p.group_out(), p.group_in(), grad_input_step(context, p)};

  // Images [n_begin, n_end), pixel rows [h_begin, h_end).
  const auto multiply = [&](Index n_begin, Index n_end, Index h_begin, Index h_end, int thread) {
    for_each_run(h_axis, h_begin, h_end, [&](const TapRun& rows) {
      for_each_run(w_axis, 0, p.w, [&](const TapRun& columns) {
        multiply_run(context, p, product, step, rows, columns, n_begin, n_end, dy, dx, context.thread_scratch(thread));
      });
    });
  };
  const Index row_work = p.w * (p.c * (product.packed_k / (16 * a.stride_h * a.stride_w) + 1) + p.kh * p.kw);
  if (p.n >= context.threads()) {
    context.parallel_for(p.n, p.h * row_work,
                         [&](Index begin, Index end, int thread) { multiply(begin, end, 0, p.h, thread); });
  } else {
    context.parallel_for(p.h, p.n * row_work,
                         [&](Index begin, Index end, int thread) { multiply(0, p.n, begin, end, thread); });
  }
}

void conv2d_grad_input(Context& context, const Conv2dAttrs& attrs, ConstTensorView dy, ConstTensorView w, TensorView dx) {
  const Conv2dProblem problem = conv2d_problem(attrs, dx.shape(), w.shape()).value();
  require_shape("conv2d_grad_input", {"dy", dy}, Shape{problem.n, problem.oh, problem.ow, problem.oc});
  require_contiguous("conv2d_grad_input", {{"dy", dy}, {"w", w}, {"dx", dx}});
  require_apart("conv2d_grad_input", {"dx", dx}, {{"dy", dy}, {"w", w}});
  context.reserve_scratch(conv2d_grad_input_scratch(context, problem));
  run_conv2d_grad_input(context, problem, dy.data(), w.data(), dx.data());
}

}  // namespace vitro::ops
