// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's filters: one matrix product for each chunk of images.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_chunks.hpp"
#include "conv2d_grad_weight_columns.hpp"
#include "conv2d_grad_weight_lanes.hpp"
#include "conv2d_grad_weight_pixels.hpp"
#include "conv2d_grad_weight_planes.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// How the rows of the product, x under one tap and channel for all pixels of a chunk, are read.
enum class Source : unsigned char {
  in_place,  // from x itself, a channel's pixels C floats apart
  padded,    // likewise, from a copy with the padding around it
  blocks,    // from a copy by blocks of channels, in which the pixels of a row of the product follow one another
};

// Channels: a cache line of floats. In blocks all pixels of an image are one run, and a run costs 32 cycles beside its fma
// (AVX-512): 784 pixels went from 0.91 of the peak in 28 runs to 0.99 in one. A copy by channels read no faster.
constexpr Index kBlock = 16;

// What is packed, copied and multiplied at a time: chunks of images, or a band of the output rows of a chunk with one large
// image.
struct GradWeightPass {
  Index images;       // in a chunk
  Index chunks;       // in the whole batch
  Index pass;         // chunks at a time
  Index band;         // output rows at a time; all of them unless a chunk is one image
  Index packed_step;  // floats, of one group of one chunk
  Source source;
  Index height, width;  // of the padded images
  Index phases, rows;   // blocks: every stride_h-th image row belongs to a phase, of which the taps see so many rows
  Index phase, plane;   // blocks: floats from one phase of a chunk to the next, from one block to the next
  Index copy;           // floats from one chunk of the copy to the next
};

// A part of the work of one pass.
struct Part {
  Index begin, end;  // chunks
  Index row, rows;   // of the outputs
};

GradWeightPass grad_weight_pass(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr Index kPassFloats = 1 << 17;  // 512 KiB: what was packed is still in the second-level cache when it is multiplied
  // Of a band: dy and x of an image with more pixels left the second-level cache before they were multiplied. One image
  // 56x56x64 took 0.95 of the time (3x3 taps, 64 filters), 224x224x3 0.90 (7x7 at stride 2, 64 filters); 512 were no better.
  constexpr Index kBandPixels = 1024;
  // Fewer channels fill too little of their blocks, and pay less for reading rows of pixels one by one.
  constexpr Index kFewestChannels = 64;
  const Conv2dAttrs& a = p.attrs;
  GradWeightPass pass{};
  const ImageChunks chunks(p);
  pass.images = chunks.images, pass.chunks = chunks.chunks;
  const Index bands = std::max<Index>(p.oh * p.ow / kBandPixels, 1);
  pass.band = (p.oh + bands - 1) / bands;
  pass.packed_step = packed_b_step(context.kernels(), pass.images * pass.band * p.ow, p.group_out());
  pass.height = padded_height(p);
  pass.width = padded_width(p);
  const bool by_blocks = p.c >= kFewestChannels && (a.groups == 1 || p.group_in() % kBlock == 0);
  pass.source = by_blocks ? Source::blocks : has_padding(a) ? Source::padded : Source::in_place;
  pass.phases = a.dilation_h == 1 ? std::min<Index>(a.stride_h, p.kh) : a.stride_h;
  pass.rows = pass.band + (p.kh - 1) * a.dilation_h / a.stride_h;
  pass.phase = pass.images * pass.rows * p.ow * kBlock;
  pass.plane = pass.phases * pass.phase;
  const Index blocks = (p.c + kBlock - 1) / kBlock;
  pass.copy = by_blocks ? blocks * pass.plane : pass.images * pass.height * pass.width * p.c;
  const Index floats = pass.packed_step * a.groups + (pass.source == Source::in_place ? 0 : pass.copy);
  pass.pass = pass.band < p.oh ? 1 : std::clamp<Index>(kPassFloats / (floats + 1), 1, std::max<Index>(pass.chunks, 1));
  return pass;
}

bool has_bands(const Conv2dProblem& p, const GradWeightPass& pass) noexcept { return pass.band < p.oh; }

