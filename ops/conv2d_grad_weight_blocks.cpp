// SPDX-License-Identifier: Apache-2.0
// The gradient of filters of many input channels, from copies of x by blocks of channels.
#include "conv2d_grad_weight_blocks.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

constexpr Index kBlock = 16;  // channels: a cache line of floats

// Rows of the product come by items: those of one block of a group's channels under one kw, for every kh and group. Items are
// numbered with kw running fastest.
struct Blocks : BandedChunks {
  Blocks(const Context& context, const Conv2dProblem& p) noexcept
      : BandedChunks(context, p),
        items((p.group_in() + kBlock - 1) / kBlock * p.kw),
        together(p.kh * kBlock < kFewestRows ? kFewestRows / kBlock : 1),
        phases(p.attrs.dilation_h == 1 ? std::min<Index>(p.attrs.stride_h, p.kh) : p.attrs.stride_h),
        rows(band + (p.kh - 1) * p.attrs.dilation_h / p.attrs.stride_h),
        phase(images * rows * p.ow * kBlock),
        plane(phases * phase),
        kept(bands > 1 && chunks > 1 ? p.kh * p.kw * p.group_in() * p.oc : 0) {}

  std::size_t zero_bytes(const Conv2dProblem& p) const noexcept { return aligned_up(float_bytes(p.oc)); }
  std::size_t packed_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(p.attrs.groups * packed_step); }
  std::size_t copy_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(together * p.attrs.groups * plane); }

  static constexpr Index kFewestRows = 48;  // of a product: fill tiles of 12, 8, 6 and 4 rows
  Index items;
  Index together;      // items that are copied and multiplied at a time
  Index phases, rows;  // every stride_h-th image row belongs to a phase, of which the taps see so many rows
  Index phase, plane;  // floats from one phase of a block to the next, of the whole block
  Index kept;          // floats: the chains of a chunk that is multiplied band by band and added afterwards
};

// Row q of a phase of one image into a block's [phases, images, rows, OW, kBlock]: under tap kw, output column ow sees pixel
// ow * stride_w + kw * dilation_w of padded row q * stride_h + phase. What lies in the padding is +0.
void copy_row(const simd::KernelTable& kernels, const Conv2dProblem& p, Index channel, Index channels, Index kw, Index row,
              const float* image, float* to) noexcept {
  constexpr Index kStart = 0;
  const Index ih = row - p.attrs.pad_top;
  const bool inside = ih >= 0 && ih < p.h;
  const Outputs columns(width_axis(p), kw, 0, p.w);
  const Index begin = inside ? columns.begin : p.ow, end = inside ? std::max(columns.end, columns.begin) : p.ow;
  std::fill_n(to, begin * kBlock, 0.0f);
  std::fill_n(to + end * kBlock, (p.ow - end) * kBlock, 0.0f);
  if (begin == end) return;
  simd::RunCopy copy;
  copy.runs = 1, copy.run = channels, copy.offsets = &kStart;
  copy.rows = copy.block = end - begin;
  copy.x = image + (ih * p.w + columns.first_pixel) * p.c + channel, copy.x_stride = p.attrs.stride_w * p.c;
  copy.y = to + begin * kBlock, copy.y_stride = kBlock;
  kernels.copy_runs(copy);
}

// One thread's rows.
class Rows {
 public:
  Rows(const Context& context, const Conv2dProblem& p, const Blocks& blocks, int thread) noexcept
      : kernels_(context.kernels()), p_(p), blocks_(blocks) {
    std::byte* const scratch = context.thread_scratch(thread);
    packed_ = reinterpret_cast<float*>(scratch);
    copies_ = reinterpret_cast<float*>(scratch + blocks.packed_bytes(p));
    batch_ = scratch + blocks.packed_bytes(p) + blocks.copy_bytes(p);
    zeros_ = reinterpret_cast<const float*>(context.shared_scratch());
    kept_ = reinterpret_cast<float*>(context.shared_scratch() + blocks.zero_bytes(p));
  }

  // Adds the chunk to the rows of items [begin, end) of dw.
  void add_chunk(Index chunk, Index begin, Index end, const float* x, const float* dy, float* dw) noexcept {
    const bool apart = blocks_.kept > 0 && chunk > 0;
    for_each_band(p_, blocks_, chunk, [&](const Band& band) {
      pack_band(kernels_, p_, blocks_, band, dy, packed_);
      for (Index item = begin; item < end; item += blocks_.together) {
        const Index count = std::min(blocks_.together, end - item);
        for (Index i = 0; i < count; ++i) copy_item(item + i, band, x, copies_ + i * p_.attrs.groups * blocks_.plane);
        multiply(item, count, band, chunk, apart ? kept_ : dw);
      }
    });
    if (!apart) return;
    for (Index item = begin; item < end; ++item) {
      for (Index kh = 0; kh < p_.kh; ++kh) {
        const Index at = row_of(item, kh) * p_.oc;
        kernels_.add(channels_of(item) * p_.oc, dw + at, kept_ + at, dw + at);
      }
    }
  }

