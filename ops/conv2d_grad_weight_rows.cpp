// SPDX-License-Identifier: Apache-2.0
// The gradient of filters of few input channels, with x read row by row of pixels.
#include "conv2d_grad_weight_rows.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

struct Sizes : BandedChunks {
  Sizes(const Context& context, const Conv2dProblem& p) noexcept
      : BandedChunks(context, p),
        rows(p.kh * p.kw * p.group_in()),
        height(padded_height(p)),
        width(padded_width(p)),
        copy(has_padding(p.attrs) ? images * height * width * p.c : 0),
        summed(chunks > 1 && (bands > 1 || (context.threads() > 1 && chunks >= context.threads()))),
        pass(summed ? std::min(std::max<Index>(kPassFloats / std::max<Index>(rows * p.oc, 1), context.threads()), chunks) : 0) {
  }

  std::size_t shared_bytes(const Conv2dProblem& p) const noexcept {
    return summed ? chunk_sum_bytes(pass, rows * p.oc) : float_bytes(p.oc);
  }
  std::size_t packed_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(p.attrs.groups * packed_step); }
  std::size_t copy_bytes() const noexcept { return aligned_up(float_bytes(copy)); }

  static constexpr Index kPassFloats = 1 << 18;
  Index rows;           // of the product
  Index height, width;  // of the padded images
  Index copy;           // floats of a chunk's padded images
  bool summed;          // each chunk on its own, added afterwards; otherwise added to dw as they come
  Index pass;           // summed: chunks whose sums stand in shared scratch at a time
};

// How a chunk is added to what is there.
struct Addition {
  simd::Accumulate accumulate = simd::Accumulate::overwrite;
  const float* bias = nullptr;
};

// One thread's products.
class Product {
 public:
  Product(const Context& context, const Conv2dProblem& p, const Sizes& sizes, int thread) noexcept
      : kernels_(context.kernels()), p_(p), sizes_(sizes) {
    std::byte* const scratch = context.thread_scratch(thread);
    packed_ = reinterpret_cast<float*>(scratch);
    copy_ = reinterpret_cast<float*>(scratch + sizes.packed_bytes(p));
    batch_ = scratch + sizes.packed_bytes(p) + sizes.copy_bytes();
  }

  // Rows [begin, end) of a chunk. Requires Accumulate::overwrite where there are several bands.
  void run(Index chunk, Index begin, Index end, const Addition& addition, const float* x, const float* dy,
           float* target) noexcept {
    const Index image = p_.h * p_.w * p_.c, padded = sizes_.height * sizes_.width * p_.c;
    for_each_band(p_, sizes_, chunk, [&](const Band& band) {
      const float* source = x + band.image * image;
      if (sizes_.copy > 0) {
        for (Index n = 0; n < band.images && band.row == 0; ++n) copy_padded_image(p_, source + n * image, copy_ + n * padded);
        source = copy_;
      }
      pack_band(kernels_, p_, sizes_, band, dy, packed_);
      multiply(band, begin, end, addition, source, target);
    });
  }

 private:
  void multiply(const Band& band, Index begin, Index end, const Addition& addition, const float* source,
                float* target) noexcept {
    const Conv2dAttrs& a = p_.attrs;
    const Index in = p_.group_in();
    simd::GemmRows product;
    product.n = p_.group_out();
    product.segments = band.images * band.rows, product.segment_length = p_.ow;
    product.a_stride = a.stride_w * p_.c;
    product.packed_b = packed_, product.packed_k = product.segments * p_.ow;
    product.accumulate = band.row > 0 ? simd::Accumulate::chain : addition.accumulate;
    product.bias = band.row + band.rows == p_.oh ? addition.bias : nullptr;
    RowBatch batch(kernels_, product, {a.groups, in, p_.group_out(), sizes_.packed_step}, false, batch_);
    for (Index row = begin; row < end;) {
      const Index kh = row / in / p_.kw, kw = row / in % p_.kw, ic = row % in;
      const RowBatch::Rows added = batch.add(std::min(in - ic, end - row), target + row * p_.oc, p_.oc);
      const Index corner = ((band.row * a.stride_h + kh * a.dilation_h) * sizes_.width + kw * a.dilation_w) * p_.c + ic;
      const float** slot = added.slots;
      for (Index i = 0; i < added.count; ++i) {
        for (Index n = 0; n < band.images; ++n) {
          const float* const first = source + n * sizes_.height * sizes_.width * p_.c + corner + i;
          for (Index oh = 0; oh < band.rows; ++oh) *slot++ = first + oh * a.stride_h * sizes_.width * p_.c;
        }
      }
      row += added.count;
    }
    batch.flush();
  }

  const simd::KernelTable& kernels_;
  const Conv2dProblem& p_;
  const Sizes& sizes_;
  float *packed_, *copy_;
  std::byte* batch_;
};

void add_to_dw(Context& context, const Conv2dProblem& p, const Sizes& sizes, const float* x, const float* dy,
               float* dw) noexcept {
  float* const zeros = reinterpret_cast<float*>(context.shared_scratch());
  std::fill_n(zeros, p.oc, 0.0f);
  constexpr Index kRows = 12;  // the micro-kernels' rows are its divisors
  context.parallel_for((sizes.rows + kRows - 1) / kRows, p.n * p.oh * p.ow * p.oc, [&](Index begin, Index end, int thread) {
    Product product(context, p, sizes, thread);
    for (Index chunk = 0; chunk < sizes.chunks; ++chunk) {
      // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
      const Addition addition = chunk == 0 ? Addition{.bias = zeros} : Addition{.accumulate = simd::Accumulate::add};
      product.run(chunk, begin * kRows, std::min(end * kRows, sizes.rows), addition, x, dy, dw);
    }
  });
}

}  // namespace

ScratchSize grad_weight_rows_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  const Sizes sizes(context, p);
  return {sizes.shared_bytes(p),
          sizes.packed_bytes(p) + sizes.copy_bytes() + row_batch_bytes(sizes.images * sizes.band, simd::Accumulate::add)};
}

void run_grad_weight_rows(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Sizes sizes(context, p);
  if (!sizes.summed) return add_to_dw(context, p, sizes, x, dy, dw);
  const Index size = sizes.rows * p.oc;
  const auto add = [&](Index begin, Index end, int thread, float* sums) {
    Product product(context, p, sizes, thread);
    for (Index chunk = begin; chunk < end; ++chunk, sums += size) product.run(chunk, 0, sizes.rows, {}, x, dy, sums);
  };
  const float* const total = add_chunks(context, sizes.chunks, sizes.pass, size, sizes.images * p.oh * p.ow * size / 16,
                                        reinterpret_cast<float*>(context.shared_scratch()), add);
  std::copy_n(total, size, dw);
}

}  // namespace vitro::ops