// What lies in shared scratch: zeros, the chains of a chunk that is multiplied band by band, packed dy, copied x.
struct Shared {
  Shared(const Conv2dProblem& p, const GradWeightPass& pass, std::byte* memory) noexcept {
    const std::size_t zero_bytes = aligned_up(float_bytes(p.oc));
    const bool keeps = has_bands(p, pass) && pass.chunks > 1;
    const std::size_t chain_bytes = keeps ? aligned_up(float_bytes(p.kh * p.kw * p.group_in() * p.oc)) : 0;
    const std::size_t packed_bytes = float_bytes(pass.pass * p.attrs.groups * pass.packed_step);
    const std::size_t copy_bytes = pass.source == Source::in_place ? 0 : float_bytes(pass.pass * pass.copy);
    bytes = zero_bytes + chain_bytes + packed_bytes + copy_bytes;
    if (memory == nullptr) return;
    zeros = reinterpret_cast<float*>(memory);
    chains = reinterpret_cast<float*>(memory + zero_bytes);
    packed = reinterpret_cast<float*>(memory + zero_bytes + chain_bytes);
    copies = reinterpret_cast<float*>(memory + zero_bytes + chain_bytes + packed_bytes);
  }
  std::size_t bytes = 0;
  float *zeros = nullptr, *chains = nullptr, *packed = nullptr, *copies = nullptr;
};

// Row q of a phase of one image into the chunk's [blocks, phases, images, rows, OW, kBlock]: under tap kw, output column ow
// sees pixel ow * stride_w + kw * dilation_w of padded row q * stride_h + phase. What lies in the padding is +0.
void copy_blocks_row(const Context& context, const Conv2dProblem& p, const GradWeightPass& pass, Index kw, Index phase, Index q,
                     const float* image, float* to) noexcept {
  constexpr Index kStart = 0;
  const Index ih = q * p.attrs.stride_h + phase - p.attrs.pad_top;
  const bool inside = ih >= 0 && ih < p.h;
  simd::RunCopy copy;
  copy.runs = 1, copy.offsets = &kStart;
  copy.x_stride = p.attrs.stride_w * p.c, copy.y_stride = kBlock;
  const Outputs columns(width_axis(p), kw, 0, p.w);
  const Index begin = inside ? columns.begin : p.ow, end = inside ? std::max(columns.end, columns.begin) : p.ow;
  copy.rows = copy.block = end - begin;
  for (Index ic = 0; ic < p.c; ic += kBlock, to += pass.plane) {
    std::fill_n(to, begin * kBlock, 0.0f);
    copy.run = std::min(kBlock, p.c - ic);
    copy.x = image + (ih * p.w + columns.first_pixel) * p.c + ic, copy.y = to + begin * kBlock;
    if (copy.rows > 0) context.kernels().copy_runs(copy);
    std::fill_n(to + end * kBlock, (p.ow - end) * kBlock, 0.0f);
  }
}

// What the part reads of x, under tap kw.
void copy_part(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const Part& part, Index kw, const float* x,
               float* copies) noexcept {
  const Index image = p.h * p.w * p.c, begin = part.begin * pass.images, end = std::min(part.end * pass.images, p.n);
  if (pass.source == Source::padded) {  // all of it, once
    if (part.row > 0) return;
    const Index padded = pass.height * pass.width * p.c;
    return context.parallel_for(end - begin, padded, [&](Index first, Index last, int) {
      for (Index n = first; n < last; ++n) copy_padded_image(p, x + (begin + n) * image, copies + n * padded);
    });
  }
  const Index rows = pass.phases * pass.rows;
  context.parallel_for((end - begin) * rows, p.ow * p.c, [&](Index first, Index last, int) {
    for (Index row = first; row < last; ++row) {
      const Index n = row / rows, phase = row % rows / pass.rows, q = row % pass.rows;
      float* const chunk = copies + n / pass.images * pass.copy;
      copy_blocks_row(context, p, pass, kw, phase, part.row + q, x + (begin + n) * image,
                      chunk + phase * pass.phase + (n % pass.images * pass.rows + q) * p.ow * kBlock);
    }
  });
}

