// SPDX-License-Identifier: Apache-2.0
// Sums of squares, finiteness and clipping against formulas in double, and pixels against a division.
#include "../../ops/norm.hpp"

#include "../../ops/outer.hpp"
#include "../../ops/pixels.hpp"
#include "support.hpp"

using namespace vitro_test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float squares(Context& context, const Tensor& x, const float* previous = nullptr) {
  float total = kNan;
  ops::run_sum_squares(context, x.elements(), x.data(), previous, &total);
  return total;
}

std::int32_t finite(const Tensor& x, const float* total = nullptr, const std::int32_t* previous = nullptr) {
  std::int32_t ok = 7;
  ops::run_all_finite(x.elements(), x.data(), total, previous, &ok);
  return ok;
}

float factor(float total, float max_norm) {
  float result = kNan;
  ops::run_clip_factor(&total, &max_norm, &result);
  return result;
}

}  // namespace

TEST_CASE("sum_squares is near the sum in double, the same bits everywhere, and adds what came before") {
  Draw draw(61);
  const auto contexts = make_contexts();
  for (const Index count : {0, 1, 7, 15, 16, 17, 31, 33, 100, 4099}) {
    const Tensor x = draw.tensor({count});
    Exact exact;
    for (const float value : x.span()) exact.add(static_cast<double>(value), static_cast<double>(value));
    float lane[16] = {};  // the contract's order, with fma
    for (Index i = 0; i < count; ++i) lane[i % 16] = std::fma(x.data()[i], x.data()[i], lane[i % 16]);
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    const float before = 2.5F;
    for (const auto& context : contexts) {
      INFO(name_of(*context) << ", " << count << " elements");
      const float total = squares(*context, x);
      require_near(total, exact);
      CHECK(total == lane[0]);
      CHECK(squares(*context, x, &before) == before + total);
    }
  }
}

TEST_CASE("all_finite finds an infinity or a NaN anywhere, and believes a finite total") {
  for (const Index count : {1, 5, 40}) {
    Tensor x({count});
    CHECK(finite(x) == 1);
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      for (Index i = 0; i < count; ++i) {
        x.data()[i] = bad;
        CHECK(finite(x) == 0);
        x.data()[i] = 0;
      }
    }
  }
  Tensor big({2});
  big.data()[0] = big.data()[1] = 3e38F;
  Context context;
  const float overflowed = squares(context, big);
  CHECK(overflowed == kInfinity);  // though every element is finite
  CHECK(finite(big, &overflowed) == 1);
  const float nan = kNan, sum = 1.0F;
  CHECK(finite(big, &nan) == 1);
  Tensor bad({2});
  bad.data()[1] = kNan;
  CHECK(finite(bad, &overflowed) == 0);
  CHECK(finite(bad, &nan) == 0);
  CHECK(finite(bad, &sum) == 1);  // a finite total answers without a look at x
  const std::int32_t no = 0, yes = 1;
  CHECK(finite(big, nullptr, &no) == 0);
  CHECK(finite(big, &sum, &no) == 0);
  CHECK(finite(big, &overflowed, &yes) == 1);
  CHECK(finite(bad, &overflowed, &yes) == 0);
  CHECK(finite(Tensor({0})) == 1);
}

TEST_CASE("clip_factor brings a longer gradient to the given length and leaves others alone") {
  CHECK(factor(4.0F, 1.0F) == 0.5F);
  CHECK(factor(25.0F, 2.0F) == 2.0F / 5.0F);
  CHECK(factor(1.0F, 1.0F) == 1.0F);
  CHECK(factor(0.25F, 1.0F) == 1.0F);
  CHECK(factor(0.0F, 0.0F) == 1.0F);
  CHECK(factor(4.0F, 0.0F) == 0.0F);
  CHECK(factor(kNan, 1.0F) == 1.0F);
  CHECK(factor(kInfinity, 1.0F) == 0.0F);
  CHECK(factor(4.0F, kInfinity) == 1.0F);
  Draw draw(62);
  for (int i = 0; i < 200; ++i) {
    const float total = 10 * std::abs(draw.number()), most = std::abs(draw.number());
    const double norm = std::sqrt(static_cast<double>(total));
    const double exact = norm > static_cast<double>(most) ? static_cast<double>(most) / norm : 1.0;
    CHECK(std::abs(static_cast<double>(factor(total, most)) - exact) <= 3e-7 * exact);
  }
}

TEST_CASE("bytes_to_unit divides each byte by 255") {
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    for (const Index count : {0, 1, 15, 16, 17, 63, 64, 65, 256, 1000}) {
      BasicTensor<std::uint8_t> x({count});
      for (Index i = 0; i < count; ++i) x.data()[i] = static_cast<std::uint8_t>(37 * i + (i >> 8));
      Tensor y({count}), want({count});
      for (Index i = 0; i < count; ++i) want.data()[i] = static_cast<float>(x.data()[i]) / 255.0F;
      ops::run_bytes_to_unit(*context, count, x.data(), y.data());
      require_same_bits(y, want);
    }
  }
}

TEST_CASE("The norms of a gradient for one row, never stored, are those of the stored one") {
  Draw draw(62);
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    for (int round = 0; round < 60; ++round) {
      const Index rows = draw.range(0, 40), columns = draw.range(0, 40);
      Tensor x = draw.tensor({1, rows}, true), dy = draw.tensor({1, columns}, true), dw({rows, columns});
      const float kinds[] = {1.0F, 1e30F, kInfinity, kNan};
      if (rows > 0) x.data()[draw.range(0, rows - 1)] = kinds[round % 4];
      if (columns > 0) dy.data()[draw.range(0, columns - 1)] = 1e30F;
      ops::linear_grad_weight(*context, {}, x.view(), dy.view(), dw.view());
      const ops::OuterProblem problem = ops::outer_problem(ops::linear_problem({}, x.shape(), dw.shape()).value());
      REQUIRE(problem.elements() == dw.elements());
      context->reserve_scratch(ops::outer_bytes(problem), 0);

      const float before = 2.5F;
      for (const float* const previous : {static_cast<const float*>(nullptr), &before}) {
        float total = kNan;
        ops::run_sum_squares_outer(*context, problem, x.data(), dy.data(), previous, &total);
        CHECK(canonical_bits(total) == canonical_bits(squares(*context, dw, previous)));
      }
      const float sums[] = {1.0F, kInfinity, kNan};
      const std::int32_t oks[] = {0, 1};
      for (const float* const total : {static_cast<const float*>(nullptr), &sums[0], &sums[1], &sums[2]}) {
        for (const std::int32_t* const previous : {static_cast<const std::int32_t*>(nullptr), &oks[0], &oks[1]}) {
          std::int32_t ok = 7;
          ops::run_all_finite_outer(problem, x.data(), dy.data(), total, previous, &ok);
          CHECK(ok == finite(dw, total, previous));
        }
      }
    }
  }
}
