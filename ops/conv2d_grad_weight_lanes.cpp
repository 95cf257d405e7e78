// SPDX-License-Identifier: Apache-2.0
// The gradient of few filters, with the chunks of the batch in the lanes of the vectors.
#include "conv2d_grad_weight_lanes.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

using simd::kGemmLanes;

// The speed with all lanes filled, as a share of a product's with many columns, and by what the way with the taps in the lanes
// is slower than such a product because it copies them, in long runs of floats and in short ones. Time of this way over the
// better of the others, 5x5 taps of 64 images 28x28x1: 0.26, 0.45, 0.55, 0.71, 0.82 with 2, 6, 8, 12, 24 output channels
// (AVX-512), 0.29, 0.46, 0.59, 0.74 with 2 to 12 (AVX2). Six channels of 6, 8, 12, 17 images: 1.07, 0.81, 0.50, 0.79 (AVX-512).
// 30x30x3, 3x3 taps, 8 channels of 10, 12, 17, 32 images: 0.99, 0.89, 1.15, 0.71. 14x14x16 (22 chunks), 3x3, 6 channels: 1.14.
constexpr float kSpeed = 0.75f, kSpeedOfEight = 0.92f;  // vectors of 16 lanes and of 8
constexpr float kCopy = 1.5f, kShortCopy = 2.2f;
constexpr Index kShortRun = 8, kFewestLanes = 8;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of a thread's scratch: half of the second-level cache

// Sizes in floats, but for the counts.
struct Lanes : ImageChunks {
  explicit Lanes(const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        taps(p.kh * p.kw * p.c),
        sums(taps * p.oc),
        pass(std::clamp<Index>(kPassFloats / (sums * kGemmLanes), 1, kMostGroups) * kGemmLanes),
        band(std::clamp<Index>(kBandFloats / (p.ow * p.oc * kGemmLanes), 1, p.oh)),
        source(padded_height(p) * padded_width(p) * p.c * kGemmLanes),
        gradient(band * p.ow * p.oc * kGemmLanes) {}

  std::size_t sums_bytes() const noexcept { return aligned_up(float_bytes((std::min(pass, chunks) + 1) * sums)); }

  static constexpr Index kMostGroups = 31;  // sum_rows adds up to 512 rows in one chain: these chunks, and what was there
  static constexpr Index kPassFloats = 1 << 18;
  // 16 KB: stays in the first-level cache beside the rows of x and the chains. 64 images 28x28x1 and 6 filters 5x5 took 110 us,
  // 8 KB 114, 32 KB 117, 64 KB 137, all of dy at once 146.
  static constexpr Index kBandFloats = 1 << 12;
  Index taps, sums;        // rows of dw; dw
  Index pass;              // chunks whose sums stand in shared scratch at a time, a multiple of the lanes
  Index band;              // rows of pixels whose dy is transposed at a time
  Index source, gradient;  // of the lanes' x with its padding, of their dy in a band
};

// What a thread works with, from its scratch.
struct Work {
  Work(const Lanes& lanes, std::byte* memory) noexcept
      : source(reinterpret_cast<float*>(memory)), gradient(source + lanes.source), chains(gradient + lanes.gradient) {}
  static std::size_t bytes(const Lanes& lanes) noexcept {
    return float_bytes(lanes.source + lanes.gradient + lanes.sums * kGemmLanes);
  }
  float* source;    // [padded_height, padded_width, C, lanes]
  float* gradient;  // [band, OW, OC, lanes]
  float* chains;    // [taps, OC, lanes]
};

// Image rows of `count` images that lie `step` floats apart, among their padding.
void transpose_images(const simd::KernelTable& kernels, const Conv2dProblem& p, Index count, const float* x, Index step,
                      float* source) noexcept {
  if (!has_padding(p.attrs)) return kernels.transpose(count, p.h * p.w * p.c, x, step, source, kGemmLanes);
  const Index row = p.w * p.c;
  for (Index ih = 0; ih < p.h; ++ih) {
    const Index pixel = (ih + p.attrs.pad_top) * padded_width(p) + p.attrs.pad_left;
    kernels.transpose(count, row, x + ih * row, step, source + pixel * p.c * kGemmLanes, kGemmLanes);
  }
}

// The chains of `count` chunks from chunk `first` on.
void multiply_group(const simd::KernelTable& kernels, const Conv2dProblem& p, const Lanes& lanes, Index first, Index count,
                    const float* x, const float* dy, const Work& work, simd::GemmLanes& product) noexcept {
  const Index image = p.h * p.w * p.c, pixel_row = p.ow * p.oc, gradient = p.oh * pixel_row;
  product.chain = false;
  for (Index n = first * lanes.images; n < std::min((first + 1) * lanes.images, p.n); ++n) {
    // The batch's last chunk may have fewer images than the others: its chain ends before theirs.
    product.lanes = std::min(count, (p.n - n + lanes.images - 1) / lanes.images);
    transpose_images(kernels, p, product.lanes, x + n * image, lanes.images * image, work.source);
    for (Index oh = 0; oh < p.oh; oh += lanes.band) {
      product.lines = std::min(lanes.band, p.oh - oh);
      kernels.transpose(product.lanes, product.lines * pixel_row, dy + n * gradient + oh * pixel_row, lanes.images * gradient,
                        work.gradient, kGemmLanes);
      product.a = work.source + oh * product.a_line;
      kernels.gemm_lanes(product);
      product.chain = true;
    }
  }
}

}  // namespace

