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
  Pixels(const Context& context, const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        outputs(images * p.oh * p.ow),
        size(p.c * p.oc),
        copied(p.attrs.stride_h * p.attrs.stride_w > 1 || p.c % (4 * kLine) == 0),
        pitch(copied ? ((p.c + kLine - 1) / kLine | 1) * kLine : p.c),
        summed(context.threads() > 1 && chunks >= context.threads()),
        pass(summed ? std::min(std::max<Index>(kPassFloats / std::max<Index>(size, 1), context.threads()), chunks) : 0) {}

  std::size_t shared_bytes(const Conv2dProblem& p) const noexcept {
    return summed ? chunk_sum_bytes(pass, size) : float_bytes(p.oc);
  }
  std::size_t copy_bytes() const noexcept { return copied ? aligned_up(float_bytes(outputs * pitch)) : 0; }

  static constexpr Index kPassFloats = 1 << 18;
  Index outputs;  // of a chunk: pixels of dy
  Index size;     // of dw
  // Pixels that lie a multiple of four cache lines apart fall into few sets of the first-level cache.
  bool copied;
  Index pitch;  // from one pixel that the tap sees to the next
  bool summed;  // each chunk by one thread, added afterwards; otherwise each thread has channels of its own
  Index pass;   // summed: chunks whose sums stand in shared scratch at a time
};

// One thread's products.
class Product {
 public:
  Product(const Context& context, const Conv2dProblem& p, const Pixels& pixels, int thread) noexcept
      : kernels_(context.kernels()), p_(p), pixels_(pixels) {
    copy_ = reinterpret_cast<float*>(context.thread_scratch(thread));
    product_.a_row_stride = 1, product_.a_column_stride = pixels.pitch;
    product_.b_row_stride = p.oc, product_.b_column_stride = 1;
    product_.c_stride = p.oc;
    product_.scratch = reinterpret_cast<float*>(context.thread_scratch(thread) + pixels.copy_bytes());
  }

  // Channels [begin, end) of a chunk.
  void run(Index chunk, Index begin, Index end, simd::Accumulate accumulate, const float* bias, const float* x, const float* dy,
           float* target) noexcept {
    const Index image = chunk * pixels_.images, images = std::min(pixels_.images, p_.n - image);
    x += image * p_.h * p_.w * p_.c + begin;
    dy += image * p_.oh * p_.ow * p_.oc;
    product_.m = end - begin, product_.k = images * p_.oh * p_.ow;
    product_.a = pixels_.copied ? copy_ : x;
    if (pixels_.copied) copy(images, end - begin, x);
    product_.accumulate = accumulate;
    product_.epilogue.bias = bias;
    for (Index column = 0; column < p_.oc; column += kColumns) {
      product_.n = std::min(kColumns, p_.oc - column);
      product_.b = dy + column;
      product_.c = target + begin * p_.oc + column;
      kernels_.gemm(product_);
    }
  }

 private:
  // What the tap sees.
  void copy(Index images, Index channels, const float* x) noexcept {
    constexpr Index kStart = 0;
    simd::RunCopy copy;
    copy.runs = 1, copy.run = channels, copy.offsets = &kStart;
    copy.rows = p_.oh * p_.ow, copy.block = p_.ow;
    copy.x_stride = p_.attrs.stride_w * p_.c, copy.x_block_stride = p_.attrs.stride_h * p_.w * p_.c;
    copy.y_stride = pixels_.pitch;
    for (Index n = 0; n < images; ++n) {
      copy.x = x + n * p_.h * p_.w * p_.c;
      copy.y = copy_ + n * copy.rows * pixels_.pitch;
      kernels_.copy_runs(copy);
    }
  }

  const simd::KernelTable& kernels_;
  const Conv2dProblem& p_;
  const Pixels& pixels_;
  float* copy_;
  simd::Gemm product_;
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
  const Pixels pixels(context, p);
  // Where threads share the rows a product has fewer, the last one has fewer columns, and fewer may need more.
  const Index share = p.c / context.threads();
  Index gemm = 0;
  for (const Index m : {p.c, share, share + 1}) {
    for (const Index n : {std::min(kColumns, p.oc), p.oc % kColumns}) {
      gemm = std::max(gemm, context.kernels().gemm_scratch(m, n, pixels.outputs));
    }
  }
  return {pixels.shared_bytes(p), pixels.copy_bytes() + float_bytes(gemm)};
}

void run_grad_weight_pixels(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Pixels pixels(context, p);
  float* const memory = reinterpret_cast<float*>(context.shared_scratch());
  if (!pixels.summed) {
    std::fill_n(memory, p.oc, 0.0f);
    return context.parallel_for(p.c, p.n * p.oh * p.ow * p.oc / 16, [&](Index begin, Index end, int thread) {
      Product product(context, p, pixels, thread);
      // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
      product.run(0, begin, end, simd::Accumulate::overwrite, memory, x, dy, dw);
      for (Index i = 1; i < pixels.chunks; ++i) product.run(i, begin, end, simd::Accumulate::add, nullptr, x, dy, dw);
    });
  }
  const auto add = [&](Index begin, Index end, int thread, float* sums) {
    Product product(context, p, pixels, thread);
    for (Index i = begin; i < end; ++i, sums += pixels.size) {
      product.run(i, 0, p.c, simd::Accumulate::overwrite, nullptr, x, dy, sums);
    }
  };
  const float* const total =
      add_chunks(context, pixels.chunks, pixels.pass, pixels.size, pixels.outputs * pixels.size / 16, memory, add);
  std::copy_n(total, pixels.size, dw);
}

}  // namespace vitro::ops
