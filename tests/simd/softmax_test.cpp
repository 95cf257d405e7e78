// SPDX-License-Identifier: Apache-2.0
// The softmax family of every variant: bit for bit against its formulas (with that variant's own exp and log, which
// exp_log_test.cpp checks), and against double.
#include "kernel_variants.hpp"

#include <cmath>

using namespace vitro_test;

namespace {

float exp_of(const KernelTable& k, float x) {
  k.exp(1, &x, &x);
  return x;
}
float log_of(const KernelTable& k, float x) {
  k.log(1, &x, &x);
  return x;
}

// One case: x[rows, columns] against a guard page, with labels and an upstream gradient.
struct Case {
  Index rows, columns;
  Guarded<float> x, dy;
  Guarded<std::int32_t> labels;

  Case(Index r, Index c, Draw& draw, bool awkward)
      : rows(r), columns(c), x(r * c, draw.chance(50)), dy(r * c, draw.chance(50)), labels(r) {
    fill(x, r * c, draw, awkward);
    fill(dy, r * c, draw, awkward);
    if (draw.chance(20)) {
      for (Index i = 0; i < r * c; ++i) x[i] = draw.chance(50) ? 0.0f : -0.0f;  // the sign of the maximum counts
    }
    for (Index i = 0; i < r; ++i) labels[i] = static_cast<std::int32_t>(c == 0 ? 0 : draw.below(c));
  }
};

std::vector<float> room(Index n) { return std::vector<float>(static_cast<std::size_t>(n)); }

struct Expected {
  std::vector<float> softmax, log_softmax, loss, grad, softmax_grad, log_softmax_grad;
};

Expected expect(const KernelTable& k, const Case& c, float scale) {
  const Index n = c.rows * c.columns;
  Expected want{room(n), room(n), room(c.rows), room(n), room(n), room(n)};
  for (Index i = 0; i < c.rows; ++i) {
    const float* x = c.x.data() + i * c.columns;
    const float* dy = c.dy.data() + i * c.columns;
    const std::size_t at = static_cast<std::size_t>(i * c.columns);
    float* y = want.softmax.data() + at;
    const float m = naive_max(c.columns, x);
    const float s = naive_lanes(c.columns, [&](float lane, Index j) { return lane + exp_of(k, x[j] - m); });
    for (Index j = 0; j < c.columns; ++j) y[j] = exp_of(k, x[j] - m) / s;
    for (Index j = 0; j < c.columns; ++j) want.log_softmax[at + static_cast<std::size_t>(j)] = (x[j] - m) - log_of(k, s);
    if (c.columns > 0) want.loss[static_cast<std::size_t>(i)] = log_of(k, s) - (x[c.labels[i]] - m);
    const float dot = naive_lanes(c.columns, [&](float lane, Index j) { return std::fma(y[j], dy[j], lane); });
    const float sum = naive_lanes(c.columns, [&](float lane, Index j) { return lane + dy[j]; });
    for (Index j = 0; j < c.columns; ++j) {
      const std::size_t here = at + static_cast<std::size_t>(j);
      want.grad[here] = scale * (j == c.labels[i] ? y[j] - 1.0f : y[j]);
      want.softmax_grad[here] = y[j] * (dy[j] - dot);
      want.log_softmax_grad[here] = std::fma(-exp_of(k, want.log_softmax[here]), sum, dy[j]);
    }
  }
  return want;
}

void check(const KernelTable& k, const Case& c) {
  const Index n = c.rows * c.columns;
  const float scale = 1.0f / 60.0f;
  const Expected want = expect(k, c, scale);
  CAPTURE(c.rows, c.columns);
  const Guarded<float> y(n), log_y(n, true), loss(c.rows), dx(n);
  k.softmax(c.rows, c.columns, c.x.data(), y.data());
  require_same_bits(y.data(), want.softmax.data(), n);
  k.log_softmax(c.rows, c.columns, c.x.data(), log_y.data());
  require_same_bits(log_y.data(), want.log_softmax.data(), n);
  k.softmax_grad(c.rows, c.columns, y.data(), c.dy.data(), dx.data());
  require_same_bits(dx.data(), want.softmax_grad.data(), n);
  k.log_softmax_grad(c.rows, c.columns, log_y.data(), c.dy.data(), dx.data());
  require_same_bits(dx.data(), want.log_softmax_grad.data(), n);
  if (c.columns == 0) return;  // no label would be in range
  k.cross_entropy(c.rows, c.columns, c.x.data(), c.labels.data(), loss.data(), dx.data());
  require_same_bits(dx.data(), want.softmax.data(), n);
  require_same_bits(loss.data(), want.loss.data(), c.rows);
  k.cross_entropy_grad(c.rows, c.columns, y.data(), c.labels.data(), scale, dx.data());
  require_same_bits(dx.data(), want.grad.data(), n);
  k.cross_entropy_grad(c.rows, c.columns, y.data(), c.labels.data(), scale, y.data());  // in place
  require_same_bits(y.data(), want.grad.data(), n);
}

}  // namespace

