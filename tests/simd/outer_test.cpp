// SPDX-License-Identifier: Apache-2.0
// What reads an outer product that nobody stores, bit for bit against the same on a stored one.
#include "../../simd/outer.hpp"

#include "kernel_variants.hpp"

#include <cmath>

using namespace vitro_test;

namespace {

using vitro::simd::kOuterRepeated;
using vitro::simd::OuterProduct;

// A drawn outer product whose two arrays end, or begin, at guard pages, and its elements written out.
struct Case {
  Case(Index rows, Index columns, bool awkward, Draw& draw)
      : column(rows, draw.chance(50)),
        row(columns + kOuterRepeated, draw.chance(50)),
        outer{columns, column.data(), row.data()} {
    fill(column, rows, draw, awkward);
    fill(row, columns, draw, awkward);
    for (Index i = 0; i < kOuterRepeated; ++i) row[columns + i] = row[i];
    for (Index i = 0; i < rows; ++i) {
      // The chain of one fma from +0, added to +0: of two zeros' products, of tiny ones that become -0, the sum is +0.
      for (Index j = 0; j < columns; ++j) elements.push_back(std::fma(column[i], row[j], 0.0f) + 0.0f);
    }
  }
  Index size() const { return static_cast<Index>(elements.size()); }
  float operator[](Index i) const { return elements[static_cast<std::size_t>(i)]; }

  Guarded<float> column, row;
  OuterProduct outer;
  std::vector<float> elements;
};

constexpr Index kColumns[] = {1, 2, 3, 5, 7, 8, 9, 10, 15, 16, 17, 24, 31, 32, 33, 48, 84, 120, 257};
constexpr Index kRows[] = {1, 2, 3, 16, 21};

}  // namespace

TEMPLATE_TEST_CASE("The squares of an outer product add in 16 lanes over its rows", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(51);
  for (const Index columns : kColumns) {
    for (const Index rows : kRows) {
      const Case c(rows, columns, draw.chance(30), draw);
      const Index n = draw.chance(50) ? c.size() : draw.below(c.size() + 1);
      const float want = naive_lanes(n, [&](float lane, Index i) { return std::fma(c[i], c[i], lane); });
      const float got = k.sum_squares_outer(c.outer, n);
      CAPTURE(rows, columns, n);
      require_same_bits(&got, &want, 1);
      require_same_bits(&got, std::vector<float>{k.sum_squares(n, c.elements.data())}.data(), 1);
    }
  }
  CHECK(canonical_bits(k.sum_squares_outer({}, 0)) == 0);
}

TEMPLATE_TEST_CASE("An update by any range of an outer product is the update by a stored one", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(52);
  const auto check = [&](const Case& c, Index first, Index n, bool awkward) {
    const Guarded<float> v(n, draw.chance(50)), p(n, draw.chance(50));
    fill(v, n, draw, awkward);
    fill(p, n, draw, awkward);
    const float scale = draw.chance(50) ? 1.0f : draw.number(), rate = draw.number(), momentum = draw.number();
    const float decay = draw.chance(30) ? 0.0f : draw.number();
    std::vector<float> want_v, want_p;
    for (Index i = 0; i < n; ++i) {
      const float g = scale == 1.0f ? c[first + i] : c[first + i] * scale;
      want_v.push_back(std::fma(momentum, v[i], std::fma(decay, p[i], g)));
      want_p.push_back(std::fma(-rate, want_v.back(), p[i]));
    }
    k.sgd_update_outer(c.outer, first, n, scale, rate, momentum, decay, v.data(), p.data());
    CAPTURE(c.outer.columns, c.size(), first, n);
    require_same_bits(v.data(), want_v.data(), n);
    require_same_bits(p.data(), want_p.data(), n);
  };
  for (const Index columns : kColumns) {
    for (const Index rows : kRows) {
      const bool awkward = draw.chance(30);
      const Case c(rows, columns, awkward, draw);
      check(c, 0, c.size(), awkward);
      for (int i = 0; i < 4; ++i) {
        const Index first = draw.below(c.size());
        check(c, first, draw.below(c.size() - first + 1), awkward);
      }
    }
  }
  k.sgd_update_outer({}, 0, 0, 1, 0, 0, 0, nullptr, nullptr);
}

TEMPLATE_TEST_CASE("Zeros of an outer product are +0, as a velocity of -0 shows", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  // -0, and a product too small for a float; v = fma(1, -0, fma(0, -1, g)) = -0 only if g is -0.
  const float column[] = {-0.0f, 1e-30f};
  float row[3 + kOuterRepeated];
  for (Index i = 0; i < 3 + kOuterRepeated; ++i) row[i] = i % 3 == 1 ? -1e-30f : 1.0f;
  float v[] = {-0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f}, p[] = {-1, -1, -1, -1, -1, -1};
  k.sgd_update_outer({3, column, row}, 0, 6, 1.0f, 0.0f, 1.0f, 0.0f, v, p);
  const float want[] = {0.0f, 0.0f, 0.0f, 1e-30f, 0.0f, 1e-30f};
  require_same_bits(v, want, 6);
}
