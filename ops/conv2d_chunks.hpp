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
    for (Index i = 0; i < count; ++i) context.kernels().add(size, total, memory + i * size, total);
  }
  return total;
}

}  // namespace vitro::ops
