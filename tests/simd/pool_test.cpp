// SPDX-License-Identifier: Apache-2.0
// Pooling windows and their gradients of every variant, bit for bit against the rule for one result.
#include "kernel_variants.hpp"

#include <cmath>
#include <memory>

using namespace vitro_test;
using vitro::simd::PoolTap;
using vitro::simd::PoolWindows;

namespace {

struct Geometry {
  Index rows, columns, channels, tap_rows, tap_columns, stride_h, stride_w;
};

// Windows in arrays that hold nothing beyond their first and last element, each at a guard page of its own.
struct Pool {
  Index width;  // of the image, in pixels
  std::vector<PoolTap> taps;
  PoolWindows windows;
  Index inputs, results;
  Guarded<float> x, y;
  Guarded<std::uint8_t> argmax;

  Pool(const Geometry& g, Draw& draw)
      : width((g.columns - 1) * g.stride_w + g.tap_columns + draw.below(3)),
        taps(taps_of(g, width, draw)),
        windows{.rows = g.rows,
                .columns = g.columns,
                .channels = g.channels,
                .x_row_step = g.stride_h * width * g.channels,
                .x_column_step = g.stride_w * g.channels,
                .y_row_step = (g.columns + draw.below(2)) * g.channels,
                .tap_rows = g.tap_rows,
                .tap_columns = g.tap_columns,
                .tap = taps.data()},
        inputs(taps.empty() ? 0 : place(g.rows - 1, g.columns - 1) + taps.back().offset + g.channels),
        results((g.rows - 1) * windows.y_row_step + g.columns * g.channels),
        x(inputs, draw.chance(50)),
        y(results, draw.chance(50)),
        argmax(results, draw.chance(50)) {}

  Index place(Index row, Index column) const { return row * windows.x_row_step + column * windows.x_column_step; }

  // Calls f(index of the window's first tap in x, index of its result) in rising order, channels apart.
  template <class F>
  void for_each_result(F f) const {
    for (Index row = 0; row < windows.rows; ++row) {
      for (Index column = 0; column < windows.columns; ++column) {
        for (Index c = 0; c < windows.channels; ++c) {
          f(place(row, column) + c, row * windows.y_row_step + column * windows.channels + c);
        }
      }
    }
  }

