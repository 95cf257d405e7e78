// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's filters: one matrix product for each chunk of images.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_grad_weight_columns.hpp"
#include "conv2d_grad_weight_lanes.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// How the rows of the product, x under one tap and channel for all pixels of an image, are read.
enum class Source : unsigned char {
  in_place,  // from x itself, a channel's pixels C floats apart
  padded,    // likewise, from a copy with the padding around it
  planes,    // from a copy by channels: the pixels of a row of the product are dense
};

// The images whose dy is packed (and whose x is copied) at a time, to be multiplied at once.
struct GradWeightPass {
  Index images;       // in a chunk
  Index chunks;       // in the whole batch
  Index pass;         // chunks in a pass
  Index packed_step;  // floats, of one group of one chunk
  Source source;
  Index height, width;  // of the padded images
  Index plane_rows;     // planes: rows of one phase of the stride; every stride_h-th image row belongs to a phase
  Index plane;          // planes: floats from one channel to the next
  Index image;          // floats of an image in its source
};

GradWeightPass grad_weight_pass(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr Index kPassFloats = 1 << 17;  // 512 KiB: what was packed is still in the second-level cache when it is multiplied
  // Pixels that lie 512 bytes or more apart fall into few sets of the first-level cache. 64 images of 7x7 pixels and 512
  // channels took 12 % less time with the copy, 14x14 and 256 13 % at stride 2; a single tap, which is all that the copy would
  // serve, lost with 64 and 128 channels.
  const Index plane_channels = p.kh * p.kw > 1 ? 128 : 256;
  const Conv2dAttrs& a = p.attrs;
  GradWeightPass pass{};
  pass.images = std::clamp<Index>(conv2d_grad_weight_images(p), 1, std::max<Index>(p.n, 1));
  pass.chunks = (p.n + pass.images - 1) / pass.images;
  pass.packed_step = packed_b_step(context.kernels(), pass.images * p.oh * p.ow, p.group_out());
  pass.height = padded_height(p);
  pass.width = padded_width(p);
  pass.source = p.c >= plane_channels ? Source::planes : has_padding(a) ? Source::padded : Source::in_place;
  pass.plane_rows = (pass.height + a.stride_h - 1) / a.stride_h;
  // An odd number of cache lines: the channels do not fall into the same sets.
  const Index lines = (a.stride_h * pass.plane_rows * p.ow + 15) / 16;
  pass.plane = (lines + 1 - lines % 2) * 16;
  pass.image = pass.source == Source::planes ? p.kw * p.c * pass.plane : pass.height * pass.width * p.c;
  const Index copied = pass.source == Source::in_place ? 0 : pass.images * pass.image;
  pass.pass = std::clamp<Index>(kPassFloats / (pass.packed_step * a.groups + copied + 1), 1, std::max<Index>(pass.chunks, 1));
  return pass;
}

std::size_t zero_bytes(const Conv2dProblem& p) noexcept { return aligned_up(float_bytes(p.oc)); }

std::size_t pass_packed_bytes(const Conv2dProblem& p, const GradWeightPass& pass) noexcept {
  return float_bytes(pass.pass * p.attrs.groups * pass.packed_step);
}

// One image by channels, [KW, C, stride_h, plane_rows, OW]: the plane of (kw, c) holds at (phase, q, ow) the pixel that output
// column ow sees under tap kw, in padded row q * stride_h + phase. What lies in the padding is +0.
void copy_planes(const Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const float* x,
                 float* planes) noexcept {
  const Conv2dAttrs& a = p.attrs;
  if (has_padding(a)) std::fill_n(planes, pass.image, 0.0f);
  for (Index kw = 0; kw < p.kw; ++kw) {
    const Index shift = kw * a.dilation_w - a.pad_left;  // the column is ow * stride_w + shift
    const Index begin = shift >= 0 ? 0 : std::min((a.stride_w - 1 - shift) / a.stride_w, p.ow);
    const Index end = p.w <= shift ? begin : std::clamp((p.w - shift + a.stride_w - 1) / a.stride_w, begin, p.ow);
    for (Index ih = 0; ih < p.h; ++ih) {
      const Index row = ih + a.pad_top;
      float* const to = planes + kw * p.c * pass.plane + (row % a.stride_h * pass.plane_rows + row / a.stride_h) * p.ow;
      context.kernels().transpose(end - begin, p.c, x + (ih * p.w + begin * a.stride_w + shift) * p.c, a.stride_w * p.c,
                                  to + begin, pass.plane);
    }
  }
}

// Images [begin, end) of x into `copies`.
void copy_images(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const float* x, Index begin, Index end,
                 float* copies) noexcept {
  context.parallel_for(end - begin, pass.image, [&](Index first, Index last, int) {
    for (Index n = first; n < last; ++n) {
      const float* const from = x + (begin + n) * p.h * p.w * p.c;
      if (pass.source == Source::planes) {
        copy_planes(context, p, pass, from, copies + n * pass.image);
      } else {
        copy_padded_image(p, from, copies + n * pass.image);
      }
    }
  });
}

