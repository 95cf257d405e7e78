// SPDX-License-Identifier: Apache-2.0
// Pooling windows of every variant, bit for bit against the rule for one channel.
#include "kernel_variants.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace vitro_test;

namespace {

// `taps` rows of `channels` floats, each at a guard page of its own.
struct Window {
  std::vector<std::unique_ptr<Guarded<float>>> rows;
  std::vector<const float*> pointers;
  std::vector<std::uint8_t> index;

  Window(Index taps, Index channels, Draw& draw, bool awkward, bool ties) {
    int position = 0;
    for (Index t = 0; t < taps; ++t) {
      rows.push_back(std::make_unique<Guarded<float>>(channels, draw.chance(50)));
      for (Index c = 0; c < channels; ++c) {
        (*rows.back())[c] = awkward ? draw.awkward_number() : draw.number();
        // Few different values, so that ties (and zeros of both signs) are frequent.
        if (ties) (*rows.back())[c] = std::floor(3.0f * draw.number()) * (draw.chance(50) ? 1.0f : -1.0f);
      }
      pointers.push_back(rows.back()->data());
      position += draw.chance(80) ? 1 : 2;  // a tap that padding cut off
      index.push_back(static_cast<std::uint8_t>(std::min(position, 255)));
    }
  }
};

void check_max(const KernelTable& k, Index taps, Index channels, Draw& draw, bool awkward) {
  const Window w(taps, channels, draw, awkward, !awkward);
  std::vector<float> want(static_cast<std::size_t>(channels));
  std::vector<std::uint8_t> want_index(static_cast<std::size_t>(channels));
  for (Index c = 0; c < channels; ++c) {
    float best = w.pointers[0][c];
    std::uint8_t at = w.index[0];
    for (std::size_t t = 1; t < static_cast<std::size_t>(taps); ++t) {
      const float x = w.pointers[t][c];
      if (!(x <= best) && best == best) best = x, at = w.index[t];
    }
    want[static_cast<std::size_t>(c)] = best;
    want_index[static_cast<std::size_t>(c)] = at;
  }
  const Guarded<float> y(channels, draw.chance(50));
  const Guarded<std::uint8_t> argmax(channels, draw.chance(50));
  k.max_pool(taps, channels, w.pointers.data(), w.index.data(), y.data(), argmax.data());
  CAPTURE(taps, channels);
  require_same_bits(y.data(), want.data(), channels);
  REQUIRE(std::equal(want_index.begin(), want_index.end(), argmax.data()));
}

void check_average(const KernelTable& k, Index taps, Index channels, Draw& draw, bool awkward) {
  const Window w(taps, channels, draw, awkward, false);
  const float divisor = static_cast<float>(taps + draw.below(3) + 1);
  std::vector<float> want(static_cast<std::size_t>(channels));
  for (Index c = 0; c < channels; ++c) {
    const float sum = naive_chunks(taps, [&](Index t) { return w.pointers[static_cast<std::size_t>(t)][c]; });
    want[static_cast<std::size_t>(c)] = sum / divisor;
  }
  const Guarded<float> y(channels, draw.chance(50));
  k.average_pool(taps, channels, w.pointers.data(), divisor, y.data());
  CAPTURE(taps, channels);
  require_same_bits(y.data(), want.data(), channels);
}

}  // namespace

TEMPLATE_TEST_CASE("Max-pool takes the first of equal taps and keeps the first NaN, at any number of channels", "",
                   VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(61);
  for (Index channels = 0; channels <= 67; ++channels) {
    for (const Index taps : {1, 2, 4, 9}) check_max(k, taps, channels, draw, channels % 2 == 0);
  }
  for (const Index channels : {128, 130, 200}) check_max(k, 4, channels, draw, true);
  check_max(k, 225, 6, draw, false);
}

TEMPLATE_TEST_CASE("Average-pool is a chain in chunks of 512 taps and one division", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(62);
  for (Index channels = 0; channels <= 67; ++channels) {
    for (const Index taps : {0, 1, 4, 9}) check_average(k, taps, channels, draw, channels % 2 == 0);
  }
  for (const Index taps : {511, 512, 513, 1300}) check_average(k, taps, 21, draw, false);
}

TEMPLATE_TEST_CASE("A window of -inf gives -inf from its first tap", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  const float low[2] = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  const float* taps[3] = {low, low, low};
  const std::uint8_t index[3] = {4, 5, 7};
  float y[2] = {};
  std::uint8_t argmax[2] = {};
  k.max_pool(3, 2, taps, index, y, argmax);
  CHECK((y[0] == low[0] && y[1] == low[0]));
  CHECK((argmax[0] == 4 && argmax[1] == 4));
}