  // A kernel of which padding may have cut off the first taps.
  static std::vector<PoolTap> taps_of(const Geometry& g, Index width, Draw& draw) {
    const Index first = draw.below(3), kernel_w = first + g.tap_columns + draw.below(3);
    std::vector<PoolTap> all;
    for (Index i = 0; i < g.tap_rows; ++i) {
      for (Index j = 0; j < g.tap_columns; ++j) {
        all.push_back({(i * width + j) * g.channels, static_cast<std::int32_t>((i * kernel_w + first + j) % 256)});
      }
    }
    return all;
  }
};

// Few different values where `ties` says so, so that equal taps (and zeros of both signs) are frequent.
void fill(const Guarded<float>& array, Index n, Draw& draw, bool awkward, bool ties) {
  fill(array, n, draw, awkward);
  for (Index i = 0; ties && i < n; ++i) array[i] = std::floor(3.0f * draw.number()) * (draw.chance(50) ? 1.0f : -1.0f);
}

constexpr float kUntouched = -77.0f;

std::vector<float> untouched(Index n) { return std::vector<float>(static_cast<std::size_t>(n), kUntouched); }
float& at(std::vector<float>& values, Index i) { return values[static_cast<std::size_t>(i)]; }

void check_max(const KernelTable& k, const Geometry& g, Draw& draw, bool awkward) {
  const Pool p(g, draw);
  fill(p.x, p.inputs, draw, awkward, !awkward);
  std::vector<float> want = untouched(p.results);
  std::vector<std::uint8_t> want_index(want.size(), 255);
  p.for_each_result([&](Index x, Index y) {
    float best = p.x[x];
    std::int32_t index = p.taps[0].index;
    for (const PoolTap& tap : p.taps) {
      const float value = p.x[x + tap.offset];
      if (!(value <= best) && best == best) best = value, index = tap.index;
    }
    at(want, y) = best;
    want_index[static_cast<std::size_t>(y)] = static_cast<std::uint8_t>(index);
  });
  CAPTURE(g.rows, g.columns, g.channels, g.tap_rows, g.tap_columns, g.stride_w);
  for (const bool choose : {false, true}) {
    for (Index i = 0; i < p.results; ++i) p.y[i] = kUntouched, p.argmax[i] = 255;
    k.max_pool(p.windows, p.x.data(), p.y.data(), choose ? p.argmax.data() : nullptr);
    require_same_bits(p.y.data(), want.data(), p.results);
  }
  for (Index i = 0; i < p.results; ++i) REQUIRE(int{p.argmax[i]} == int{want_index[static_cast<std::size_t>(i)]});
}

void check_average(const KernelTable& k, const Geometry& g, Draw& draw, bool awkward) {
  const Pool p(g, draw);
  fill(p.x, p.inputs, draw, awkward, false);
  const float divisor = static_cast<float>(p.taps.size() + static_cast<std::size_t>(draw.below(2)) + 1);
  std::vector<float> want = untouched(p.results);
  p.for_each_result([&](Index x, Index y) {
    const float sum = naive_chunks(static_cast<Index>(p.taps.size()),
                                   [&](Index t) { return p.x[x + p.taps[static_cast<std::size_t>(t)].offset]; });
    at(want, y) = sum / divisor;
  });
  for (Index i = 0; i < p.results; ++i) p.y[i] = kUntouched;
  k.average_pool(p.windows, p.x.data(), divisor, p.y.data());
  CAPTURE(g.rows, g.columns, g.channels, g.tap_rows, g.tap_columns, g.stride_w, divisor);
  require_same_bits(p.y.data(), want.data(), p.results);
}

void check_gradients(const KernelTable& k, const Geometry& g, Draw& draw, bool awkward) {
  const Pool p(g, draw);
  const bool overlapping = g.stride_h < g.tap_rows || g.stride_w < g.tap_columns;
  const float divisor = static_cast<float>(1 + draw.below(9));
  fill(p.y, p.results, draw, awkward, false);
  for (Index i = 0; i < p.results; ++i) p.y[i] *= 0.7f;  // fills the last bits, so that sums round
  for (Index i = 0; i < p.results; ++i) {
    p.argmax[i] =
        static_cast<std::uint8_t>(p.taps[static_cast<std::size_t>(draw.below(static_cast<Index>(p.taps.size())))].index);
  }
  // Pixels of no window keep what they had. Others began as +0 where windows overlap, and are overwritten where not.
  std::vector<float> start = untouched(p.inputs);
  p.for_each_result([&](Index x, Index) {
    for (const PoolTap& tap : p.taps) at(start, x + tap.offset) = 0.0f;
  });
  std::vector<float> want_max = start, want_average = start;
  p.for_each_result([&](Index x, Index y) {
    for (const PoolTap& tap : p.taps) {
      if (tap.index == p.argmax[y]) at(want_max, x + tap.offset) += p.y[y];
      at(want_average, x + tap.offset) += p.y[y] / divisor;
    }
  });
  const auto restart = [&] {
    for (Index i = 0; i < p.inputs; ++i) {
      const float begun = start[static_cast<std::size_t>(i)];
      p.x[i] = overlapping || begun == kUntouched ? begun : std::numeric_limits<float>::quiet_NaN();
    }
  };
  CAPTURE(g.rows, g.columns, g.channels, g.tap_rows, g.tap_columns, g.stride_h, g.stride_w, divisor);
  restart();
  k.max_pool_grad(p.windows, overlapping, p.argmax.data(), p.y.data(), p.x.data());
  require_same_bits(p.x.data(), want_max.data(), p.inputs);
  restart();
  k.average_pool_grad(p.windows, overlapping, divisor, p.y.data(), p.x.data());
  require_same_bits(p.x.data(), want_average.data(), p.inputs);
}

// Windows that lie side by side, overlap, leave gaps, and stand alone, with any number of channels below two registers, then
// some that take several strips.
template <class Check>
void for_each_geometry(Draw& draw, Check check) {
  const auto drawn = [&](Index channels) {
    const Index kernel = 1 + draw.below(3);
    check(Geometry{1 + draw.below(6), 1 + draw.below(20), channels, 2, 2, 2, 2}, channels % 2 == 0);
    check(Geometry{1 + draw.below(3), 1 + draw.below(9), channels, kernel, 3, kernel, 3}, channels % 2 == 1);
    check(Geometry{1 + draw.below(3), 1 + draw.below(9), channels, 1 + draw.below(3), 1 + draw.below(3), 1 + draw.below(3),
                   1 + draw.below(4)},
          channels % 2 == 0);
  };
  for (Index channels = 0; channels <= 35; ++channels) drawn(channels);
  for (const Index channels : {48, 63, 64, 65, 67, 128, 130, 200}) drawn(channels);
}

}  // namespace