// The segments of one row of the product, (kh, kw, ic), for `images` images from `source` on.
void fill_row(const Conv2dProblem& p, const GradWeightPass& pass, Index row, Index images, const float* source,
              const float** slots) noexcept {
  const Conv2dAttrs& a = p.attrs;
  const Index in = p.group_in(), kh = row / in / p.kw, kw = row / in % p.kw, ic = row % in;
  const Index down = kh * a.dilation_h;
  if (pass.source == Source::planes) {
    const Index at = (kw * p.c + ic) * pass.plane + (down % a.stride_h * pass.plane_rows + down / a.stride_h) * p.ow;
    for (Index n = 0; n < images; ++n) slots[n] = source + n * pass.image + at;
    return;
  }
  const float* const corner = source + (down * pass.width + kw * a.dilation_w) * p.c + ic;
  for (Index n = 0; n < images; ++n) {
    for (Index oh = 0; oh < p.oh; ++oh) *slots++ = corner + n * pass.image + oh * a.stride_h * pass.width * p.c;
  }
}

// Adds the chunks [begin, end) to dw. `source` holds the images from chunk `begin` on, `packed` these chunks' dy.
void multiply_chunks(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, Index begin, Index end,
                     const float* source, const float* packed, const float* zeros, float* dw) noexcept {
  const Conv2dAttrs& at = p.attrs;
  const bool planes = pass.source == Source::planes;
  const GroupStep step{at.groups, planes ? p.group_in() * pass.plane : p.group_in(), p.group_out(), pass.packed_step};
  const Index work = (end - begin) * pass.images * p.oh * (p.ow * p.oc / 16 + 2);
  // One row of the product is one row of dw: (kh, kw, ic), with ic counted inside its group.
  context.parallel_for(p.kh * p.kw * p.group_in(), work, [&](Index first, Index last, int thread) {
    for (Index chunk = begin; chunk < end; ++chunk) {
      const Index images = std::min(pass.images, p.n - chunk * pass.images);
      simd::GemmRows product;
      product.n = p.group_out();
      product.segments = planes ? images : images * p.oh;
      product.segment_length = planes ? p.oh * p.ow : p.ow;
      product.a_stride = planes ? 1 : at.stride_w * p.c;
      product.packed_b = packed + (chunk - begin) * at.groups * pass.packed_step;
      product.packed_k = images * p.oh * p.ow;
      // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
      product.accumulate = chunk == 0 ? simd::Accumulate::overwrite : simd::Accumulate::add;
      product.bias = chunk == 0 ? zeros : nullptr;
      RowBatch batch(context.kernels(), product, step, false, context.thread_scratch(thread));
      for (Index row = first; row < last; ++row) {
        const float** const slots = batch.add(1, dw + row * p.oc, 0).slots;
        fill_row(p, pass, row, images, source + (chunk - begin) * pass.images * pass.image, slots);
      }
      batch.flush();
    }
  });
}

}  // namespace

Index conv2d_grad_weight_images(const Conv2dProblem& p) noexcept { return std::max<Index>(1, 512 / (p.oh * p.ow)); }

ScratchSize conv2d_grad_weight_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_weight_in_lanes(context, p)) return grad_weight_lanes_scratch(context, p);
  if (grad_weight_by_columns(context, p)) return grad_weight_columns_scratch(context, p);
  const GradWeightPass pass = grad_weight_pass(context, p);
  const Index images = std::min(pass.pass * pass.images, p.n);
  return {zero_bytes(p) + pass_packed_bytes(p, pass) + (pass.source == Source::in_place ? 0 : float_bytes(images * pass.image)),
          row_batch_bytes(pass.images * p.oh, simd::Accumulate::add)};
}

void run_conv2d_grad_weight(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  if (grad_weight_in_lanes(context, p)) return run_grad_weight_lanes(context, p, x, dy, dw);
  if (grad_weight_by_columns(context, p)) return run_grad_weight_columns(context, p, x, dy, dw);
  if (p.n == 0) std::fill_n(dw, p.kh * p.kw * p.group_in() * p.oc, 0.0f);
  if (p.n == 0 || p.oc == 0 || p.c == 0) return;
  const GradWeightPass pass = grad_weight_pass(context, p);
  float* const zeros = reinterpret_cast<float*>(context.shared_scratch());
  float* const packed = reinterpret_cast<float*>(context.shared_scratch() + zero_bytes(p));
  float* const copies = reinterpret_cast<float*>(context.shared_scratch() + zero_bytes(p) + pass_packed_bytes(p, pass));
  std::fill_n(zeros, p.oc, 0.0f);
  const Index pixels = p.oh * p.ow;

  for (Index begin = 0; begin < pass.chunks; begin += pass.pass) {
    const Index end = std::min(begin + pass.pass, pass.chunks);
    const Index first_image = begin * pass.images, last_image = std::min(end * pass.images, p.n);
    context.parallel_for((end - begin) * p.attrs.groups, pass.packed_step, [&](Index first, Index last, int) {
      for (Index item = first; item < last; ++item) {
        const Index image = (begin + item / p.attrs.groups) * pass.images, group = item % p.attrs.groups;
        const Index k = std::min(pass.images, p.n - image) * pixels;
        context.kernels().pack_b(k, p.group_out(), dy + image * pixels * p.oc + group * p.group_out(), p.oc, 1,
                                 packed + item * pass.packed_step);
      }
    });
    const bool copied = pass.source != Source::in_place;
    if (copied) copy_images(context, p, pass, x, first_image, last_image, copies);
    const float* const source = copied ? copies : x + first_image * p.h * p.w * p.c;
    multiply_chunks(context, p, pass, begin, end, source, packed, zeros, dw);
  }
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
