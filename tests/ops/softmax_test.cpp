// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax, cross-entropy and predictions: against the formulas in double, and the same bits on every context.
#include "../../ops/softmax.hpp"

#include "../../ops/cross_entropy.hpp"
#include "../../ops/metrics.hpp"
#include "../support/errors.hpp"
#include "support.hpp"

#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// log(sum(exp(x))) of a row, in double.
double log_sum(const Tensor& x, Index row, Index columns) {
  const float* const first = x.data() + row * columns;
  const double largest = *std::max_element(first, first + columns);
  double sum = 0.0;
  for (Index j = 0; j < columns; ++j) sum += std::exp(first[j] - largest);
  return largest + std::log(sum);
}

// Rounding of the shifted argument, of exp, of a sum of `columns` terms and of the division, relative to the result.
double relative_tolerance(Index columns) { return 2e-7 * static_cast<double>(8 + columns); }

// sum(y * dy) by the 16-lane rule with fused multiply-adds.
float dot_lanes(Index n, const float* a, const float* b) {
  float lane[16] = {};
  for (Index i = 0; i < n; ++i) lane[i % 16] = std::fma(a[i], b[i], lane[i % 16]);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

// 4 times a drawn number: logits of some spread.
Tensor draw_logits(Draw& draw, const Shape& shape) {
  Tensor x = draw.tensor(shape);
  for (float& value : x.span()) value *= 4.0f;
  return x;
}

}  // namespace

TEST_CASE("softmax and log-softmax follow their formulas, with the same bits on every context") {
  const auto contexts = make_contexts();
  Draw draw(60);
  for (const Shape& shape : {Shape{7, 10}, Shape{2, 3, 17}, Shape{40}, Shape{3, 1}, Shape{300, 5}, Shape{2, 1000}}) {
    const Index columns = shape[shape.rank() - 1];
    const Tensor x = draw_logits(draw, shape), dy = draw.tensor(shape);
    Tensor first, first_log, first_log_dx;
    for (const auto& context : contexts) {
      INFO(name_of(*context) << ": " << to_string(shape));
      Tensor y(shape), log_y(shape), dx(shape), log_dx(shape), want_dx(shape);
      ops::softmax(*context, {}, x, y);
      ops::log_softmax(*context, {}, x, log_y);
      ops::softmax_grad(*context, {}, y, dy, dx);
      ops::log_softmax_grad(*context, {}, log_y, dy, log_dx);
      for (Index i = 0; i < x.elements(); ++i) {
        const Index row = i / columns * columns;
        want_dx.data()[i] = y.data()[i] * (dy.data()[i] - dot_lanes(columns, y.data() + row, dy.data() + row));
      }
      require_same_bits(dx, want_dx);
      if (context == contexts.front()) {
        first = y, first_log = log_y, first_log_dx = log_dx;
      }
      require_same_bits(y, first);
      require_same_bits(log_y, first_log);
      require_same_bits(log_dx, first_log_dx);
    }
    for (Index i = 0; i < x.elements(); ++i) {
      const double log_want = x.data()[i] - log_sum(x, i / columns, columns);
      double sum = 0.0, magnitude = 0.0;
      for (Index j = i / columns * columns; j < (i / columns + 1) * columns; ++j) {
        sum += dy.data()[j];
        magnitude += std::abs(dy.data()[j]);
      }
      CAPTURE(to_string(shape), i);
      REQUIRE(std::abs(first.data()[i] - std::exp(log_want)) <= relative_tolerance(columns) * std::exp(log_want));
      REQUIRE(std::abs(first_log.data()[i] - log_want) <= relative_tolerance(columns) * (1.0 + std::abs(log_want)));
      REQUIRE(std::abs(first_log_dx.data()[i] - (dy.data()[i] - std::exp(log_want) * sum)) <=
              relative_tolerance(columns) * (std::abs(dy.data()[i]) + std::exp(log_want) * magnitude));
    }
  }
}

TEST_CASE("cross-entropy is the mean of the rows' losses, and its gradient the scaled distance from one-hot") {
  const auto contexts = make_contexts();
  Draw draw(61);
  for (const Shape& shape : {Shape{64, 10}, Shape{1, 3}, Shape{700, 4}, Shape{5, 100}}) {
    const Index rows = shape[0], classes = shape[1];
    const Tensor x = draw_logits(draw, shape);
    const LabelTensor labels = draw.labels(rows, classes);
    Tensor first_loss, dloss(Shape{});
    dloss.data()[0] = 3.0f;
    for (const auto& context : contexts) {
      INFO(name_of(*context) << ": " << to_string(shape));
      Tensor loss(Shape{}), probabilities(shape), softmax(shape), dx(shape), want_dx(shape);
      ops::cross_entropy(*context, {}, x, labels, loss, probabilities);
      ops::softmax(*context, {}, x, softmax);
      require_same_bits(probabilities, softmax);
      ops::cross_entropy_grad(*context, {}, probabilities, labels, dloss, dx);
      const float scale = 3.0f / static_cast<float>(rows);
      for (Index i = 0; i < x.elements(); ++i) {
        const bool hit = labels.data()[i / classes] == i % classes;
        want_dx.data()[i] = scale * (hit ? probabilities.data()[i] - 1.0f : probabilities.data()[i]);
      }
      require_same_bits(dx, want_dx);
      if (context == contexts.front()) first_loss = loss;
      require_same_bits(loss, first_loss);
    }
    double want = 0.0;
    for (Index i = 0; i < rows; ++i) want += log_sum(x, i, classes) - x.view()(i, labels.data()[i]);
    want /= static_cast<double>(rows);
    CAPTURE(to_string(shape), first_loss.data()[0], want);
    CHECK(std::abs(first_loss.data()[0] - want) <= relative_tolerance(classes) * (1.0 + want));
  }
}