TEMPLATE_TEST_CASE("Max-pool takes the first of equal taps and keeps the first NaN, at any number of channels", "",
                   VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(61);
  for_each_geometry(draw, [&](const Geometry& g, bool awkward) { check_max(k, g, draw, awkward); });
  check_max(k, {1, 2, 6, 15, 15, 15, 15}, draw, false);
}

TEMPLATE_TEST_CASE("Average-pool is a chain in chunks of 512 taps and one division", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(62);
  for_each_geometry(draw, [&](const Geometry& g, bool awkward) { check_average(k, g, draw, awkward); });
  for (const Index taps : {0, 511, 512, 513, 1300}) {
    check_average(k, {1, 1, 21, 1, taps, 1, 1}, draw, false);
    check_average(k, {1, 3, 5, 1, taps, 1, 2}, draw, false);
  }
}

TEMPLATE_TEST_CASE("Gradients of pooling add to +0 window by window, and touch no pixel outside the windows", "",
                   VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(63);
  for_each_geometry(draw, [&](const Geometry& g, bool awkward) { check_gradients(k, g, draw, awkward); });
  for (const Index channels : {6, 40}) check_gradients(k, {2, 3, channels, 5, 5, 2, 2}, draw, true);
  // Up to nine windows over a pixel, so that their order shows in the rounding.
  for (Index channels = 1; channels <= 20; ++channels) check_gradients(k, {4, 7, channels, 3, 3, 1, 1}, draw, false);
}

TEMPLATE_TEST_CASE("An average by a power of two has the division's bits among denormals", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  std::vector<float> x, y(64);
  for (int i = 0; i < 64; ++i) x.push_back(std::ldexp(1.0f + static_cast<float>(i) / 64.0f, -149 + i % 40));
  const PoolTap tap{0, 0};
  const PoolWindows one{.rows = 1,
                        .columns = 1,
                        .channels = 64,
                        .x_row_step = 64,
                        .x_column_step = 64,
                        .y_row_step = 64,
                        .tap_rows = 1,
                        .tap_columns = 1,
                        .tap = &tap};
  for (const float divisor : {1.0f, 2.0f, 4.0f, 64.0f, 3.0f, 12.0f}) {
    std::vector<float> want;
    for (const float value : x) want.push_back(static_cast<float>(static_cast<double>(value) / static_cast<double>(divisor)));
    k.average_pool(one, x.data(), divisor, y.data());
    CAPTURE(divisor);
    require_same_bits(y.data(), want.data(), 64);
  }
}

TEMPLATE_TEST_CASE("A window of -inf gives -inf from its first tap", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  const float low = -std::numeric_limits<float>::infinity();
  const float x[6] = {low, low, low, low, low, low};
  const PoolTap taps[3] = {{0, 4}, {2, 5}, {4, 6}};
  float y[2] = {};
  std::uint8_t argmax[2] = {};
  const PoolWindows one{.rows = 1,
                        .columns = 1,
                        .channels = 2,
                        .x_row_step = 6,
                        .x_column_step = 6,
                        .y_row_step = 2,
                        .tap_rows = 1,
                        .tap_columns = 3,
                        .tap = taps};
  k.max_pool(one, x, y, argmax);
  CHECK((y[0] == low && y[1] == low));
  CHECK((argmax[0] == 4 && argmax[1] == 4));
}
