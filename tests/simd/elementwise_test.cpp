// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels of every variant, bit for bit against the formula of each, written out for one element.
#include "kernel_variants.hpp"

#include <cmath>

using namespace vitro_test;

namespace {

// Runs `call(n, x, y)` and compares with `want(x_i)`, in place too, at both ends of guarded arrays.
template <class Call, class Want>
void check_unary(const Call& call, const Want& want) {
  Draw draw(21);
  for (const Index n : sizes()) {
    for (const bool at_start : {false, true}) {
      const Guarded<float> x(n, at_start), y(n, at_start);
      fill(x, n, draw, true);
      std::vector<float> expected(static_cast<std::size_t>(n));
      for (Index i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] = want(x[i]);
      call(n, x.data(), y.data());
      require_same_bits(y.data(), expected.data(), n);
      call(n, x.data(), x.data());
      require_same_bits(x.data(), expected.data(), n);
    }
  }
}

template <class Call, class Want>
void check_binary(const Call& call, const Want& want) {
  Draw draw(22);
  for (const Index n : sizes()) {
    for (const bool at_start : {false, true}) {
      const Guarded<float> a(n, at_start), b(n, !at_start), y(n, at_start);
      fill(a, n, draw, true);
      fill(b, n, draw, true);
      std::vector<float> expected(static_cast<std::size_t>(n));
      for (Index i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] = want(a[i], b[i]);
      call(n, a.data(), b.data(), y.data());
      require_same_bits(y.data(), expected.data(), n);
      call(n, a.data(), b.data(), b.data());
      require_same_bits(b.data(), expected.data(), n);
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Sums and products of arrays are one IEEE operation an element", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  check_binary(k.add, [](float a, float b) { return a + b; });
  check_binary(k.mul, [](float a, float b) { return a * b; });
  for (const float scalar : {0.375f, -0.0f, 3e38f, std::nanf("")}) {
    check_unary([&](Index n, const float* x, float* y) { k.add_scalar(n, x, scalar, y); }, [=](float x) { return x + scalar; });
    check_unary([&](Index n, const float* x, float* y) { k.mul_scalar(n, x, scalar, y); }, [=](float x) { return x * scalar; });
  }
}

TEMPLATE_TEST_CASE("Relu keeps -0 and NaN, and its gradient passes where the output is positive or NaN", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  check_unary(k.relu, [](float x) { return x < 0 ? 0.0f : x; });
  check_binary(k.relu_grad, [](float y, float dy) { return y <= 0 ? 0.0f : dy; });

  const float x[4] = {-0.0f, std::nanf(""), -1.0f, 2.0f};
  float y[4];
  k.relu(4, x, y);
  CHECK(std::signbit(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK((y[2] == 0.0f && !std::signbit(y[2])));
}

TEMPLATE_TEST_CASE("Pixels become x / 255, correctly rounded", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  for (Index n = 0; n <= 300; ++n) {
    const Guarded<std::uint8_t> x(n, n % 2 != 0);
    const Guarded<float> y(n, n % 3 == 0);
    std::vector<float> expected(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      x[i] = static_cast<std::uint8_t>(255 - i);
      expected[static_cast<std::size_t>(i)] = static_cast<float>(x[i]) / 255.0f;
    }
    k.bytes_to_unit(n, x.data(), y.data());
    require_same_bits(y.data(), expected.data(), n);
  }
}

TEMPLATE_TEST_CASE("The momentum update is three fused multiply-adds an element", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(23);
  for (const Index n : sizes()) {
    const Guarded<float> g(n), v(n, true), p(n);
    const float rate = 0.01f, momentum = 0.9f, decay = n % 2 == 0 ? 5e-4f : 0.0f;
    fill(g, n, draw, true);
    fill(v, n, draw, n % 3 == 0);
    fill(p, n, draw, n % 5 == 0);
    std::vector<float> want_v(static_cast<std::size_t>(n)), want_p(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      const std::size_t at = static_cast<std::size_t>(i);
      want_v[at] = std::fma(momentum, v[i], std::fma(decay, p[i], g[i]));
      want_p[at] = std::fma(-rate, want_v[at], p[i]);
    }
    k.sgd_update(n, rate, momentum, decay, g.data(), v.data(), p.data());
    require_same_bits(v.data(), want_v.data(), n);
    require_same_bits(p.data(), want_p.data(), n);
  }
}