void pack_part(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const Part& part, const float* dy,
               float* packed) noexcept {
  const Index groups = p.attrs.groups;
  context.parallel_for((part.end - part.begin) * groups, pass.packed_step, [&](Index first, Index last, int) {
    for (Index item = first; item < last; ++item) {
      const Index image = (part.begin + item / groups) * pass.images, images = std::min(pass.images, p.n - image);
      context.kernels().pack_b(images * part.rows * p.ow, p.group_out(),
                               dy + (image * p.oh + part.row) * p.ow * p.oc + item % groups * p.group_out(), p.oc, 1,
                               packed + item * pass.packed_step);
    }
  });
}

// Rows of dw with ic, counted inside its group, in [ic, ic + count).
struct WeightRows {
  Index kh, kw, ic, count;
};

// From the row-th on of those that are multiplied at once: all of them, or those of one kw, in an order in which the rows that
// read the same block follow one another.
WeightRows weight_rows(const Conv2dProblem& p, const GradWeightPass& pass, Index kw, Index row) noexcept {
  const Index in = p.group_in();
  if (pass.source != Source::blocks) return {row / in / p.kw, row / in % p.kw, row % in, in - row % in};
  const Index block = std::min(row / (p.kh * kBlock), (in - 1) / kBlock), width = std::min(kBlock, in - block * kBlock);
  const Index rest = row - block * p.kh * kBlock;
  return {rest / width, kw, block * kBlock + rest % width, width - rest % width};
}

// The segments of `count` rows of the product from `rows` on, for a chunk of `images` images. source: where its x is read.
void fill_rows(const Conv2dProblem& p, const GradWeightPass& pass, const Part& part, const WeightRows& rows, Index count,
               Index images, const float* source, const float** slots) noexcept {
  const Conv2dAttrs& a = p.attrs;
  const Index down = rows.kh * a.dilation_h;
  if (pass.source == Source::blocks) {
    const float* const first = source + rows.ic / kBlock * pass.plane + down % a.stride_h * pass.phase +
                               down / a.stride_h * p.ow * kBlock + rows.ic % kBlock;
    const Index segments = p.kh == 1 ? 1 : images;
    for (Index i = 0; i < count; ++i) {
      for (Index n = 0; n < segments; ++n) *slots++ = first + n * pass.rows * p.ow * kBlock + i;
    }
    return;
  }
  const float* const corner = source + ((part.row * a.stride_h + down) * pass.width + rows.kw * a.dilation_w) * p.c + rows.ic;
  for (Index i = 0; i < count; ++i) {
    for (Index n = 0; n < images; ++n) {
      for (Index oh = 0; oh < part.rows; ++oh) *slots++ = corner + (n * pass.height + oh * a.stride_h) * pass.width * p.c + i;
    }
  }
}