TEST_CASE("logits of a hundred million give exact, finite losses") {
  Tensor x({2, 2}), loss(Shape{}), probabilities({2, 2});
  x.data()[0] = x.data()[3] = 1e8f;
  x.data()[1] = x.data()[2] = -1e8f;
  LabelTensor right({2}), wrong({2});
  right.data()[1] = wrong.data()[0] = 1;
  for (const auto& context : make_contexts()) {
    ops::cross_entropy(*context, {}, x, right, loss, probabilities);
    CHECK(loss.data()[0] == 0.0f);
    CHECK(probabilities.data()[0] == 1.0f);
    ops::cross_entropy(*context, {}, x, wrong, loss, probabilities);
    CHECK(loss.data()[0] == 2e8f);
  }
}

TEST_CASE("a NaN stays in its row") {
  Tensor x({2, 3}), y({2, 3});
  x.data()[1] = kNan;
  for (const auto& context : make_contexts()) {
    ops::softmax(*context, {}, x, y);
    for (Index i = 0; i < 3; ++i) CHECK(std::isnan(y.data()[i]));
    for (Index i = 3; i < 6; ++i) CHECK(y.data()[i] == 1.0f / 3.0f);
  }
}

TEST_CASE("softmax and cross-entropy of nothing are legal") {
  Context context;
  Tensor none({0, 3}), no_columns({3, 0}), loss(Shape{}), dloss(Shape{});
  loss.data()[0] = 7.0f;
  ops::softmax(context, {}, none, Tensor({0, 3}));
  ops::log_softmax(context, {}, no_columns, Tensor({3, 0}));
  ops::cross_entropy(context, {}, none, LabelTensor({0}), loss, Tensor({0, 3}));
  CHECK(loss.data()[0] == 0.0f);
  ops::cross_entropy_grad(context, {}, none, LabelTensor({0}), dloss, Tensor({0, 3}));
  CHECK(ops::cross_entropy_shape({}, {0, 0}, {0}).ok());
}

TEST_CASE("a label out of range is an error that names its row") {
  LabelTensor labels({4});
  labels.data()[2] = 3;
  CHECK(ops::check_labels(labels.span(), 4).ok());
  const Status status = ops::check_labels(labels.span(), 3);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::invalid_argument);
  CHECK_THAT(status.error().message(), ContainsSubstring("row 2 is 3") && ContainsSubstring("3 classes (0 to 2)"));
  labels.data()[0] = -1;
  CHECK_THAT(ops::check_labels(labels.span(), 9).error().message(), ContainsSubstring("row 0 is -1"));

  Context context;
  Tensor x({4, 3}), loss(Shape{}), probabilities({4, 3});
  CHECK_THAT(error_of([&] { ops::cross_entropy(context, {}, x, labels, loss, probabilities); }).message(),
             ContainsSubstring("row 0"));
  CHECK_THAT(error_of([&] { ops::cross_entropy_grad(context, {}, probabilities, labels, loss, x); }).message(),
             ContainsSubstring("row 0"));
}

TEST_CASE("wrong operands of the softmax family are errors that name them") {
  CHECK_THAT(ops::softmax_shape({}, Shape{}).error().message(), ContainsSubstring("last axis"));
  CHECK_THAT(ops::cross_entropy_shape({}, {4, 3}, {3}).error().message(),
             ContainsSubstring("[4, 3]") && ContainsSubstring("[3]"));
  CHECK_THAT(ops::cross_entropy_shape({}, {4, 0}, {4}).error().message(), ContainsSubstring("no classes"));

  Context context;
  Tensor x({4, 3}), y({4, 3}), loss(Shape{});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] { ops::softmax(context, {}, x, x); }), ContainsSubstring("does not work in place"));
  CHECK_THAT(message([&] {
               ops::softmax(context, {}, x.view().permute({1, 0}), Tensor({3, 4}));
             }),
             ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] {
               ops::log_softmax_grad(context, {}, y, Tensor({4, 2}), x);
             }),
             ContainsSubstring("dy has shape [4, 2]"));
  CHECK_THAT(message([&] { ops::cross_entropy(context, {}, x, LabelTensor({4}), Tensor({1}), y); }), ContainsSubstring("loss"));
  CHECK_THAT(message([&] { ops::cross_entropy(context, {}, x, LabelTensor({4}), loss, x); }), ContainsSubstring("overlaps"));
}

TEST_CASE("the first of the largest scores is predicted, and a row with a NaN is wrong") {
  const float values[] = {1, 3, 3, 2, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 0, kNan, 5, 6, -0.0f, 0.0f, -1, -2};
  Tensor scores({4, 4});
  std::copy(std::begin(values), std::end(values), scores.data());
  LabelTensor labels({4});
  labels.data()[0] = 1;
  labels.data()[2] = -1;  // not even so
  for (const auto& context : make_contexts()) {
    LabelTensor predicted({4});
    ops::predict(*context, scores, predicted);
    CHECK(predicted.data()[0] == 1);
    CHECK(predicted.data()[1] == 0);
    CHECK(predicted.data()[2] == -1);
    CHECK(predicted.data()[3] == 0);
  }
  CHECK(ops::count_correct(scores, labels) == 3);
  CHECK(ops::count_correct(Tensor({0, 4}), LabelTensor({0})) == 0);
  CHECK(ops::count_correct(Tensor({2, 0}), LabelTensor({2})) == 0);
  CHECK_THAT(error_of([&] { ops::count_correct(scores, LabelTensor({3})); }).message(),
             ContainsSubstring("labels has shape [3]"));
  CHECK_THAT(error_of([&] { ops::count_correct(Tensor({4}), labels); }).message(), ContainsSubstring("[rows, classes]"));
}
