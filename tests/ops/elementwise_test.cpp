// SPDX-License-Identifier: Apache-2.0
// Bias, ReLU, the SGD update and fill against their formulas, and what they allow in place.
#include "../../ops/bias.hpp"
#include "../../ops/layout.hpp"
#include "../../ops/relu.hpp"
#include "../../ops/sgd.hpp"
#include "../support/errors.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("bias adds one number to each channel, and its gradient sums the rows in chunks of 512") {
  const auto contexts = make_contexts();
  Draw draw(30);
  for (const Shape& shape : {Shape{5}, Shape{3, 7}, Shape{2, 3, 4, 6}, Shape{1030, 3}, Shape{513, 1}, Shape{5000, 6},
                             Shape{1100, 16}, Shape{1100, 17}, Shape{40, 35}, Shape{2, 700}, Shape{0, 3}, Shape{3, 0}}) {
    const Index channels = shape[shape.rank() - 1];
    const Index rows = channels == 0 ? 0 : shape.elements() / channels;
    const Tensor x = draw.tensor(shape, true), b = draw.tensor({channels}, true), dy = draw.tensor(shape);
    Tensor want(shape), want_db({channels});
    for (Index i = 0; i < x.elements(); ++i) want.data()[i] = x.data()[i] + b.data()[i % channels];
    for (Index c = 0; c < channels; ++c) {
      want_db.data()[c] = sum_chunks(rows, [&](Index row) { return dy.data()[row * channels + c]; });
    }
    for (const auto& context : contexts) {
      INFO(name_of(*context) << ": " << to_string(shape));
      Tensor y(shape), in_place = x, db({channels});
      ops::bias(*context, {}, x, b, y);
      require_same_bits(y, want);
      ops::bias(*context, {}, in_place, b, in_place);
      require_same_bits(in_place, want);
      for (float& value : db.span()) value = kNan;
      ops::bias_grad(*context, {}, dy, db);
      require_same_bits(db, want_db);
    }
  }
}

TEST_CASE("relu keeps NaN and minus zero, and its gradient is zero where the output is") {
  Draw draw(31);
  for (const Index n : {0, 1, 17, 1000}) {
    Tensor x = draw.tensor({n}, true), want({n}), want_dx({n});
    if (n > 2) x.data()[1] = -0.0f;
    const Tensor dy = draw.tensor({n}, true);
    for (Index i = 0; i < n; ++i) {
      want.data()[i] = x.data()[i] < 0.0f ? 0.0f : x.data()[i];
      want_dx.data()[i] = want.data()[i] <= 0.0f ? 0.0f : dy.data()[i];
    }
    for (const auto& context : make_contexts()) {
      INFO(name_of(*context));
      Tensor y({n}), dx({n}), in_place = x, gradient = dy;
      ops::relu(*context, {}, x, y);
      require_same_bits(y, want);
      ops::relu(*context, {}, in_place, in_place);
      require_same_bits(in_place, want);
      ops::relu_grad(*context, {}, y, dy, dx);
      require_same_bits(dx, want_dx);
      ops::relu_grad(*context, {}, x, dy, dx);  // the input serves as well as the output
      require_same_bits(dx, want_dx);
      ops::relu_grad(*context, {}, y, gradient, gradient);
      require_same_bits(gradient, want_dx);
    }
  }
}

TEST_CASE("the sgd update is three fused multiply-adds and reads its rates when it runs") {
  Draw draw(32);
  const Index n = 777;
  const Tensor gradient = draw.tensor({n}), old_velocity = draw.tensor({n}), old_parameter = draw.tensor({n});
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    Tensor hyper({3}), velocity = old_velocity, parameter = old_parameter, want_v = old_velocity, want_p = old_parameter;
    for (const float rate : {0.1f, 0.01f}) {
      hyper.data()[0] = rate;
      hyper.data()[1] = 0.9f;
      hyper.data()[2] = 5e-4f;
      for (Index i = 0; i < n; ++i) {
        float &v = want_v.data()[i], &p = want_p.data()[i];
        v = std::fma(0.9f, v, std::fma(5e-4f, p, gradient.data()[i]));
        p = std::fma(-rate, v, p);
      }
      ops::sgd(*context, {}, hyper, gradient, velocity, parameter);
      require_same_bits(velocity, want_v);
      require_same_bits(parameter, want_p);
    }
  }
}

TEST_CASE("fill writes every element and nothing else") {
  for (const auto& context : make_contexts()) {
    Tensor y({5, 7});
    ops::fill(*context, 2.5f, y.view().slice(0, 1, 4));
    for (Index i = 0; i < y.elements(); ++i) REQUIRE(y.data()[i] == (i >= 7 && i < 28 ? 2.5f : 0.0f));
  }
}

TEST_CASE("wrong operands of elementwise operations are errors that name them") {
  CHECK_THAT(ops::bias_shape({}, {2, 3}, {4}).error().message(), ContainsSubstring("[2, 3]") && ContainsSubstring("[4]"));
  CHECK_FALSE(ops::bias_shape({}, Shape{}, Shape{}).ok());
  CHECK_THAT(ops::sgd_shape({}, {4}, {2}, {2}, {2}).error().message(), ContainsSubstring("hyper has shape [4]"));
  CHECK_THAT(ops::sgd_shape({}, {3}, {2}, {5}, {2}).error().message(), ContainsSubstring("velocity [5]"));

  Context context;
  Tensor x({4, 3}), b({3}), y({4, 3}), hyper({3});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] {
               ops::bias(context, {}, x.view().permute({1, 0}), Tensor({4}), Tensor({3, 4}));
             }),
             ContainsSubstring("bias: x") && ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] { ops::bias(context, {}, x, x.view().slice(0, 0, 1).reshape({3}), x); }),
             ContainsSubstring("overlaps"));
  CHECK_THAT(message([&] { ops::relu(context, {}, x.view().slice(0, 0, 3), x.view().slice(0, 1, 4)); }),
             ContainsSubstring("it may be that very tensor"));
  CHECK_THAT(message([&] { ops::relu(context, {}, x, b); }), ContainsSubstring("y has shape [3]"));
  CHECK_THAT(message([&] { ops::relu(context, {}, b.view().broadcast_to({4, 3}), y); }), ContainsSubstring("strides [0, 1]"));
  CHECK_THAT(message([&] { ops::relu_grad(context, {}, x, b, y); }), ContainsSubstring("dy has shape [3]"));
  CHECK_THAT(message([&] { ops::sgd(context, {}, hyper, x, x, y); }),
             ContainsSubstring("velocity overlaps the memory of gradient"));
  CHECK_THAT(message([&] { ops::fill(context, 1.0f, x.view().permute({1, 0})); }), ContainsSubstring("fill: y"));
}
