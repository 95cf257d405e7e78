// SPDX-License-Identifier: Apache-2.0
// Gradient of the convolution's filters: one matrix product for each chunk of images.
#include "checks.hpp"
#include "conv2d.hpp"
#include "conv2d_grad_weight_columns.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// The images whose dy is packed (and whose padded x is copied) at a time, to be multiplied at once.
struct GradWeightPass {
  Index images;         // in a chunk
  Index chunks;         // in the whole batch
  Index pass;           // chunks in a pass
  Index packed_step;    // floats, of one group of one chunk
  bool copy;            // x is copied with its padding
  Index height, width;  // of the (padded) source images
};

GradWeightPass grad_weight_pass(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr Index kPassFloats = 1 << 17;  // 512 KiB: what was packed is still in the second-level cache when it is multiplied
  const Conv2dAttrs& a = p.attrs;
  GradWeightPass pass{};
  pass.images = std::clamp<Index>(conv2d_grad_weight_images(p), 1, std::max<Index>(p.n, 1));
  pass.chunks = (p.n + pass.images - 1) / pass.images;
  pass.packed_step = packed_b_step(context.kernels(), pass.images * p.oh * p.ow, p.group_out());
  pass.copy = has_padding(a);
  pass.height = padded_height(p);
  pass.width = padded_width(p);
  const Index copied = pass.copy ? pass.images * pass.height * pass.width * p.c : 0;
  pass.pass = std::clamp<Index>(kPassFloats / (pass.packed_step * a.groups + copied + 1), 1, std::max<Index>(pass.chunks, 1));
  return pass;
}

std::size_t pass_packed_bytes(const Conv2dProblem& p, const GradWeightPass& pass) noexcept {
  return float_bytes(pass.pass * p.attrs.groups * pass.packed_step);
}

// Images [begin, end) of x into `copies`, each with its zeros around it.
void copy_padded(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, const float* x, Index begin, Index end,
                 float* copies) noexcept {
  const Index image = pass.height * pass.width * p.c;
  context.parallel_for(end - begin, image, [&](Index first, Index last, int) {
    for (Index n = first; n < last; ++n) copy_padded_image(p, x + (begin + n) * p.h * p.w * p.c, copies + n * image);
  });
}

// Adds the chunks [begin, end) to dw. `source` holds the (padded) images from chunk `begin` on, `packed` these chunks' dy.
void multiply_chunks(Context& context, const Conv2dProblem& p, const GradWeightPass& pass, Index begin, Index end,
                     const float* source, const float* packed, float* dw) noexcept {
  const Conv2dAttrs& at = p.attrs;
  const Index row_step = at.stride_h * pass.width * p.c, image_step = pass.height * pass.width * p.c;
  const GroupStep step{at.groups, p.group_in(), p.group_out(), pass.packed_step};
  const Index in = p.group_in();
  const Index work = (end - begin) * pass.images * p.oh * (p.ow * p.oc / 16 + 2);
  // One row of the product is one row of dw: (kh, kw, ic), with ic counted inside its group.
  context.parallel_for(p.kh * p.kw * in, work, [&](Index first, Index last, int thread) {
    for (Index chunk = begin; chunk < end; ++chunk) {
      const Index images = std::min(pass.images, p.n - chunk * pass.images);
      simd::GemmRows product;
      product.n = p.group_out();
      product.segments = images * p.oh;
      product.segment_length = p.ow;
      product.a_stride = at.stride_w * p.c;
      product.packed_b = packed + (chunk - begin) * at.groups * pass.packed_step;
      product.packed_k = images * p.oh * p.ow;
      product.accumulate = simd::Accumulate::add;
      RowBatch batch(context.kernels(), product, step, false, context.thread_scratch(thread));
      const float* const chunk_source = source + (chunk - begin) * pass.images * image_step;
      for (Index row = first; row < last; ++row) {
        const Index kh = row / in / p.kw, kw = row / in % p.kw, ic = row % in;
        const float* const corner = chunk_source + (kh * at.dilation_h * pass.width + kw * at.dilation_w) * p.c + ic;
        const float** slots = batch.add(1, dw + row * p.oc, 0).slots;
        for (Index n = 0; n < images; ++n) {
          for (Index oh = 0; oh < p.oh; ++oh) *slots++ = corner + n * image_step + oh * row_step;
        }
      }
      batch.flush();
    }
  });
}

}  // namespace

Index conv2d_grad_weight_images(const Conv2dProblem& p) noexcept { return std::max<Index>(1, 512 / (p.oh * p.ow)); }

ScratchSize conv2d_grad_weight_scratch(const Context& context, const Conv2dProblem& p) {
  if (grad_weight_by_columns(context, p)) return grad_weight_columns_scratch(context, p);
  const GradWeightPass pass = grad_weight_pass(context, p);
  const Index images = std::min(pass.pass * pass.images, p.n);
  return {pass_packed_bytes(p, pass) + (pass.copy ? float_bytes(images * pass.height * pass.width * p.c) : 0),
          row_batch_bytes(pass.images * p.oh, simd::Accumulate::add)};
}

void run_conv2d_grad_weight(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  if (grad_weight_by_columns(context, p)) return run_grad_weight_columns(context, p, x, dy, dw);
  std::fill_n(dw, p.kh * p.kw * p.group_in() * p.oc, 0.0f);
  if (p.n == 0 || p.oc == 0 || p.c == 0) return;
  const GradWeightPass pass = grad_weight_pass(context, p);
  float* const packed = reinterpret_cast<float*>(context.shared_scratch());
  float* const copies = reinterpret_cast<float*>(context.shared_scratch() + pass_packed_bytes(p, pass));
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
    if (pass.copy) copy_padded(context, p, pass, x, first_image, last_image, copies);
    const float* const source = pass.copy ? copies : x + first_image * p.h * p.w * p.c;
    multiply_chunks(context, p, pass, begin, end, source, packed, dw);
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