// Adds the part to dw; where it is a band of a chunk that is not the first, chains it in shared.chains instead.
void multiply_part(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const Part& part, Index kw,
                   const float* source, const Shared& shared, float* dw) noexcept {
  const Conv2dAttrs& a = p.attrs;
  const bool blocks = pass.source == Source::blocks, joined = blocks && p.kh == 1, banded = has_bands(p, pass);
  const GroupStep step{a.groups, blocks ? p.group_in() / kBlock * pass.plane : p.group_in(), p.group_out(), pass.packed_step};
  const Index work = (part.end - part.begin) * pass.images * part.rows * (p.ow * p.oc / 16 + 2);
  context.parallel_for((blocks ? 1 : p.kw) * p.kh * p.group_in(), work, [&](Index first, Index last, int thread) {
    for (Index chunk = part.begin; chunk < part.end; ++chunk) {
      const Index images = std::min(pass.images, p.n - chunk * pass.images);
      simd::GemmRows product;
      product.n = p.group_out();
      product.segments = joined ? 1 : blocks ? images : images * part.rows;
      product.packed_k = images * part.rows * p.ow;
      product.segment_length = product.packed_k / product.segments;
      product.a_stride = blocks ? kBlock : a.stride_w * p.c;
      product.packed_b = shared.packed + (chunk - part.begin) * a.groups * pass.packed_step;
      // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
      product.accumulate = part.row > 0           ? simd::Accumulate::chain
                           : chunk == 0 || banded ? simd::Accumulate::overwrite
                                                  : simd::Accumulate::add;
      product.bias = chunk == 0 && part.row + part.rows == p.oh ? shared.zeros : nullptr;
      RowBatch batch(context.kernels(), product, step, false, context.thread_scratch(thread));
      for (Index row = first; row < last;) {
        WeightRows rows = weight_rows(p, pass, kw, row);
        rows.count = std::min(rows.count, last - row);
        float* const c =
            (banded && chunk > 0 ? shared.chains : dw) + ((rows.kh * p.kw + rows.kw) * p.group_in() + rows.ic) * p.oc;
        const RowBatch::Rows added = batch.add(rows.count, c, p.oc);
        fill_rows(p, pass, part, rows, added.count, images, source + (chunk - part.begin) * pass.copy, added.slots);
        row += added.count;
      }
      batch.flush();
    }
  });
}

}  // namespace

Index conv2d_grad_weight_images(const Conv2dProblem& p) noexcept { return std::max<Index>(1, 512 / (p.oh * p.ow)); }

ScratchSize conv2d_grad_weight_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_weight_in_lanes(context, p)) return grad_weight_lanes_scratch(context, p);
  if (grad_weight_in_planes(context, p)) return grad_weight_planes_scratch(context, p);
  if (grad_weight_by_columns(context, p)) return grad_weight_columns_scratch(context, p);
  if (grad_weight_by_pixels(p)) return grad_weight_pixels_scratch(context, p);
  const GradWeightPass pass = grad_weight_pass(context, p);
  return {Shared(p, pass, nullptr).bytes, row_batch_bytes(pass.images * pass.band, simd::Accumulate::add)};
}

void run_conv2d_grad_weight(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  if (grad_weight_in_lanes(context, p)) return run_grad_weight_lanes(context, p, x, dy, dw);
  if (grad_weight_in_planes(context, p)) return run_grad_weight_planes(context, p, x, dy, dw);
  if (grad_weight_by_columns(context, p)) return run_grad_weight_columns(context, p, x, dy, dw);
  const Index size = p.kh * p.kw * p.group_in() * p.oc;
  if (p.n == 0) std::fill_n(dw, size, 0.0f);
  if (p.n == 0 || p.oc == 0 || p.c == 0) return;
  if (grad_weight_by_pixels(p)) return run_grad_weight_pixels(context, p, x, dy, dw);
  const GradWeightPass pass = grad_weight_pass(context, p);
  const Shared shared(p, pass, context.shared_scratch());
  std::fill_n(shared.zeros, p.oc, 0.0f);

  for (Index begin = 0; begin < pass.chunks; begin += pass.pass) {
    for (Index row = 0; row < p.oh; row += pass.band) {
      const Part part{begin, std::min(begin + pass.pass, pass.chunks), row, std::min(pass.band, p.oh - row)};
      pack_part(context, p, pass, part, dy, shared.packed);
      const bool copied = pass.source != Source::in_place;
      const float* const source = copied ? shared.copies : x + begin * pass.images * p.h * p.w * p.c;
      for (Index kw = 0; kw < (pass.source == Source::blocks ? p.kw : 1); ++kw) {
        if (copied) copy_part(context, p, pass, part, kw, x, shared.copies);
        multiply_part(context, p, pass, part, kw, source, shared, dw);
      }
    }
    if (has_bands(p, pass) && begin > 0) {
      context.parallel_for(size, 1, [&](Index first, Index last, int) {
        context.kernels().add(last - first, dw + first, shared.chains + first, dw + first);
      });
    }
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