 private:
  Index channels_of(Index item) const noexcept { return std::min(kBlock, p_.group_in() - item / p_.kw * kBlock); }
  // The first of the item's rows of dw under kh.
  Index row_of(Index item, Index kh) const noexcept {
    return (kh * p_.kw + item % p_.kw) * p_.group_in() + item / p_.kw * kBlock;
  }

  void copy_item(Index item, const Band& band, const float* x, float* to) noexcept {
    const Index image = p_.h * p_.w * p_.c;
    for (Index group = 0; group < p_.attrs.groups; ++group, to += blocks_.plane) {
      const Index channel = group * p_.group_in() + item / p_.kw * kBlock;
      float* row = to;
      for (Index phase = 0; phase < blocks_.phases; ++phase) {
        row = to + phase * blocks_.phase;
        for (Index n = 0; n < band.images; ++n) {
          for (Index q = 0; q < blocks_.rows; ++q, row += p_.ow * kBlock) {
            copy_row(kernels_, p_, channel, channels_of(item), item % p_.kw, (band.row + q) * p_.attrs.stride_h + phase,
                     x + (band.image + n) * image, row);
          }
        }
      }
    }
  }

  void multiply(Index item, Index count, const Band& band, Index chunk, float* target) noexcept {
    const bool joined = p_.kh == 1;  // the pixels of all images are one run
    simd::GemmRows product;
    product.n = p_.group_out();
    product.far_c = is_far(p_.kh * p_.kw * p_.group_in() * p_.oc);
    product.packed_b = packed_;
    product.packed_k = band.images * band.rows * p_.ow;
    product.segments = joined ? 1 : band.images;
    product.segment_length = product.packed_k / product.segments;
    product.a_stride = kBlock;
    // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
    product.accumulate = band.row > 0                      ? simd::Accumulate::chain
                         : chunk == 0 || blocks_.bands > 1 ? simd::Accumulate::overwrite
                                                           : simd::Accumulate::add;
    product.bias = chunk == 0 && band.row + band.rows == p_.oh ? zeros_ : nullptr;
    const GroupStep step{p_.attrs.groups, blocks_.plane, p_.group_out(), blocks_.packed_step};
    RowBatch batch(kernels_, product, step, false, batch_);
    for (Index i = 0; i < count; ++i) {
      for (Index kh = 0; kh < p_.kh; ++kh) {
        const float* const source = copies_ + i * p_.attrs.groups * blocks_.plane + first_pixel(kh);
        const Index channels = channels_of(item + i);
        for (Index c = 0; c < channels;) {
          const RowBatch::Rows rows = batch.add(channels - c, target + (row_of(item + i, kh) + c) * p_.oc, p_.oc);
          const float** slot = rows.slots;
          for (const Index last = c + rows.count; c < last; ++c) {
            for (Index n = 0; n < product.segments; ++n) *slot++ = source + n * blocks_.rows * p_.ow * kBlock + c;
          }
        }
      }
    }
    batch.flush();
  }

  // Of a block's copy, under kh.
  Index first_pixel(Index kh) const noexcept {
    const Index down = kh * p_.attrs.dilation_h;
    return down % p_.attrs.stride_h * blocks_.phase + down / p_.attrs.stride_h * p_.ow * kBlock;
  }

  const simd::KernelTable& kernels_;
  const Conv2dProblem& p_;
  const Blocks& blocks_;
  float *packed_, *copies_;
  std::byte* batch_;
  const float* zeros_;
  float* kept_;
};

}  // namespace

bool grad_weight_by_blocks(const Conv2dProblem& p) noexcept {
  // Fewer channels fill too little of their blocks, and pay less for reading rows of pixels one by one.
  constexpr Index kFewestChannels = 64;
  return p.c >= kFewestChannels && (p.attrs.groups == 1 || p.group_in() % kBlock == 0);
}

ScratchSize grad_weight_blocks_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  const Blocks blocks(context, p);
  return {blocks.zero_bytes(p) + float_bytes(blocks.kept),
          blocks.packed_bytes(p) + blocks.copy_bytes(p) + row_batch_bytes(blocks.images, simd::Accumulate::add)};
}

void run_grad_weight_blocks(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Blocks blocks(context, p);
  std::fill_n(reinterpret_cast<float*>(context.shared_scratch()), p.oc, 0.0f);
  const Index work = p.n * p.oh * p.ow * (p.kh * p.oc + kBlock) * p.attrs.groups;
  context.parallel_for(blocks.items, work, [&](Index begin, Index end, int thread) {
    Rows rows(context, p, blocks, thread);
    for (Index chunk = 0; chunk < blocks.chunks; ++chunk) rows.add_chunk(chunk, begin, end, x, dy, dw);
  });
}

}  // namespace vitro::ops
