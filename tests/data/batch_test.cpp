// SPDX-License-Identifier: Apache-2.0
// Batches: every sample once an epoch, and gathered pixels against a plain double loop.
#include "data_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>
#include <vitro/core/random.hpp>
#include <vitro/data/batch.hpp>

namespace {

using namespace vitro_test;
using vitro::Index;
using vitro::Shape;

using Order = std::vector<std::uint32_t>;

Order epoch_order(vitro::Sampler& sampler, Index epoch) {
  Order order;
  for (Index step = 0; step < sampler.steps(); ++step) {
    const auto batch = sampler.batch(epoch, step);
    order.insert(order.end(), batch.begin(), batch.end());
  }
  return order;
}

vitro::Dataset drawn_data(Index count, Index height, Index width, Index channels) {
  vitro::Dataset data{"drawn", vitro::ByteTensor({count, height, width, channels}), vitro::LabelTensor({count})};
  const Bytes pixels = pattern(static_cast<std::size_t>(data.images.elements()));
  // No pixel is 0, so that a zero in a batch can only be the filling.
  for (std::size_t i = 0; i < pixels.size(); ++i)
    data.images.span()[i] = std::to_integer<std::uint8_t>(pixels[i] | std::byte{1});
  for (Index i = 0; i < count; ++i) data.labels.data()[i] = static_cast<std::int32_t>((i * 7 + 3) % 10);
  return data;
}

struct Batch {
  vitro::ByteTensor images;
  vitro::LabelTensor labels;
};

Batch gather(const vitro::Dataset& data, const Order& samples, const vitro::RandomShift& shift) {
  const auto count = static_cast<Index>(samples.size());
  Batch batch{vitro::ByteTensor(data.images.shape().with(0, count)), vitro::LabelTensor({count})};
  for (std::uint8_t& pixel : batch.images.span()) pixel = 0xee;  // whatever the caller's memory held before
  vitro::gather_batch(data, samples, shift, batch.images, batch.labels);
  return batch;
}

// Pixel (y, x, c) of image n, 0 outside.
int pixel_or_zero(const vitro::Dataset& data, Index n, Index y, Index x, Index c) {
  const Shape& shape = data.images.shape();
  if (y < 0 || y >= shape[1] || x < 0 || x >= shape[2]) return 0;
  return data.images.view()(n, y, x, c);
}

bool is_shifted_by(const Batch& batch, Index b, const vitro::Dataset& data, Index sample, Index dy, Index dx) {
  const Shape& shape = data.images.shape();
  for (Index y = 0; y < shape[1]; ++y) {
    for (Index x = 0; x < shape[2]; ++x) {
      for (Index c = 0; c < shape[3]; ++c) {
        if (batch.images.view()(b, y, x, c) != pixel_or_zero(data, sample, y - dy, x - dx, c)) return false;
      }
    }
  }
  return true;
}

}  // namespace

TEST_CASE("an epoch shows every sample once, the remainder in the last batch") {
  vitro::Sampler sampler(1003, 64, 5);
  CHECK(sampler.steps() == 16);
  CHECK(sampler.batch(0, 0).size() == 64);
  CHECK(sampler.batch(0, 15).size() == 43);
  const Order order = epoch_order(sampler, 0);
  CHECK(order.size() == 1003);
  const std::set<std::uint32_t> distinct(order.begin(), order.end());
  CHECK(distinct.size() == 1003);
  CHECK(*distinct.rbegin() == 1002);
}

TEST_CASE("batches that divide the samples leave no remainder, and a batch may exceed them") {
  CHECK(vitro::Sampler(128, 64, 5).steps() == 2);
  CHECK(vitro::Sampler(1, 1, 5).steps() == 1);
  vitro::Sampler large(10, 64, 5);
  CHECK(large.steps() == 1);
  CHECK(large.batch(3, 0).size() == 10);
}

TEST_CASE("the order follows from seed and epoch alone") {
  vitro::Sampler a(500, 32, 7);
  vitro::Sampler b(500, 50, 7);
  const Order third = epoch_order(a, 3);
  const Order second = epoch_order(a, 2);  // backwards
  CHECK(epoch_order(b, 3) == third);
  CHECK(second != third);
  vitro::Sampler other(500, 32, 8);
  CHECK(epoch_order(other, 3) != third);
  CHECK(vitro::permutation(500, vitro::Philox(7, vitro::kShuffleStream + 3)) == third);
}

TEST_CASE("a batch holds the samples asked for, in their order, repeated ones too") {
  const vitro::Dataset data = drawn_data(9, 3, 4, 2);
  const Order samples = {8, 0, 3, 3, 5};
  const Batch batch = gather(data, samples, {});
  for (Index b = 0; b < 5; ++b) {
    const auto sample = static_cast<Index>(samples[static_cast<std::size_t>(b)]);
    CHECK(is_shifted_by(batch, b, data, sample, 0, 0));
    CHECK(batch.labels.view()(b) == data.labels.view()(sample));
  }
}

