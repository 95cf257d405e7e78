// SPDX-License-Identifier: Apache-2.0
// exp and log of every variant: accuracy against long double, special values, and the same bits from all variants.
#include "kernel_variants.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace vitro_test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// The distance of a float result from the exact one, in units of the last place of a float at the exact result.
long double ulps(float got, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int place = exact == 0 ? -149 : std::max(exponent - 24, -149);
  return std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, place);
}

// Calls f(x, n) for blocks of n floats whose bit patterns rise through all 2^32 in steps of `step`.
template <class F>
void for_all_floats(std::uint64_t step, F f) {
  constexpr Index kBlock = 1021;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += step) {
    x.push_back(float_of(static_cast<std::uint32_t>(bits)));
    if (static_cast<Index>(x.size()) == kBlock) {
      f(x.data(), kBlock);
      x.clear();
    }
  }
  f(x.data(), static_cast<Index>(x.size()));
}

// VITRO_EXHAUSTIVE=1 in the environment takes every float (several minutes) instead of one in 4999.
std::uint64_t step() { return std::getenv("VITRO_EXHAUSTIVE") != nullptr ? 1 : 4999; }

}  // namespace

TEMPLATE_TEST_CASE("Exp is within 0.69 ulp, with denormals within 0.79 of their last place", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  long double worst = 0, worst_denormal = 0;
  Index finite = 0, not_nearest = 0;
  bool nan_and_infinity = true;
  float y[1021];
  for_all_floats(step(), [&](const float* x, Index n) {
    k.exp(n, x, y);
    for (Index i = 0; i < n; ++i) {
      const long double exact = std::exp(static_cast<long double>(x[i]));
      const float rounded = static_cast<float>(exact);
      if (std::isnan(exact) || std::isinf(rounded) || std::isinf(y[i])) {
        nan_and_infinity = nan_and_infinity && canonical_bits(y[i]) == canonical_bits(rounded);
      } else if (exact < 0x1p-126L) {
        worst_denormal = std::max(worst_denormal, ulps(y[i], exact));
      } else {
        worst = std::max(worst, ulps(y[i], exact));
        ++finite;
        if (y[i] != rounded) ++not_nearest;
      }
    }
  });
  CHECK(nan_and_infinity);
  CHECK(worst < 0.69L);
  CHECK(worst_denormal < 0.79L);
  CHECK(not_nearest * 10000 < finite * 22);  // for most arguments exp is 1; 0.8 % of the others are not the nearest float
}

TEMPLATE_TEST_CASE("Log is within 0.94 ulp, denormal arguments included", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  long double worst = 0;
  Index finite = 0, not_nearest = 0;
  bool special = true;
  float y[1021];
  for_all_floats(step(), [&](const float* x, Index n) {
    k.log(n, x, y);
    for (Index i = 0; i < n; ++i) {
      if (!(x[i] > 0) || std::isinf(x[i])) {
        const float want = x[i] == 0 ? -kInfinity : x[i] < 0 ? std::nanf("") : x[i];
        special = special && canonical_bits(y[i]) == canonical_bits(want);
      } else {
        const long double exact = std::log(static_cast<long double>(x[i]));
        worst = std::max(worst, ulps(y[i], exact));
        ++finite;
        if (y[i] != static_cast<float>(exact)) ++not_nearest;
      }
    }
  });
  CHECK(special);
  CHECK(worst < 0.94L);
  CHECK(not_nearest * 10000 < finite * 12);
}

TEMPLATE_TEST_CASE("Exp and log have their exact and special values", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  const auto exp = [&](float x) {
    float y = -7.0f;
    k.exp(1, &x, &y);
    return y;
  };
  const auto log = [&](float x) {
    float y = -7.0f;
    k.log(1, &x, &y);
    return y;
  };
  CHECK(exp(0.0f) == 1.0f);
  CHECK(exp(-0.0f) == 1.0f);
  CHECK(exp(1e-30f) == 1.0f);
  CHECK(exp(88.72283f) == static_cast<float>(std::exp(88.72283f * 1.0L)));  // the last finite result
  CHECK(exp(88.72284f) == kInfinity);
  CHECK(exp(3e38f) == kInfinity);
  CHECK(exp(kInfinity) == kInfinity);
  CHECK(exp(-103.9f) == 0x1p-149f);
  for (const float x : {-104.0f, -1000.0f, -kInfinity}) CHECK(canonical_bits(exp(x)) == canonical_bits(0.0f));
  CHECK(std::isnan(exp(std::nanf(""))));
  CHECK(std::isnan(exp(-std::nanf(""))));

  CHECK(canonical_bits(log(1.0f)) == canonical_bits(0.0f));
  CHECK(log(0.0f) == -kInfinity);
  CHECK(log(-0.0f) == -kInfinity);
  CHECK(log(kInfinity) == kInfinity);
  for (const float x : {-1e-45f, -1.0f, -kInfinity, std::nanf("")}) CHECK(std::isnan(log(x)));
  CHECK(log(0x1p-149f) == static_cast<float>(std::log(0x1p-149L)));
}

TEMPLATE_TEST_CASE("Exp and log give the bits of the scalar variant without fma, at every size", "", Avx512, Avx2, Scalar) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  const KernelTable& reference = table_or_skip(ScalarNofma::kTable);
  float y[1021], want[1021];
  for_all_floats(step(), [&](const float* x, Index n) {
    k.exp(n, x, y);
    reference.exp(n, x, want);
    require_same_bits(y, want, n);
    k.log(n, x, y);
    reference.log(n, x, want);
    require_same_bits(y, want, n);
  });
  Draw draw(31);
  for (const Index n : sizes()) {
    const Guarded<float> x(n), out(n, true);
    std::vector<float> expected(static_cast<std::size_t>(n));
    fill(x, n, draw, true);
    k.exp(n, x.data(), out.data());
    reference.exp(n, x.data(), expected.data());
    require_same_bits(out.data(), expected.data(), n);
    reference.log(n, x.data(), expected.data());
    k.log(n, x.data(), x.data());
    require_same_bits(x.data(), expected.data(), n);
  }
}
