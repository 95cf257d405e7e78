// SPDX-License-Identifier: Apache-2.0
// The tape: recording, eager values, memory, and what it says when it is used wrongly.
#include "../../autograd/tape.hpp"

#include "../support/errors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/autograd/functions.hpp>
#include <vitro/core/random.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::error_of;

namespace {

Tensor tensor(const Shape& shape, std::initializer_list<float> values) {
  Tensor result(shape);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

std::vector<float> values(ConstTensorView view) { return {view.data(), view.data() + view.elements()}; }

}  // namespace

TEST_CASE("Recording runs: a value is there at once and backward appends ordinary nodes") {
  Context context;
  Tape tape(context);
  Tensor w = tensor({2, 2}, {1, 2, 3, 4});
  Tensor b = tensor({2}, {10, -100});
  const Tensor x = tensor({1, 2}, {5, 6});
  const Var wv = tape.parameter(w);
  const Var y = relu(linear(tape.input(x.view()), wv, tape.parameter(b)));
  CHECK(values(tape.value(y)) == std::vector<float>{33, 0});  // 5+18+10, 10+24-100
  CHECK(tape.nodes().size() == 2);
  tape.backward(sum_to(y, Shape()));
  CHECK(values(tape.value(tape.gradient(wv))) == std::vector<float>{5, 0, 6, 0});
  CHECK(tape.nodes().size() > 3);
}

TEST_CASE("A gradient rule appends nodes only for what needs a gradient") {
  Context context;
  Tape tape(context);
  Tensor w({3, 2});
  const Tensor x({4, 3});
  const Var loss = sum_to(linear(tape.input(x.view()), tape.parameter(w)), Shape());
  tape.backward(loss);
  for (const Node& node : tape.nodes()) CHECK(std::string(name(node)) != "linear_grad_input");
}

TEST_CASE("A gradient of several uses is the sum of the contributions, the last use first") {
  Context context;
  Tape tape(context);
  const Tensor x = tensor({1}, {1.0F});
  const Tensor big = tensor({1}, {0x1p24F});
  const Tensor one = tensor({1}, {1.0F});
  const Tensor minus = tensor({1}, {-0x1p24F});
  const Var v = tape.input(x.view(), true);
  // In the order of use the contributions are 2^24, 1, -2^24. From the last use: (-2^24 + 1) + 2^24 = 1; from the first, with
  // 2^24 + 1 rounding to 2^24, the sum would be 0.
  const Var first = mul(v, tape.input(big.view()));
  const Var second = mul(v, tape.input(one.view()));
  const Var third = mul(v, tape.input(minus.view()));
  tape.backward(sum_to(add(add(first, second), third), Shape()));
  CHECK(tape.item(tape.gradient(v)) == 1.0F);
}

TEST_CASE("An input with strides of its own is read through them") {
  Context context;
  Tape tape(context);
  const Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(values(tape.value(tape.input(x.view().permute({1, 0})))) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(values(tape.value(tape.input(x.view().slice(0, 1, 2).broadcast_to({2, 3})))) == std::vector<float>{4, 5, 6, 4, 5, 6});
  CHECK(tape.value(tape.input(x.view())).data() == x.data());
  Tensor p = x;
  CHECK_THAT(error_of([&] { tape.parameter(p.view().permute({1, 0})); }).message(), ContainsSubstring("contiguous"));
}

TEST_CASE("Clearing keeps the memory, so that a second recording of the same network finds its values at the same place") {
  Context context;
  Tape tape(context);
  const Tensor x({64, 784});
  Tensor w({784, 300});
  const float* place = nullptr;
  std::size_t bytes = 0;
  for (int round = 0; round < 4; ++round) {
    tape.clear();
    const Var h = relu(linear(tape.input(x.view()), tape.parameter(w)));
    tape.backward(sum_to(h, Shape()));
    if (round >= 2) {
      CHECK(tape.value(h).data() == place);
      CHECK(tape.arena_bytes() == bytes);
    }
    place = tape.value(h).data();
    bytes = tape.arena_bytes();
  }
}

TEST_CASE("sgd_update reads its numbers when it runs and writes parameter and velocity in place") {
  Context context;
  Tape tape(context);
  Tensor p = tensor({2}, {1.0F, -2.0F});
  Tensor v = tensor({2}, {0.5F, 0.0F});
  const Tensor g = tensor({2}, {0.25F, 1.0F});
  const Tensor hyper = tensor({3}, {0.5F, 0.5F, 0.25F});
  sgd_update(tape.parameter(p), tape.state(v), tape.input(g.view()), tape.input(hyper.view()));
  CHECK(values(v.view()) == std::vector<float>{0.75F, 0.5F});  // 0.5 * 0.5 + (0.25 + 0.25 * 1), 0 + (1 - 0.5)
  CHECK(values(p.view()) == std::vector<float>{0.625F, -2.25F});
}

TEST_CASE("sgd_update writes only to what was handed over for writing, and to nothing that it also reads") {
  Context context;
  Tape tape(context);
  Tensor memory({6});
  const Tensor g({2}), hyper({3});
  const Var gradient = tape.input(g.view()), rates = tape.input(hyper.view());
  const auto part = [&](Index begin) { return TensorView(memory.data() + begin, Shape({2})); };
  const Var p = tape.parameter(part(0)), v = tape.state(part(2));
  const auto message = [&](Var parameter, Var velocity, Var dp) {
    return error_of([&] { sgd_update(parameter, velocity, dp, rates); }).message();
  };
  const Tensor constant({2});
  CHECK_THAT(message(tape.input(constant.view()), v, gradient),
             ContainsSubstring("parameter %") && ContainsSubstring("Tape::parameter()"));
  CHECK_THAT(message(p, tape.input(constant.view()), gradient), ContainsSubstring("velocity %"));
  CHECK_THAT(message(reshape(p, {2}), v, gradient), ContainsSubstring("parameter %"));
  for (const Var& overlapping : {p, tape.state(part(0)), tape.state(part(1))}) {
    CHECK_THAT(message(p, overlapping, gradient), ContainsSubstring("must not overlap"));
    CHECK_THAT(message(p, v, overlapping), ContainsSubstring("must not overlap"));
  }
  CHECK_THAT(message(p, v, tape.input(ConstTensorView(memory.data() + 3, Shape({2})))), ContainsSubstring("must not overlap"));
  CHECK(tape.nodes().size() == 1);  // the reshape
  sgd_update(p, v, gradient, rates);
  CHECK(tape.nodes().size() == 2);
  Tensor none({0}), nothing({0});
  sgd_update(tape.parameter(none), tape.state(nothing), tape.input(none.view()), rates);
}

TEST_CASE("A view without memory is refused unless it has no elements") {
  Context context;
  Tape tape(context);
  const TensorView null(nullptr, Shape({2, 3}));
  CHECK_THAT(error_of([&] { tape.input(null); }).message(), ContainsSubstring("[2, 3]") && ContainsSubstring("null"));
  CHECK_THAT(error_of([&] { tape.input(null.permute({1, 0})); }).message(), ContainsSubstring("null"));
  CHECK_THAT(error_of([&] { tape.parameter(null); }).message(), ContainsSubstring("null"));
  CHECK_THAT(error_of([&] { tape.state(null); }).message(), ContainsSubstring("null"));
  CHECK_THAT(error_of([&] { tape.input(LabelView(nullptr, Shape({2}))); }).message(), ContainsSubstring("null"));
  CHECK(tape.input(TensorView(nullptr, Shape({0, 3}))).shape() == Shape({0, 3}));
}

TEST_CASE("permute shows the order that it refuses as it was given") {
  Context context;
  Tape tape(context);
  const Tensor x({4, 3});
  const Var xv = tape.input(x.view());
  CHECK_THAT(error_of([&] { permute(xv, {1, -1}); }).message(), ContainsSubstring("[1, -1]") && ContainsSubstring("[4, 3]"));
  CHECK_THAT(error_of([&] { permute(xv, {0, 300}); }).message(), ContainsSubstring("[0, 300]"));
  CHECK_THAT(error_of([&] { permute(xv, {0, 1, 2, 3, 4, 5, 6}); }).message(), ContainsSubstring("[0, 1, 2, 3, 4, 5, 6]"));
  CHECK_FALSE(error_of([&] { permute(xv, {1, 1}); }).message().empty());
}

TEST_CASE("Wrong use of a tape is an error that names what is wrong") {
  Context context;
  Tape tape(context);
  Tape other(context);
  const Tensor x({4, 3});
  Tensor w({5, 2});
  const Var xv = tape.input(x.view());
  const Var wv = tape.parameter(w);
  CHECK_THAT(error_of([&] { linear(xv, wv); }).message(), ContainsSubstring("[4, 3]") && ContainsSubstring("[5, 2]"));
  CHECK_THAT(error_of([&] { add(xv, other.input(x.view())); }).message(), ContainsSubstring("one tape"));
  CHECK_THAT(error_of([&] { relu(Var{}); }).message(), ContainsSubstring("one tape"));
  CHECK_THAT(error_of([&] { tape.backward(xv); }).message(), ContainsSubstring("one float"));
  CHECK_THAT(error_of([&] { tape.backward(sum_to(xv, Shape())); }).message(),
             ContainsSubstring("does not depend on a parameter"));
  CHECK_THAT(error_of([&] { tape.gradient(wv); }).message(), ContainsSubstring("backward() has not been called"));
  CHECK_THAT(error_of([&] { tape.item(xv); }).message(), ContainsSubstring("12 elements"));
  const Var loss = sum_to(wv, Shape());
  tape.backward(loss);
  CHECK_THAT(error_of([&] { tape.backward(loss); }).message(), ContainsSubstring("second time"));
  CHECK_THAT(error_of([&] { tape.gradient(xv); }).message(), ContainsSubstring("needs no gradient"));
  tape.clear();
  CHECK_THAT(error_of([&] { relu(wv); }).message(), ContainsSubstring("not on the tape"));
}

TEST_CASE("A label outside the classes is an error that names its row") {
  Context context;
  Tape tape(context);
  const Tensor scores({3, 4});
  const std::vector<std::int32_t> labels = {1, 4, 0};
  const Var logits = tape.input(scores.view(), true);
  const vitro::Error error = error_of([&] { cross_entropy(logits, tape.input(LabelView(labels.data(), Shape({3})))); });
  CHECK_THAT(error.message(), ContainsSubstring("row 1") && ContainsSubstring("4"));
  CHECK_THAT(error_of([&] { cross_entropy(logits, logits); }).message(), ContainsSubstring("cross_entropy"));
}

TEST_CASE("Logits of 1e8 give exact, finite losses") {
  Context context;
  Tape tape(context);
  const Tensor scores = tensor({2, 2}, {1e8F, -1e8F, -1e8F, 1e8F});
  const std::vector<std::int32_t> labels = {0, 0};
  const Var logits = tape.input(scores.view(), true);
  CHECK(tape.item(cross_entropy(logits, tape.input(LabelView(labels.data(), Shape({2}))))) == 1e8F);
}

TEST_CASE("A parameter that does not contribute to the loss has no gradient") {
  Context context;
  Tape tape(context);
  Tensor used({2}), unused({2});
  const Var u = tape.parameter(used);
  const Var n = tape.parameter(unused);
  relu(n);
  tape.backward(sum_to(u, Shape()));
  CHECK(tape.gradient(u).id != kNoTensor);
  CHECK(tape.gradient(n).id == kNoTensor);
}
