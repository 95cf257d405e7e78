// SPDX-License-Identifier: Apache-2.0
// Dropout: its formula, its share of zeros, the counters that the mask depends on, and its gradient.
#include "../../ops/dropout.hpp"

#include "../support/errors.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/autograd/functions.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor dropped(Context& context, const ops::DropoutAttrs& attrs, const Tensor& x, std::int32_t step) {
  Tensor y(x.shape());
  ops::run_dropout(context, {x.elements(), attrs}, x.data(), &step, y.data());
  return y;
}

Tensor ones(Index count) {
  Tensor x({count});
  std::fill_n(x.data(), count, 1.0F);
  return x;
}

// How many elements differ.
Index differences(const Tensor& a, const Tensor& b) {
  Index count = 0;
  for (Index i = 0; i < a.elements(); ++i) count += a.data()[i] != b.data()[i];
  return count;
}

}  // namespace

TEST_CASE("dropout follows its formula on every instruction set and thread count, in place too") {
  Draw draw(60);
  const auto contexts = make_contexts();
  for (const Index count : {0, 1, 3, 4, 5, 63, 1000}) {
    for (const float rate : {0.0F, 0.25F, 0.5F, 0.9F}) {
      const ops::DropoutAttrs attrs{.seed_low = 7, .seed_high = 9, .layer = 3, .rate = rate};
      const std::int32_t step = count == 5 ? -1 : 1234567;
      const Tensor x = draw.tensor({count}, true);
      const Philox random(9ULL << 32 | 7, 1ULL << 63 | 3ULL << 32 | static_cast<std::uint32_t>(step));
      Tensor want({count});
      const float scale = 1.0F / (1.0F - rate);
      for (Index i = 0; i < count; ++i) {
        want.data()[i] = random.uniform(static_cast<std::uint64_t>(i)) >= rate ? x.data()[i] * scale : 0.0F;
      }
      for (const auto& context : contexts) {
        INFO(name_of(*context));
        require_same_bits(dropped(*context, attrs, x, step), want);
        Tensor in_place = x;
        ops::run_dropout(*context, {count, attrs}, in_place.data(), &step, in_place.data());
        require_same_bits(in_place, want);
      }
    }
  }
}

TEST_CASE("dropout zeroes its share and keeps the mean") {
  Context context;
  constexpr Index kCount = 100000;
  for (const float rate : {0.1F, 0.5F, 0.75F}) {
    const Tensor y = dropped(context, {.rate = rate}, ones(kCount), 1);
    double zeros = 0, sum = 0;
    for (const float value : y.span()) {
      zeros += value == 0.0F;
      sum += static_cast<double>(value);
    }
    // Five standard deviations of a binomial share: 5 * sqrt(0.25 / 100000) at most.
    CHECK(std::abs(zeros / kCount - static_cast<double>(rate)) < 0.008);
    CHECK(std::abs(sum / kCount - 1) < 0.008 / (1 - static_cast<double>(rate)));
  }
  CHECK(differences(dropped(context, {.rate = 0}, ones(1000), 1), ones(1000)) == 0);
}

TEST_CASE("dropout draws another mask for another step, layer, and either half of the seed") {
  Context context;
  const Tensor x = ones(4000);
  const Tensor y = dropped(context, {}, x, 5);
  CHECK(differences(y, dropped(context, {}, x, 5)) == 0);
  for (const Tensor& other : {dropped(context, {}, x, 6), dropped(context, {.layer = 1}, x, 5),
                              dropped(context, {.seed_low = 1}, x, 5), dropped(context, {.seed_high = 1}, x, 5)}) {
    CHECK(std::abs(differences(y, other) - 2000) < 160);  // half of them; five standard deviations
  }
}

TEST_CASE("dropout's gradient uses the mask of the forward pass and reads the step when it runs") {
  Context context;
  Tape tape(context);
  const Tensor x = ones(500);
  LabelTensor step{Shape()};
  for (const std::int32_t number : {3, 4}) {
    step.data()[0] = number;
    tape.clear();
    const Var v = tape.input(x.view(), true), y = dropout(v, tape.input(step.view()), {.seed_low = 2, .rate = 0.5F});
    tape.backward(sum_to(y, Shape()));
    // x is 1 and so is dy: y and dx are the same numbers, 0 or 2.
    const Tensor value = contiguous(tape.value(y)), gradient = contiguous(tape.value(tape.gradient(v)));
    require_same_bits(gradient, value);
    require_same_bits(value, dropped(context, {.seed_low = 2, .rate = 0.5F}, x, number));
  }
}

TEST_CASE("dropout refuses rates outside of [0, 1) and layers of 2^31 and more") {
  Context context;
  Tape tape(context);
  const Tensor x({4});
  const LabelTensor step{Shape()}, wrong({1});
  const Var v = tape.input(x.view()), s = tape.input(step.view());
  for (const float rate : {-0.1F, 1.0F, 2.0F, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_THAT(error_of([&] { dropout(v, s, {.rate = rate}); }).message(), ContainsSubstring("the rate must be in [0, 1)"));
  }
  CHECK_THAT(error_of([&] { dropout(v, s, {.layer = 1U << 31}); }).message(), ContainsSubstring("2147483648"));
  CHECK_THAT(error_of([&] { dropout(v, tape.input(wrong.view()), {}); }).message(), ContainsSubstring("should be i32[]"));
  CHECK_THAT(error_of([&] { dropout(v, v, {}); }).message(), ContainsSubstring("dropout"));
}