TEMPLATE_TEST_CASE("Softmax, cross-entropy and their gradients follow their formulas bit for bit", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(51);
  for (Index columns = 0; columns <= 67; ++columns) {
    for (const bool awkward : {false, true}) {
      for (const Index rows : {0, 1, 3, 8}) check(k, Case(rows, columns, draw, awkward));
    }
  }
  for (const Index columns : {128, 1000, 1031}) check(k, Case(2, columns, draw, false));
}

TEMPLATE_TEST_CASE("Probabilities and losses agree with double", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  Draw draw(52);
  for (const Index columns : {1, 2, 10, 16, 17, 100, 1000}) {
    const Case c(1, columns, draw, false);
    const Guarded<float> y(columns), log_y(columns);
    float loss = 0;
    k.cross_entropy(1, columns, c.x.data(), c.labels.data(), &loss, y.data());
    k.log_softmax(1, columns, c.x.data(), log_y.data());
    double sum = 0;
    for (Index j = 0; j < columns; ++j) sum += std::exp(static_cast<double>(c.x[j]));
    for (Index j = 0; j < columns; ++j) {
      const double p = std::exp(static_cast<double>(c.x[j])) / sum;
      CHECK(std::fabs(y[j] - p) <= 1e-6 * p);
      CHECK(std::fabs(log_y[j] - std::log(p)) <= 2e-6 * (1 - std::log(p)));
    }
    CHECK(std::fabs(loss - (std::log(sum) - c.x[c.labels[0]])) <= 2e-6 * (1 + std::log(sum)));
  }
}

TEMPLATE_TEST_CASE("Huge logits give exact losses, and rows with a NaN or +inf give NaN", "", VITRO_VARIANTS) {
  const KernelTable& k = table_or_skip(TestType::kTable);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float x[5][3] = {{1e8f, -1e8f, 0.0f},
                         {-1e8f, -1e8f, -1e8f},
                         {1.0f, std::nanf(""), 2.0f},
                         {kInfinity, 0.0f, 1.0f},
                         {0.0f, -kInfinity, 0.0f}};
  const std::int32_t labels[5] = {1, 0, 0, 0, 2};
  float loss[5], p[5][3];
  k.cross_entropy(5, 3, x[0], labels, loss, p[0]);
  CHECK(loss[0] == 2e8f);
  CHECK((p[0][0] == 1.0f && p[0][1] == 0.0f && p[0][2] == 0.0f));
  CHECK(std::fabs(loss[1] - std::log(3.0)) < 1e-7);
  for (int j = 0; j < 3; ++j) CHECK((std::isnan(p[2][j]) && std::isnan(p[3][j])));
  CHECK((std::isnan(loss[2]) && std::isnan(loss[3])));
  CHECK((p[4][0] == 0.5f && p[4][1] == 0.0f && p[4][2] == 0.5f));
}
