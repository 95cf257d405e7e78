// SPDX-License-Identifier: Apache-2.0
// Internal: the chunks of images that the gradient of a convolution's filters is summed in.
#pragma once

#include "conv2d.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {

struct ImageChunks {
  explicit ImageChunks(const Conv2dProblem& p) noexcept
      : images(std::clamp<Index>(conv2d_grad_weight_images(p), 1, std::max<Index>(p.n, 1))),
        chunks((p.n + images - 1) / images) {}

  Index images, chunks;  // of a chunk (the last one may have fewer), of the batch
};

// Chunks whose output rows are multiplied in bands, dy packed for each. Bands of an image with more pixels left the
// second-level cache before they were multiplied. One image 56x56x64 took 0.95 of the time (3x3 taps, 64 filters), 224x224x3
// 0.90 (7x7 at stride 2, 64 filters); bands of 512 pixels were no better.
struct BandedChunks : ImageChunks {
  BandedChunks(const Context& context, const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        bands(std::max<Index>(p.oh * p.ow / kBandPixels, 1)),
        band((p.oh + bands - 1) / bands),
        packed_step(packed_b_step(context.kernels(), images * band * p.ow, p.group_out())) {}

  Index bands, band;  // of a chunk (several only where it is one image); output rows of one
  Index packed_step;  // floats, of one group

 private:
  static constexpr Index kBandPixels = 1024;
};

// Output rows [row, row + rows) of images [image, image + images).
struct Band {
  Index image, images, row, rows;
};

// body(band) for each band of the chunk, in rising order.
template <class Body>
void for_each_band(const Conv2dProblem& p, const BandedChunks& chunks, Index chunk, const Body& body) noexcept {
  const Index image = chunk * chunks.images, images = std::min(chunks.images, p.n - image);
  for (Index row = 0; row < p.oh; row += chunks.band) body(Band{image, images, row, std::min(chunks.band, p.oh - row)});
}

// dy of the band, group after group.
inline void pack_band(const simd::KernelTable& kernels, const Conv2dProblem& p, const BandedChunks& chunks, const Band& band,
                      const float* dy, float* packed) noexcept {
  const float* const first = dy + (band.image * p.oh + band.row) * p.ow * p.oc;
  for (Index group = 0; group < p.attrs.groups; ++group) {
    pack_b(kernels, band.images * band.rows * p.ow, p.group_out(), first + group * p.group_out(), p.oc, 1,
           packed + group * chunks.packed_step);
  }
}

// Memory of add_chunks(): the sums, `size` floats each, of the chunks that are computed at a time, and their total.
inline std::size_t chunk_sum_bytes(Index pass, Index size) noexcept { return aligned_up(float_bytes((pass + 1) * size)); }

// Adds the sums of all chunks to +0 in rising order and returns the total, which stands in `memory`. body(begin, end, thread,
// sums) computes those of chunks [begin, end), one behind the other; a chunk costs about `work` elementary operations.
template <class Body>
const float* add_chunks(Context& context, Index chunks, Index pass, Index size, Index work, float* memory,
                        const Body& body) noexcept {
  float* const total = memory + pass * size;
  std::fill_n(total, size, 0.0f);
  for (Index first = 0; first < chunks; first += pass) {
    const Index count = std::min(pass, chunks - first);
    context.parallel_for(count, work, [&](Index begin, Index end, int thread) {
      body(first + begin, first + end, thread, memory + begin * size);
    });
    context.parallel_for(size, count, [&](Index begin, Index end, int) {
      for (Index i = 0; i < count; ++i) {
        context.kernels().add(end - begin, total + begin, memory + i * size + begin, total + begin);
      }
    });
  }
  return total;
}

}  // namespace vitro::ops
