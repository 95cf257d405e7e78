// SPDX-License-Identifier: Apache-2.0
// The order of samples, and the copying of their rows.
#include "batch.hpp"

#include "../core/random.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace vitro {
namespace {

constexpr std::int64_t kMaxCount = 0xffffffff;  // counts and epochs are 32-bit parts of Philox' counter

void check_arguments(const Dataset& data, std::span<const std::uint32_t> samples, const RandomShift& shift,
                     const BasicView<std::uint8_t>& images, const BasicView<std::int32_t>& labels) {
  if (data.images.shape().rank() != 4 || data.labels.elements() != data.size()) {
    fail(ErrorCode::shape_mismatch, "gather_batch needs a data set of images [N, H, W, C] and labels [N], got " +
                                        to_string(data.images.shape()) + " and " + to_string(data.labels.shape()));
  }
  const auto count = static_cast<Index>(samples.size());
  const Shape batch = data.images.shape().with(0, count);
  if (images.shape() != batch || !images.is_contiguous() || labels.shape() != Shape({count}) || !labels.is_contiguous()) {
    fail(ErrorCode::shape_mismatch, "gather_batch needs contiguous images " + to_string(batch) + " and labels " +
                                        to_string(Shape({count})) + ", got " + to_string(images.shape()) + " and " +
                                        to_string(labels.shape()));
  }
  if (shift.pixels < 0 || shift.pixels > 255 || shift.epoch < 0 || shift.epoch > kMaxCount) {
    fail(ErrorCode::invalid_argument, "gather_batch shifts by 0 to 255 pixels in epochs 0 to 2^32 - 1, got " +
                                          std::to_string(shift.pixels) + " pixels in epoch " + std::to_string(shift.epoch));
  }
  for (const std::uint32_t sample : samples) {
    if (sample >= static_cast<std::uint64_t>(data.size())) {
      fail(ErrorCode::invalid_argument,
           "gather_batch was asked for sample " + std::to_string(sample) + " of a data set of " + std::to_string(data.size()));
    }
  }
}

// One image [height, row] (row = width * channels bytes), dy rows down and dx bytes to the right.
void copy_shifted(const std::uint8_t* from, std::uint8_t* to, Index height, Index row, Index dy, Index dx) noexcept {
  const Index kept = std::max<Index>(row - std::abs(dx), 0);
  for (Index y = 0; y < height; ++y, to += row) {
    std::fill_n(to, row, std::uint8_t{0});
    if (kept == 0 || y - dy < 0 || y - dy >= height) continue;
    const std::uint8_t* source = from + (y - dy) * row;
    std::copy_n(source + std::max<Index>(-dx, 0), kept, to + std::max<Index>(dx, 0));
  }
}

}  // namespace

Sampler::Sampler(Index samples, Index batch, std::uint64_t seed) : samples_(samples), batch_(batch), seed_(seed) {
  if (samples < 1 || samples > kMaxCount || batch < 1) {
    fail(ErrorCode::invalid_argument, "a Sampler needs 1 to 2^32 - 1 samples and batches of 1 or more, got " +
                                          std::to_string(samples) + " samples in batches of " + std::to_string(batch));
  }
}

std::span<const std::uint32_t> Sampler::batch(Index epoch, Index step) {
  if (epoch < 0 || epoch > kMaxCount || step < 0 || step >= steps()) {
    fail(ErrorCode::invalid_argument, "a Sampler of " + std::to_string(steps()) + " steps was asked for step " +
                                          std::to_string(step) + " of epoch " + std::to_string(epoch));
  }
  if (epoch != epoch_) {
    order_.resize(static_cast<std::size_t>(samples_));
    fill_permutation(order_, Philox(seed_, kShuffleStream + static_cast<std::uint64_t>(epoch)));
    epoch_ = epoch;
  }
  const Index begin = step * batch_;
  return std::span<const std::uint32_t>(order_).subspan(static_cast<std::size_t>(begin),
                                                        static_cast<std::size_t>(std::min(batch_, samples_ - begin)));
}

void gather_batch(const Dataset& data, std::span<const std::uint32_t> samples, const RandomShift& shift,
                  BasicView<std::uint8_t> images, BasicView<std::int32_t> labels) {
  check_arguments(data, samples, shift, images, labels);
  const Philox random(shift.seed, kShiftStream + static_cast<std::uint64_t>(shift.epoch));
  const auto choices = static_cast<std::uint32_t>(2 * shift.pixels + 1);
  const Shape& shape = data.images.shape();
  const Index channels = shape[3];
  const Index row = shape[2] * channels;
  const Index image = shape[1] * row;
  std::uint8_t* to = images.data();
  for (std::size_t b = 0; b < samples.size(); ++b, to += image) {
    const std::uint8_t* from = data.images.data() + static_cast<Index>(samples[b]) * image;
    if (shift.pixels == 0) {
      std::copy_n(from, image, to);
    } else {
      const std::uint64_t draw = 4 * std::uint64_t{samples[b]};
      const Index dy = static_cast<Index>(random.below(draw, choices)) - shift.pixels;
      const Index dx = static_cast<Index>(random.below(draw + 1, choices)) - shift.pixels;
      copy_shifted(from, to, shape[1], row, dy, dx * channels);
    }
    labels.data()[b] = data.labels.data()[samples[b]];
  }
}

}  // namespace vitro
