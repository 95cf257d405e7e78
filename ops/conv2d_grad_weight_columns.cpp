// SPDX-License-Identifier: Apache-2.0
// The gradient of few filters, with the filters' elements in the lanes of the vectors.
#include "conv2d_grad_weight_columns.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

struct Columns : ImageChunks {
  Columns(const Context& context, const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        taps(p.kh * p.kw * p.c),
        row((taps + 15) / 16 * 16),
        band(std::clamp<Index>(kBandFloats / (p.ow * row), 1, p.oh)),
        pass(std::clamp<Index>(kPassFloats / (taps * p.oc), 1, std::max<Index>(chunks, 1))),
        source(has_padding(p.attrs) ? padded_height(p) * padded_width(p) * p.c : 0),
        standing(p.c == 1 && p.attrs.stride_w == 1 && p.attrs.dilation_w == 1 && p.kh > 1 && p.kw < kShortRun),
        stripe(standing ? padded_width(p) * p.kh : 0),
        gemm(context.kernels().gemm_scratch(p.oc, taps, band * p.ow)) {}

  std::size_t matrix_bytes(const Conv2dProblem& p) const noexcept { return aligned_up(float_bytes(band * p.ow * row)); }
  std::size_t source_bytes() const noexcept { return aligned_up(float_bytes(source)); }
  std::size_t stripe_bytes() const noexcept { return aligned_up(float_bytes(band * stripe)); }
  std::size_t offset_bytes(const Conv2dProblem& p) const noexcept {
    return aligned_up(static_cast<std::size_t>(p.kh * p.kw) * sizeof(Index));
  }
  std::size_t thread_bytes(const Conv2dProblem& p) const noexcept {
    return matrix_bytes(p) + source_bytes() + stripe_bytes() + offset_bytes(p) + float_bytes(gemm);
  }

  static constexpr Index kShortRun = 16;
  static constexpr Index kPassFloats = 1 << 18;
  static constexpr Index kBandFloats = 1 << 12;  // 16 KB: what was copied is multiplied before it leaves the first-level cache
  Index taps, row;                               // columns of the product, floats from one pixel's taps to the next
  Index band;                                    // rows of pixels whose taps are copied at a time
  Index pass;                                    // chunks whose sums stand in shared scratch at a time
  Index source;                                  // floats of a padded image
  // Of one channel, a kernel row is a short run. Its taps stand in the order (kw, kh): a stripe of the image, the kernel rows
  // under one output row as [W, KH], has all taps of a pixel in one run. One image 28x28x1 and six filters 5x5 took 0.74 of the
  // time (AVX-512), but with three channels or every second pixel more than before.
  bool standing;
  Index stripe;  // floats of one
  Index gemm;    // floats
};

// Where the runs of taps that lie next to each other in the (padded) image begin, and how the pixels of its rows are copied.
simd::RunCopy column_copy(const Conv2dProblem& p, const Columns& columns, Index* offsets) noexcept {
  const Conv2dAttrs& at = p.attrs;
  const Index width = padded_width(p);
  if (columns.standing) {
    simd::RunCopy copy;
    offsets[0] = 0;
    copy.block = p.ow;
    copy.runs = 1, copy.run = columns.taps;
    copy.offsets = offsets;
    copy.x_stride = p.kh, copy.x_block_stride = columns.stripe;
    copy.y_stride = columns.row;
    return copy;
  }
  const bool adjacent = at.dilation_w == 1 || p.kw == 1;
  const Index runs = adjacent ? 1 : p.kw;  // of a kernel row
  for (Index r = 0; r < p.kh * runs; ++r) offsets[r] = (r / runs * at.dilation_h * width + r % runs * at.dilation_w) * p.c;
  simd::RunCopy copy;
  copy.block = p.ow;
  copy.runs = p.kh * runs, copy.run = adjacent ? p.kw * p.c : p.c;
  copy.offsets = offsets;
  copy.x_stride = at.stride_w * p.c, copy.x_block_stride = at.stride_h * width * p.c;
  copy.y_stride = columns.row;
  return copy;
}

// sums: [OC, taps], in the order of the taps in memory.
void store_gradient(const simd::KernelTable& kernels, const Conv2dProblem& p, const Columns& columns, const float* sums,
                    float* dw) noexcept {
  if (!columns.standing) return kernels.transpose(p.oc, columns.taps, sums, columns.taps, dw, p.oc);
  for (Index kw = 0; kw < p.kw; ++kw) {
    kernels.transpose(p.oc, p.kh, sums + kw * p.kh, columns.taps, dw + kw * p.oc, p.kw * p.oc);
  }
}

}  // namespace

