// SPDX-License-Identifier: Apache-2.0
// Shape rules of reshape, flatten and permute, and copies of drawn views.
#include "../../ops/layout.hpp"

#include "../support/errors.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <utility>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

Result<Shape> reshaped(const Shape& x, std::initializer_list<Index> dims) {
  return ops::reshape_shape(x, std::span<const Index>(dims.begin(), dims.size()));
}

ops::PermuteAttrs order(std::initializer_list<int> axes) {
  ops::PermuteAttrs attrs;
  for (const int axis : axes) attrs.order[attrs.rank++] = static_cast<std::uint8_t>(axis);
  return attrs;
}

}  // namespace

TEST_CASE("reshape keeps the number of elements and fills in one open axis") {
  CHECK(reshaped({2, 3, 4}, {6, 4}).value() == Shape{6, 4});
  CHECK(reshaped({2, 3, 4}, {-1, 8}).value() == Shape{3, 8});
  CHECK(reshaped({}, {1, -1}).value() == Shape{1, 1});
  CHECK(reshaped({0, 3}, {3, 0}).value() == Shape{3, 0});
  CHECK(reshaped({0, 3}, {-1, 3}).value() == Shape{0, 3});
  CHECK_THAT(reshaped({2, 3}, {4, 2}).error().message(), ContainsSubstring("[2, 3]") && ContainsSubstring("[4, 2]"));
  CHECK_THAT(reshaped({2, 3}, {-1, 4}).error().message(), ContainsSubstring("differ"));
  CHECK_THAT(reshaped({2, 3}, {-1, -1}).error().message(), ContainsSubstring("only one axis"));
  CHECK_THAT(reshaped({0, 3}, {-1, 0}).error().message(), ContainsSubstring("could be anything"));
  CHECK_THAT(reshaped({1}, {1, 1, 1, 1, 1, 1, 1}).error().message(), ContainsSubstring("at most 6"));
  CHECK_FALSE(reshaped({6}, {-2, -3}).ok());
}

TEST_CASE("flatten makes one axis of all from the first one on") {
  CHECK(ops::flatten_shape({}, {64, 4, 4, 16}).value() == Shape{64, 256});
  CHECK(ops::flatten_shape({0}, {2, 3}).value() == Shape{6});
  CHECK(ops::flatten_shape({2}, {2, 3}).value() == Shape{2, 3, 1});
  CHECK(ops::flatten_shape({}, {0, 4, 4}).value() == Shape{0, 16});
  CHECK_THAT(ops::flatten_shape({3}, {2, 3}).error().message(), ContainsSubstring("[2, 3]") && ContainsSubstring("axis 3"));
  CHECK_FALSE(ops::flatten_shape({6}, {1, 1, 1, 1, 1, 1}).ok());
}

TEST_CASE("permute moves axes, and its inverse moves them back") {
  Draw draw(50);
  for (int i = 0; i < 40; ++i) {
    const Index rank = draw.range(0, 6);
    std::vector<Index> dims;
    ops::PermuteAttrs attrs;
    for (Index axis = 0; axis < rank; ++axis) dims.push_back(draw.one_in(12) ? 0 : draw.range(1, 5));
    attrs.rank = static_cast<std::uint8_t>(rank);
    for (Index axis = rank; axis-- > 1;) {
      std::swap(attrs.order[static_cast<std::size_t>(axis)], attrs.order[static_cast<std::size_t>(draw.range(0, axis))]);
    }
    const Tensor x = draw.tensor(Shape(std::span<const Index>(dims)), true);
    const Shape shape = ops::permute_shape(attrs, x.shape()).value();
    std::vector<int> axes(attrs.order.begin(), attrs.order.begin() + rank);
    const ConstTensorView moved(x.data(), x.view().layout().permute(axes));
    REQUIRE(moved.shape() == shape);
    for (const auto& context : make_contexts()) {
      Tensor y(shape), back(x.shape());
      ops::permute(*context, attrs, x, y);
      require_same_bits(y, contiguous(moved));
      ops::permute(*context, ops::inverse(attrs), y, back);
      require_same_bits(back, x);
      Tensor by_problem(shape);
      ops::run_copy(*context, ops::permute_problem(attrs, x.shape()).value(), x.data(), by_problem.data());
      require_same_bits(by_problem, y);
    }
  }
}

TEST_CASE("copy reads reversed, strided and repeated views as what they show") {
  Draw draw(51);
  const Tensor x = draw.tensor({6, 7, 8}), row = draw.tensor({8}), one = draw.tensor({});
  for (const ConstTensorView& view :
       {x.view().slice(0, 5, -1, -2), x.view().slice(2, 1, 8, 3), x.view().permute({2, 0, 1}).slice(1, 5, 0, -1),
        row.view().broadcast_to({6, 7, 8}), one.view().broadcast_to({3, 3}), x.view().slice(1, 2, 2), one.view()}) {
    for (const auto& context : make_contexts()) {
      INFO(name_of(*context) << ": " << to_string(view.shape()));
      Tensor y(view.shape());
      ops::copy(*context, view, y);
      require_same_bits(y, contiguous(view));
    }
  }
}

TEST_CASE("wrong orders and outputs are errors that name them") {
  CHECK_THAT(ops::permute_shape(order({0, 0}), {2, 3}).error().message(),
             ContainsSubstring("[0, 0]") && ContainsSubstring("[2, 3]"));
  CHECK_THAT(ops::permute_shape(order({0, 2}), {2, 3}).error().message(), ContainsSubstring("[0, 2]"));
  CHECK_FALSE(ops::permute_shape(order({1, 0}), {2, 3, 4}).ok());

  Context context;
  Tensor x({4, 3});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] {
               ops::permute(context, order({1, 0}), x, Tensor({4, 3}));
             }),
             ContainsSubstring("y has shape [4, 3]"));
  CHECK_THAT(message([&] {
               ops::copy(context, x.view().permute({1, 0}), x.view().reshape({3, 4}));
             }),
             ContainsSubstring("overlaps"));
  CHECK_THAT(message([&] { ops::copy(context, Tensor({3, 4}), x.view().permute({1, 0})); }), ContainsSubstring("contiguous()"));
}