bool grad_weight_in_lanes(const Context& context, const Conv2dProblem& p) noexcept {
  const Index lanes = context.kernels().packed_b_size(1, 1);  // of a vector
  if (p.n == 0 || p.oc == 0 || p.c == 0 || p.attrs.groups != 1 || lanes < kFewestLanes) return false;
  const Lanes sizes(p);
  if (Work::bytes(sizes) > kMostBytes) return false;
  // Of a thread that has as many chunks as any: the lanes that it fills as a share of those that it computes.
  const Index threads = context.threads(), chunks = (sizes.chunks + threads - 1) / threads;
  const Index rounds = ((sizes.chunks + kGemmLanes - 1) / kGemmLanes + threads - 1) / threads;
  const Index computed = std::min(rounds * kGemmLanes, (sizes.chunks + lanes - 1) / lanes * lanes);
  const float filled = static_cast<float>(chunks) / static_cast<float>(computed);
  const bool adjacent = p.attrs.dilation_w == 1 || p.kw == 1;
  const float copy = (adjacent ? p.kw : 1) * p.c < kShortRun ? kShortCopy : kCopy;
  const float speed = filled * (lanes < kGemmLanes ? kSpeedOfEight : kSpeed);
  return speed >= std::max(relative_speed(context.kernels(), p.oc), relative_speed(context.kernels(), sizes.taps) / copy);
}

ScratchSize grad_weight_lanes_scratch(const Context&, const Conv2dProblem& p) noexcept {
  const Lanes lanes(p);
  return {lanes.sums_bytes() + static_cast<std::size_t>(lanes.taps) * sizeof(Index), Work::bytes(lanes)};
}

void run_grad_weight_lanes(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Lanes lanes(p);
  const simd::KernelTable& kernels = context.kernels();
  const Index width = padded_width(p), depth = p.c * kGemmLanes;
  float* const sums = reinterpret_cast<float*>(context.shared_scratch());  // what was summed before, then the chunks' sums
  Index* const a_rows = reinterpret_cast<Index*>(context.shared_scratch() + lanes.sums_bytes());
  for (Index tap = 0; tap < lanes.taps; ++tap) {
    const Index kh = tap / p.c / p.kw, kw = tap / p.c % p.kw;
    a_rows[tap] = (kh * p.attrs.dilation_h * width + kw * p.attrs.dilation_w) * depth + tap % p.c * kGemmLanes;
  }
  simd::GemmLanes product;
  product.rows = lanes.taps, product.columns = p.oc, product.line_length = p.ow;
  product.a_rows = a_rows, product.a_line = p.attrs.stride_h * width * depth, product.a_step = p.attrs.stride_w * depth;

  std::fill_n(dw, lanes.sums, 0.0f);
  for (Index first = 0; first < lanes.chunks; first += lanes.pass) {
    const Index chunks = std::min(lanes.pass, lanes.chunks - first);
    const Index groups = (chunks + kGemmLanes - 1) / kGemmLanes;
    context.parallel_for(groups, lanes.images * p.oh * p.ow * lanes.sums, [&](Index begin, Index end, int thread) {
      const Work work(lanes, context.thread_scratch(thread));
      simd::GemmLanes group_product = product;
      group_product.b = work.gradient, group_product.c = work.chains;
      // The padding, and the lanes that no image fills but the kernel may read.
      const bool gaps = has_padding(p.attrs) || end * kGemmLanes > chunks;
      if (gaps) std::fill_n(work.source, lanes.source + lanes.gradient, 0.0f);
      for (Index group = begin; group < end; ++group) {
        const Index chunk = group * kGemmLanes, count = std::min(kGemmLanes, chunks - chunk);
        multiply_group(kernels, p, lanes, first + chunk, count, x, dy, work, group_product);
        kernels.transpose(lanes.sums, count, work.chains, kGemmLanes, sums + (1 + chunk) * lanes.sums, lanes.sums);
      }
    });
    std::copy_n(dw, lanes.sums, sums);
    kernels.sum_rows(1 + chunks, lanes.sums, sums, lanes.sums, dw);
  }
}

}  // namespace vitro::ops