bool grad_weight_by_columns(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr float kGain = 1.5f;  // what the copy costs
  if (p.n == 0 || p.oc == 0 || p.c == 0 || p.attrs.groups != 1) return false;
  return relative_speed(context.kernels(), p.kh * p.kw * p.c) >= kGain * relative_speed(context.kernels(), p.oc);
}

ScratchSize grad_weight_columns_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  const Columns columns(context, p);
  return {chunk_sum_bytes(columns.pass, columns.taps * p.oc), columns.thread_bytes(p)};
}

void run_grad_weight_columns(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Columns columns(context, p);
  const simd::KernelTable& kernels = context.kernels();
  const Index size = columns.taps * p.oc, pixels = p.oh * p.ow, image = p.h * p.w * p.c;
  const Index width = padded_width(p), line = p.attrs.stride_h * width * p.c;  // of x, from one output row to the next
  float* const memory = reinterpret_cast<float*>(context.shared_scratch());
  const auto add = [&](Index begin, Index end, int thread, float* sums) {  // each [OC, taps]
    std::byte* const scratch = context.thread_scratch(thread);
    float* const matrix = reinterpret_cast<float*>(scratch);
    float* const padded = reinterpret_cast<float*>(scratch + columns.matrix_bytes(p));
    simd::Gemm product;
    std::byte* const behind = scratch + columns.matrix_bytes(p) + columns.source_bytes();
    simd::RunCopy copy = column_copy(p, columns, reinterpret_cast<Index*>(behind));
    copy.y = matrix;
    float* const stripes = reinterpret_cast<float*>(behind + columns.offset_bytes(p));
    product.scratch = reinterpret_cast<float*>(behind + columns.offset_bytes(p) + columns.stripe_bytes());
    product.m = p.oc, product.n = columns.taps;
    product.a_row_stride = 1, product.a_column_stride = p.oc;
    product.b = matrix, product.b_row_stride = columns.row, product.b_column_stride = 1;
    product.c_stride = columns.taps;
    for (Index chunk = begin; chunk < end; ++chunk, sums += size) {
      product.c = sums;
      product.accumulate = simd::Accumulate::overwrite;
      const Index last = std::min((chunk + 1) * columns.images, p.n);
      for (Index n = chunk * columns.images; n < last; ++n) {
        const float* source = x + n * image;
        if (has_padding(p.attrs)) {
          copy_padded_image(p, source, padded);
          source = padded;
        }
        for (Index oh = 0; oh < p.oh; oh += columns.band) {
          const Index count = std::min(columns.band, p.oh - oh);
          copy.rows = count * p.ow;
          for (Index i = 0; columns.standing && i < count; ++i) {
            kernels.transpose(p.kh, width, source + oh * line + i * line, p.attrs.dilation_h * width,
                              stripes + i * columns.stripe, p.kh);
          }
          copy.x = columns.standing ? stripes : source + oh * line;
          kernels.copy_runs(copy);
          product.k = count * p.ow;
          product.a = dy + (n * pixels + oh * p.ow) * p.oc;
          kernels.gemm(product);
          product.accumulate = simd::Accumulate::chain;
        }
      }
    }
  };
  const float* const total =
      add_chunks(context, columns.chunks, columns.pass, size, columns.images * pixels * size / 16, memory, add);
  store_gradient(kernels, p, columns, total, dw);
}

}  // namespace vitro::ops
