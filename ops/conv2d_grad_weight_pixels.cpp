// SPDX-License-Identifier: Apache-2.0
// The gradient of filters of one tap and few input channels, with dy as it lies.
#include "conv2d_grad_weight_pixels.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

constexpr Index kLine = 16;     // floats of a cache line
constexpr Index kColumns = 64;  // of a product: a panel of the widest table, for which it does not pack x either

// Sizes in floats, but for the counts.
struct Pixels : ImageChunks {
  explicit Pixels(const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        copied(p.attrs.stride_h * p.attrs.stride_w > 1 || p.c % (4 * kLine) == 0),
        pitch(copied ? ((p.c + kLine - 1) / kLine | 1) * kLine : p.c),
        chunk(copied ? images * p.oh * p.ow * pitch : 0) {}

  // Pixels that lie a multiple of four cache lines apart fall into few sets of the first-level cache.
  bool copied;
  Index pitch;  // from one pixel that the tap sees to the next
  Index chunk;  // of a chunk's copy
};

}  // namespace

bool grad_weight_by_pixels(const Conv2dProblem& p) noexcept {
  // Packing dy pays for itself in more rows than that, and in fewer the longer the chains are. Time over that of the other way
  // (AVX-512): 28x28 pixels of 64 channels to 128 0.85, 14x14 of 128 to 256 0.89; 7x7 of 256 to 512 0.96, but of ten
  // images 1.03.
  constexpr Index kMostRows = 128, kMostRowsOfFew = 256, kFewPixels = 128;
  const Index pixels = ImageChunks(p).images * p.oh * p.ow;
  const Index most = pixels < kFewPixels ? kMostRowsOfFew : kMostRows;
  return p.kh * p.kw == 1 && p.attrs.groups == 1 && !has_padding(p.attrs) && p.c <= most;
}

ScratchSize grad_weight_pixels_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  const Pixels pixels(p);
  const Index k = pixels.images * p.oh * p.ow;
  // The last product may have fewer columns than the others, and few columns may need more.
  const Index gemm = std::max(context.kernels().gemm_scratch(p.c, std::min(kColumns, p.oc), k),
                              context.kernels().gemm_scratch(p.c, p.oc % kColumns, k));
  return {aligned_up(float_bytes(p.oc)) + float_bytes(pixels.chunk), float_bytes(gemm)};
}

// What the tap sees of output rows [first, last) of the images from x on, rows of all images counted through.
void copy_pixels(const simd::KernelTable& kernels, const Conv2dProblem& p, const Pixels& pixels, Index first, Index last,
                 const float* x, float* copies) noexcept {
  constexpr Index kStart = 0;
  simd::RunCopy copy;
  copy.runs = 1, copy.run = p.c, copy.offsets = &kStart;
  copy.block = p.ow, copy.x_stride = p.attrs.stride_w * p.c, copy.x_block_stride = p.attrs.stride_h * p.w * p.c;
  copy.y_stride = pixels.pitch;
  while (first < last) {
    const Index n = first / p.oh, oh = first % p.oh, rows = std::min(p.oh - oh, last - first);
    copy.rows = rows * p.ow;
    copy.x = x + n * p.h * p.w * p.c + oh * copy.x_block_stride;
    copy.y = copies + first * p.ow * pixels.pitch;
    kernels.copy_runs(copy);
    first += rows;
  }
}

void run_grad_weight_pixels(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Pixels pixels(p);
  const simd::KernelTable& kernels = context.kernels();
  float* const zeros = reinterpret_cast<float*>(context.shared_scratch());
  float* const copies = reinterpret_cast<float*>(context.shared_scratch() + aligned_up(float_bytes(p.oc)));
  std::fill_n(zeros, p.oc, 0.0f);
  const Index image = p.h * p.w * p.c, outputs = p.oh * p.ow;
  for (Index chunk = 0; chunk < pixels.chunks; ++chunk) {
    const Index n = chunk * pixels.images, images = std::min(pixels.images, p.n - n);
    if (pixels.copied) {
      context.parallel_for(images * p.oh, p.ow * p.c, [&](Index first, Index last, int) {
        copy_pixels(kernels, p, pixels, first, last, x + n * image, copies);
      });
    }
    const float* const seen = pixels.copied ? copies : x + n * image;
    context.parallel_for(p.c, images * outputs * p.oc / 16, [&](Index first, Index last, int thread) {
      simd::Gemm product;
      product.m = last - first, product.k = images * outputs;
      product.a = seen + first, product.a_row_stride = 1, product.a_column_stride = pixels.pitch;
      product.b_row_stride = p.oc, product.b_column_stride = 1;
      product.c_stride = p.oc;
      // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
      product.accumulate = chunk == 0 ? simd::Accumulate::overwrite : simd::Accumulate::add;
      product.epilogue.bias = chunk == 0 ? zeros : nullptr;
      product.scratch = reinterpret_cast<float*>(context.thread_scratch(thread));
      for (Index column = 0; column < p.oc; column += kColumns) {
        product.n = std::min(kColumns, p.oc - column);
        product.b = dy + n * outputs * p.oc + column;
        product.c = dw + first * p.oc + column;
        kernels.gemm(product);
      }
    });
  }
}

}  // namespace vitro::ops
