// SPDX-License-Identifier: Apache-2.0
// Batches for training: which samples a step sees, and their pixels gathered (and, if asked, shifted) into the caller's memory.
//
// Everything random here is a pure function of (seed, epoch, sample) and so does not depend on threads, on the batch size or on
// who asks first. Streams of the Philox generator: kShuffleStream + epoch for the order, kShiftStream + epoch for the shifts.
// Evaluation needs none of this: data.images.view().slice(0, begin, end) is a batch without a copy.
#pragma once

#include "dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace vitro {

inline constexpr std::uint64_t kShuffleStream = 0x73687566ULL << 32;  // "shuf"
inline constexpr std::uint64_t kShiftStream = 0x73686674ULL << 32;    // "shft"

// Cuts a fresh permutation of all samples into batches, epoch after epoch. The last batch of an epoch holds the remainder.
class Sampler {
 public:
  // Fails with invalid_argument unless 1 <= samples < 2^32 and batch >= 1.
  Sampler(Index samples, Index batch, std::uint64_t seed);

  // Batches in an epoch: samples / batch, rounded up.
  Index steps() const noexcept { return (samples_ - 1) / batch_ + 1; }

  // The samples of one batch, valid until the next call. Only the first call allocates. Fails with invalid_argument
  //  unless 0 <= epoch < 2^32 and 0 <= step < steps().
  std::span<const std::uint32_t> batch(Index epoch, Index step);

 private:
  Index samples_;
  Index batch_;
  std::uint64_t seed_;
  Index epoch_ = -1;  // whose order `order_` is
  std::vector<std::uint32_t> order_;
};

// Moves each image by whole numbers of pixels, dy down and dx to the right, drawn independently and evenly from -pixels ..
// pixels; what comes in from outside is 0. The draw of sample i is numbers 4i and 4i + 1 of the stream.
struct RandomShift {
  int pixels = 0;  // 0 .. 255; 0 copies the images as they are
  std::uint64_t seed = 0;
  Index epoch = 0;  // 0 .. 2^32 - 1
};

// images[b] = data.images[samples[b]], shifted; labels[b] = data.labels[samples[b]]. `images` is contiguous, of shape
// [samples.size(), H, W, C] with the data set's H, W, C; `labels` is contiguous, [samples.size()]. Neither overlaps `data`.
// Allocates nothing. Fails with shape_mismatch for other views and with invalid_argument for a sample or a shift out of range.
void gather_batch(const Dataset& data, std::span<const std::uint32_t> samples, const RandomShift& shift,
                  BasicView<std::uint8_t> images, BasicView<std::int32_t> labels);

}  // namespace vitro
