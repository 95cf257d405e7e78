// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's input: a gather over the taps that reach a pixel.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_batch_lanes.hpp"
#include "conv2d_pixel_lanes.hpp"
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
    pack_b(context, taps * out, in, to, in, 1, packed + group * grad_input_step(context, p));
  }
}

// Adds the pixels (ih, iw) in `rows` x `columns` of images [n_begin, n_end) to the batch, unless no tap reaches them.
void add_run(const Conv2dProblem& p, const TapRun& rows, const TapRun& columns, Index n_begin, Index n_end, const float* dy,
             float* dx, RowBatch& batch) noexcept {
  const Index taps = p.kh * p.kw, pixel_step = p.attrs.stride_w * p.c;
  const bool reached = rows.taps > 0 && columns.taps > 0;
  batch.begin_run();
  for (Index n = n_begin; n < n_end; ++n) {
    for (Index i = 0; i < rows.count; ++i) {
      float* const pixels = dx + ((n * p.h + rows.begin + i * p.attrs.stride_h) * p.w + columns.begin) * p.c;
      for (Index j = 0; !reached && j < columns.count; ++j) std::fill_n(pixels + j * pixel_step, p.c, 0.0f);
      if (!reached) continue;
      for (Index j = 0; j < columns.count;) {
        const RowBatch::Rows added = batch.add(columns.count - j, pixels + j * pixel_step, pixel_step);
        std::fill_n(added.slots, added.count * taps, nullptr);
        for (Index a = 0; a < rows.taps; ++a) {
          const Index oh = rows.out + i - a * rows.out_step;
          const float* const source = dy + ((n * p.oh + oh) * p.ow + columns.out + j) * p.oc;
          for (Index b = 0; b < columns.taps; ++b) {
            const Index tap = (rows.tap + a * rows.tap_step) * p.kw + columns.tap + b * columns.tap_step;
            for (Index k = 0; k < added.count; ++k) added.slots[k * taps + tap] = source + (k - b * columns.out_step) * p.oc;
          }
        }
        j += added.count;
      }
    }
  }
}

// The gradient of pixel rows [h_begin, h_end) of images [n_begin, n_end): a matrix product with a segment for each tap, which
// pixels that the tap does not reach lack. They are taken in blocks of about as many pixels as a batch of rows holds, and in a
// block run by run, so that few tiles are cut short.
void multiply_images(const Context& context, const Conv2dProblem& p, const simd::GemmRows& product, const GroupStep& step,
                     Index n_begin, Index n_end, Index h_begin, Index h_end, const float* dy, float* dx,
                     std::byte* scratch) noexcept {
  const Index phases = Index{p.attrs.stride_h} * p.attrs.stride_w;  // of which no tap may reach some
  const Index reached = std::min<Index>(p.kh, p.attrs.stride_h) * std::min<Index>(p.kw, p.attrs.stride_w);
  const Index pixels = RowBatch::capacity(product.segments) * phases / reached;
  const Index images = std::max<Index>(pixels / std::max<Index>((h_end - h_begin) * p.w, 1), 1);
  const Index rows = std::max<Index>(pixels / std::max<Index>(p.w, 1), 1);
  RowBatch batch(context.kernels(), product, step, false, scratch);
  for (Index n = n_begin; n < n_end; n += images) {
    for (Index h = h_begin; h < h_end; h += rows) {
      for_each_run(height_axis(p), h, std::min(h + rows, h_end), [&](const TapRun& row_run) {
        for_each_run(width_axis(p), 0, p.w, [&](const TapRun& column_run) {
          add_run(p, row_run, column_run, n, std::min(n + images, n_end), dy, dx, batch);
        });
      });
      batch.flush();
    }
  }
}

// The paths in other roles read the weights as they are.
bool packs_nothing(const Context& context, const Conv2dProblem& p) noexcept {
  return grad_input_in_pixel_lanes(context, p) || grad_input_in_batch_lanes(context, p);
}

std::size_t transposed_bytes(const Conv2dProblem& p) noexcept {
  return aligned_up(float_bytes(p.kh * p.kw * p.group_in() * p.oc));
}

}  // namespace

ScratchSize conv2d_grad_input_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_input_in_pixel_lanes(context, p)) return {0, grad_input_pixel_lanes_bytes(p)};
  if (grad_input_in_batch_lanes(context, p)) return {0, grad_input_batch_lanes_bytes(context, p)};
  return {transposed_bytes(p) + conv2d_grad_input_packed_bytes(context, p), row_batch_bytes(p.kh * p.kw)};
}

std::size_t conv2d_grad_input_packed_bytes(const Context& context, const Conv2dProblem& p) {
  if (packs_nothing(context, p)) return transposed_bytes(p);
  return float_bytes(grad_input_step(context, p) * p.attrs.groups);
}

void pack_conv2d_grad_input(Context& context, const Conv2dProblem& p, const float* w, float* packed) noexcept {
  if (packs_nothing(context, p)) {
    std::copy_n(w, p.kh * p.kw * p.c * p.oc, packed);
  } else {
    pack_transposed(context, p, w, reinterpret_cast<float*>(context.shared_scratch()), packed);
  }
}

void run_conv2d_grad_input(Context& context, const Conv2dProblem& p, const float* dy, const float* w, float* dx) noexcept {
  if (p.n == 0 || p.c == 0) return;
  if (packs_nothing(context, p)) return run_conv2d_grad_input_packed(context, p, dy, w, dx);
  float* const packed = reinterpret_cast<float*>(context.shared_scratch() + transposed_bytes(p));
  pack_conv2d_grad_input(context, p, w, packed);
  run_conv2d_grad_input_packed(context, p, dy, packed, dx);
}

void run_conv2d_grad_input_packed(Context& context, const Conv2dProblem& p, const float* dy, const float* packed,
                                  float* dx) noexcept {
  if (p.n == 0 || p.c == 0) return;
  if (grad_input_in_pixel_lanes(context, p)) return run_grad_input_pixel_lanes(context, p, dy, packed, dx);
  if (grad_input_in_batch_lanes(context, p)) return run_grad_input_batch_lanes(context, p, dy, packed, dx);
  const Conv2dAttrs& a = p.attrs;
  simd::GemmRows product;
  product.n = p.group_in();
  product.far_c = is_far(p.n * p.h * p.w * p.c);
  product.segments = p.kh * p.kw;
  product.segment_length = p.group_out();
  product.packed_b = packed;
  product.packed_k = p.kh * p.kw * p.group_out();
  const GroupStep step{a.groups, p.group_out(), p.group_in(), grad_input_step(context, p)};

  // Images [n_begin, n_end), pixel rows [h_begin, h_end).
  const auto multiply = [&](Index n_begin, Index n_end, Index h_begin, Index h_end, int thread) {
    multiply_images(context, p, product, step, n_begin, n_end, h_begin, h_end, dy, dx, context.thread_scratch(thread));
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
