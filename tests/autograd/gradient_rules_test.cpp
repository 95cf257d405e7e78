// SPDX-License-Identifier: Apache-2.0
// Shape rules refuse what the functions would never record, and nodes without a gradient rule say so.
#include "../support/errors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/autograd/functions.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::error_of;

namespace {

TensorId add(TensorTable& table, const Shape& shape, DType type = DType::f32) {
  return table.add({shape, {}, type, Role::computed, false});
}

std::string refusal(const Node& node, const TensorTable& table) {
  const Status status = check_shapes(node, table);
  REQUIRE_FALSE(status.ok());
  return status.error().message();
}

}  // namespace

TEST_CASE("A shape rule names the node, the tensor and the shape it should have") {
  TensorTable t;
  const TensorId x = add(t, {4, 3}), w = add(t, {3, 2}), y = add(t, {4, 2}), wrong = add(t, {4, 5}), bias = add(t, {2});
  CHECK(check_shapes(Linear{x, w, kNoTensor, y}, t).ok());
  CHECK(check_shapes(Linear{x, w, bias, y}, t).ok());
  CHECK_THAT(refusal(Linear{x, w, kNoTensor, wrong}, t), ContainsSubstring("linear: %3 f32[4, 5] should be f32[4, 2]"));
  CHECK_THAT(refusal(Linear{x, w, x, y}, t), ContainsSubstring("%0 f32[4, 3] should be f32[2]"));
  CHECK_THAT(refusal(LinearGradInput{wrong, w, x}, t), ContainsSubstring("linear_grad_input: %3"));
  CHECK_THAT(refusal(LinearGradWeight{x, wrong, w}, t), ContainsSubstring("linear_grad_weight: %3"));
  CHECK_THAT(refusal(BiasGrad{y, x}, t), ContainsSubstring("[4, 3]"));
  CHECK_THAT(refusal(ReluGrad{x, y, x}, t), ContainsSubstring("relu_grad: %2"));
  CHECK_THAT(refusal(Reshape{x, y}, t), ContainsSubstring("[4, 3]") && ContainsSubstring("[4, 2]"));
}

TEST_CASE("A shape rule refuses another element type and a tensor that is not on the tape") {
  TensorTable t;
  const TensorId x = add(t, {4, 3}), labels = add(t, {4}, DType::i32), loss = add(t, Shape());
  CHECK(check_shapes(CrossEntropy{x, labels, loss, x}, t).ok());
  CHECK_THAT(refusal(CrossEntropy{x, loss, loss, x}, t), ContainsSubstring("i32"));
  CHECK_THAT(refusal(Relu{labels, labels}, t), ContainsSubstring("should be f32[4]"));
  CHECK_THAT(refusal(Relu{x, TensorId{99}}, t), ContainsSubstring("relu: %99 (not in this tape)"));
}

TEST_CASE("The position of a pooled maximum takes one byte in windows of up to 256 and four beyond") {
  TensorTable t;
  const TensorId x = add(t, {1, 17, 17, 1}), small = add(t, {1, 2, 2, 1}), one = add(t, {1, 1, 1, 1});
  const TensorId small_u8 = add(t, {1, 2, 2, 1}, DType::u8), one_u8 = add(t, {1, 1, 1, 1}, DType::u8);
  const TensorId one_i32 = add(t, {1, 1, 1, 1}, DType::i32);
  CHECK(check_shapes(MaxPool2d{x, small, small_u8, {.kernel_h = 16, .kernel_w = 16}}, t).ok());
  CHECK(check_shapes(MaxPool2d{x, one, one_i32, {.kernel_h = 17, .kernel_w = 17}}, t).ok());
  CHECK_FALSE(check_shapes(MaxPool2d{x, one, one_u8, {.kernel_h = 17, .kernel_w = 17}}, t).ok());
}

TEST_CASE("Differentiating through what has no rule is refused by name") {
  Context context;
  Tape tape(context);
  Tensor w({2, 3});
  const std::vector<std::int32_t> labels = {0, 1};
  const Var labels_var = tape.input(LabelView(labels.data(), Shape({2})));
  const CrossEntropyResult result = cross_entropy_with_probabilities(tape.parameter(w), labels_var);
  const vitro::Error error = error_of([&] { tape.backward(sum_to(result.probabilities, Shape())); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK_THAT(error.message(), ContainsSubstring("cross_entropy"));
}