TEST_CASE("an image is shifted by the numbers of its sample, and zeros come in") {
  for (const Index channels : {1, 3}) {
    const vitro::Dataset data = drawn_data(400, 5, 7, channels);
    Order samples(400);
    for (std::uint32_t i = 0; i < 400; ++i) samples[i] = 399 - i;
    for (const int pixels : {1, 2, 6, 255}) {
      CAPTURE(channels, pixels);
      const Batch batch = gather(data, samples, {pixels, 11, 4});
      const vitro::Philox random(11, vitro::kShiftStream + 4);
      for (Index b = 0; b < 400; ++b) {
        const std::uint64_t sample = samples[static_cast<std::size_t>(b)];
        // The definition, worked out in 64 bits: the high half of number * (2 * pixels + 1).
        const Index dy =
            static_cast<Index>(std::uint64_t{random.bits(4 * sample)} * static_cast<unsigned>(2 * pixels + 1) >> 32) - pixels;
        const Index dx =
            static_cast<Index>(std::uint64_t{random.bits(4 * sample + 1)} * static_cast<unsigned>(2 * pixels + 1) >> 32) -
            pixels;
        REQUIRE(is_shifted_by(batch, b, data, static_cast<Index>(sample), dy, dx));
      }
    }
  }
}

TEST_CASE("all shifts in the range occur, about equally often") {
  const vitro::Dataset data = drawn_data(5000, 9, 9, 1);
  Order samples(5000);
  for (std::uint32_t i = 0; i < 5000; ++i) samples[i] = i;
  const Batch batch = gather(data, samples, {2, 3, 0});
  int counts[5][5] = {};
  for (Index b = 0; b < 5000; ++b) {
    int matches = 0;
    for (Index dy = -2; dy <= 2; ++dy) {
      for (Index dx = -2; dx <= 2; ++dx) {
        if (!is_shifted_by(batch, b, data, b, dy, dx)) continue;
        ++matches;
        ++counts[dy + 2][dx + 2];
      }
    }
    REQUIRE(matches == 1);
  }
  // 200 expected in each of 25 cells; 5 standard deviations are 69.
  for (const auto& row : counts) {
    for (const int count : row) CHECK((count > 131 && count < 269));
  }
}

TEST_CASE("a shift does not depend on the batch around it, but on seed and epoch") {
  const vitro::Dataset data = drawn_data(50, 8, 8, 1);
  const Batch alone = gather(data, {17}, {3, 1, 2});
  const Batch among = gather(data, {4, 17, 30}, {3, 1, 2});
  const std::size_t image = 64;
  CHECK(std::equal(alone.images.data(), alone.images.data() + image, among.images.data() + image));
  Order all(50);
  for (std::uint32_t i = 0; i < 50; ++i) all[i] = i;
  const auto pixels = [&](const vitro::RandomShift& shift) {
    const Batch batch = gather(data, all, shift);
    return std::vector<std::uint8_t>(batch.images.span().begin(), batch.images.span().end());
  };
  CHECK(pixels({3, 1, 2}) == pixels({3, 1, 2}));
  CHECK(pixels({3, 1, 2}) != pixels({3, 1, 3}));
  CHECK(pixels({3, 1, 2}) != pixels({3, 2, 2}));
}

TEST_CASE("an empty batch is legal") {
  const vitro::Dataset data = drawn_data(3, 2, 2, 1);
  CHECK(gather(data, {}, {1, 0, 0}).images.elements() == 0);
}

#if defined(__cpp_exceptions)
TEST_CASE("what a sampler and a gather cannot do is refused") {
  CHECK_THROWS_AS(vitro::Sampler(0, 64, 1), vitro::Error);
  CHECK_THROWS_AS(vitro::Sampler(10, 0, 1), vitro::Error);
  CHECK_THROWS_AS(vitro::Sampler(Index{1} << 32, 1, 1), vitro::Error);
  vitro::Sampler sampler(10, 4, 1);
  CHECK_THROWS_AS(sampler.batch(0, 3), vitro::Error);
  CHECK_THROWS_AS(sampler.batch(0, -1), vitro::Error);
  CHECK_THROWS_AS(sampler.batch(-1, 0), vitro::Error);
  CHECK_THROWS_AS(sampler.batch(Index{1} << 32, 0), vitro::Error);

  const vitro::Dataset data = drawn_data(3, 2, 2, 1);
  CHECK_THROWS_AS(gather(data, {3}, {}), vitro::Error);
  CHECK_THROWS_AS(gather(data, {0}, {-1, 0, 0}), vitro::Error);
  CHECK_THROWS_AS(gather(data, {0}, {256, 0, 0}), vitro::Error);
  CHECK_THROWS_AS(gather(data, {0}, {1, 0, -1}), vitro::Error);
  const Order one = {0};
  vitro::ByteTensor images({1, 2, 2, 1});
  vitro::ByteTensor wide({1, 2, 4, 1});
  vitro::LabelTensor labels({1});
  vitro::LabelTensor two({2});
  CHECK_THROWS_AS(vitro::gather_batch(data, one, {}, wide, labels), vitro::Error);
  CHECK_THROWS_AS(vitro::gather_batch(data, one, {}, images, two), vitro::Error);
  CHECK_THROWS_AS(vitro::gather_batch(data, one, {}, wide.view().slice(2, 0, 4, 2), labels), vitro::Error);
  CHECK_THROWS_AS(vitro::gather_batch({}, {}, {}, images, labels), vitro::Error);
}
#endif
