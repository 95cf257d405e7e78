// SPDX-License-Identifier: Apache-2.0
// Reductions of every variant, bit for bit against the orders of summation of the numerics contract, and against double.
#include "kernel_variants.hpp"

#include <cmath>

using namespace vitro_test;

TEMPLATE_TEST_CASE("Sum and sum of squares add in 16 lanes and a halving tree", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(41);
  for (const Index n : sizes()) {
    for (const bool awkward : {false, true}) {
      const Guarded<float> x(n, draw.chance(50));
      fill(x, n, draw, awkward);
      const float want[2] = {naive_lanes(n, [&](float lane, Index i) { return lane + x[i]; }),
                             naive_lanes(n, [&](float lane, Index i) { return std::fma(x[i], x[i], lane); })};
      const float got[2] = {k.sum(n, x.data()), k.sum_squares(n, x.data())};
      require_same_bits(got, want, 2);

      if (awkward) continue;
      double exact = 0, magnitude = 0;
      for (Index i = 0; i < n; ++i) exact += x[i], magnitude += std::fabs(x[i]);
      // A chain of n / 16 additions and four more, each off by at most half an ulp of what it holds.
      CHECK(std::fabs(got[0] - exact) <= (static_cast<double>(n) / 16 + 5) * 0x1p-24 * magnitude);
    }
  }
  CHECK(canonical_bits(k.sum(0, nullptr)) == 0);
}

TEMPLATE_TEST_CASE("Max finds the largest element, any NaN, and the first of two zeros", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(42);
  for (const Index n : sizes()) {
    const Guarded<float> x(n, draw.chance(50));
    for (int kind = 0; kind < 4; ++kind) {
      for (Index i = 0; i < n; ++i) {
        switch (kind) {
          case 0: x[i] = draw.number() - 3.0f; break;
          case 1: x[i] = draw.chance(90) ? -draw.number() * draw.number() : -0.0f; break;
          case 2: x[i] = draw.chance(30) ? (draw.chance(50) ? 0.0f : -0.0f) : -std::fabs(draw.number()); break;
          default: x[i] = draw.chance(99) ? draw.number() : std::nanf("");
        }
      }
      const float got = k.max(n, x.data()), want = naive_max(n, x.data());
      require_same_bits(&got, &want, 1);
    }
    // The largest, or the only NaN, at each place.
    for (Index i = 0; i < n && n <= 67; ++i) {
      for (Index j = 0; j < n; ++j) x[j] = -std::numeric_limits<float>::infinity();
      REQUIRE(k.max(n, x.data()) == -std::numeric_limits<float>::infinity());
      x[i] = -3e38f;
      REQUIRE(k.max(n, x.data()) == -3e38f);
      x[i] = std::nanf("");
      REQUIRE(std::isnan(k.max(n, x.data())));
    }
  }
  CHECK(k.max(0, nullptr) == -std::numeric_limits<float>::infinity());
}

TEMPLATE_TEST_CASE("Sums of rows are one chain a column, cut into chunks of 512", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(43);
  const auto check = [&](Index rows, Index columns, Index stride, bool awkward) {
    const Index extent = rows == 0 || columns == 0 ? 0 : (rows - 1) * stride + columns;
    const Guarded<float> x(extent, draw.chance(50)), y(columns, draw.chance(50));
    fill(x, extent, draw, awkward);
    for (Index j = 0; j < columns; ++j) y[j] = std::nanf("");  // overwritten, whatever was there
    std::vector<float> want(static_cast<std::size_t>(columns));
    for (Index j = 0; j < columns; ++j) {
      want[static_cast<std::size_t>(j)] = naive_chunks(rows, [&](Index i) { return x[i * stride + j]; });
    }
    k.sum_rows(rows, columns, x.data(), stride, y.data());
    CAPTURE(rows, columns, stride);
    require_same_bits(y.data(), want.data(), columns);
    if (columns > 16) return;
    const Index chunks = (rows + 511) / 512;
    const Guarded<float> sums(chunks * columns, draw.chance(50));
    k.sum_row_chunks(rows, columns, x.data(), stride, sums.data());
    for (Index c = 0; c < chunks; ++c) {
      const Index first = c * 512, count = std::min<Index>(rows - first, 512);
      for (Index j = 0; j < columns; ++j) {
        want[static_cast<std::size_t>(j)] = naive_chunks(count, [&](Index i) { return x[(first + i) * stride + j]; });
      }
      require_same_bits(sums.data() + c * columns, want.data(), columns);
    }
  };
  for (Index columns = 0; columns <= 67; ++columns) {
    for (const Index rows : {0, 1, 2, 511, 512, 513, 1030}) check(rows, columns, columns + (columns % 3), columns % 4 == 1);
  }
  for (const Index columns : {6, 10, 16, 84, 120, 129, 300}) {
    for (const Index rows : {64, 2047, 4096, 4097, 5000}) check(rows, columns, columns, false);
  }
  check(9000, 3, 3, true);
  check(1500, 5, 0, false);  // the same row again and again
}
