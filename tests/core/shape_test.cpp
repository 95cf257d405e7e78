// SPDX-License-Identifier: Apache-2.0
// Shapes: their limits, their strides, and NumPy's broadcasting.
#include "../support/errors.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <vector>
#include <vitro/core/shape.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Index;
using vitro::Shape;
using vitro_test::error_of;

namespace {

constexpr Index kMaxElements = std::numeric_limits<Index>::max() / 8;

vitro::Result<Shape> make(const std::vector<Index>& dims) { return Shape::make(dims); }

}  // namespace

TEST_CASE("a shape keeps its dimensions and multiplies them") {
  const Shape shape({2, 3, 4});
  CHECK(shape.rank() == 3);
  CHECK(shape[0] == 2);
  CHECK(shape[2] == 4);
  CHECK(shape.elements() == 24);
  CHECK(shape.dims().size() == 3);
  CHECK(to_string(shape) == "[2, 3, 4]");
}

TEST_CASE("a scalar has rank 0 and one element") {
  CHECK(Shape().rank() == 0);
  CHECK(Shape().elements() == 1);
  CHECK(Shape() == Shape(std::span<const Index>()));
  CHECK(to_string(Shape()) == "[]");
}

TEST_CASE("a dimension may be zero") {
  CHECK(Shape({0}).elements() == 0);
  CHECK(Shape({3, 0, 5}).elements() == 0);
}

TEST_CASE("shapes are equal if rank and dimensions are") {
  CHECK(Shape({2, 3}) == Shape({2, 3}));
  CHECK(Shape({2, 3}) != Shape({3, 2}));
  CHECK(Shape({2, 3}) != Shape({2, 3, 1}));
  CHECK(Shape({2, 0}) != Shape({2}));
}

TEST_CASE("more than six dimensions are refused") {
  CHECK(make({1, 2, 3, 4, 5, 6}).ok());
  const vitro::Error error = make({1, 2, 3, 4, 5, 6, 7}).error();
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_THAT(error.message(), ContainsSubstring("[1, 2, 3, 4, 5, 6, 7]") && ContainsSubstring("at most 6"));
}

TEST_CASE("a negative dimension is refused, with its axis") {
  const vitro::Error error = make({4, -2}).error();
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_THAT(error.message(), ContainsSubstring("-2 at axis 1"));
  CHECK(error_of([] { Shape({-1}); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("the number of elements, times eight bytes, must fit the index type") {
  CHECK(make({kMaxElements}).ok());
  CHECK(make({kMaxElements + 1}).error().code() == ErrorCode::overflow);
  CHECK(make({kMaxElements / 2, 2}).ok());
  CHECK(make({kMaxElements / 2 + 1, 2}).error().code() == ErrorCode::overflow);
  CHECK(make({Index{1} << 32, Index{1} << 32}).error().code() == ErrorCode::overflow);
  CHECK(make({PTRDIFF_MAX, PTRDIFF_MAX, PTRDIFF_MAX}).error().code() == ErrorCode::overflow);
  // A zero does not excuse the other dimensions: strides are their products.
  CHECK(make({0, Index{1} << 40, Index{1} << 40}).error().code() == ErrorCode::overflow);
  CHECK(make({Index{1} << 40, Index{1} << 40, 0}).error().code() == ErrorCode::overflow);
  CHECK(error_of([] { Shape({PTRDIFF_MAX, 2}); }).code() == ErrorCode::overflow);
}

TEST_CASE("one dimension can be replaced, under the same limits") {
  CHECK(Shape({2, 3}).with(1, 7) == Shape({2, 7}));
  CHECK(Shape({2, 3}).with(0, 0) == Shape({0, 3}));
  CHECK(error_of([] { Shape({2, 3}).with(1, -1); }).code() == ErrorCode::invalid_argument);
  CHECK(error_of([] { Shape({2, 3}).with(0, kMaxElements); }).code() == ErrorCode::overflow);
  CHECK_THAT(error_of([] { Shape({2, 3}).with(2, 1); }).message(), ContainsSubstring("axis 2 is outside shape [2, 3]"));
  CHECK(error_of([] { Shape({2, 3}).with(-1, 1); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("contiguous strides are row-major, and zero-sized axes count as one") {
  CHECK(vitro::contiguous_strides(Shape({2, 3, 4})) == vitro::Strides{12, 4, 1});
  CHECK(vitro::contiguous_strides(Shape({2, 0, 4})) == vitro::Strides{4, 4, 1});
  CHECK(vitro::contiguous_strides(Shape()) == vitro::Strides{});
}

TEST_CASE("shapes broadcast as NumPy's do") {
  const auto broadcast = [](const Shape& a, const Shape& b) {
    const Shape joint = vitro::broadcast_shapes(a, b).value();
    CHECK(joint == vitro::broadcast_shapes(b, a).value());
    return joint;
  };
  CHECK(broadcast(Shape({2, 3}), Shape({2, 3})) == Shape({2, 3}));
  CHECK(broadcast(Shape({5, 1, 4}), Shape({3, 1})) == Shape({5, 3, 4}));
  CHECK(broadcast(Shape(), Shape({7, 2})) == Shape({7, 2}));
  CHECK(broadcast(Shape({1, 2, 3, 4, 5, 6}), Shape({6})) == Shape({1, 2, 3, 4, 5, 6}));
  CHECK(broadcast(Shape({0, 3}), Shape({1, 3})) == Shape({0, 3}));
  CHECK(broadcast(Shape({1}), Shape({0})) == Shape({0}));
}

TEST_CASE("shapes that do not broadcast are named, both of them") {
  const vitro::Error error = vitro::broadcast_shapes(Shape({2, 3}), Shape({4, 3})).error();
  CHECK(error.code() == ErrorCode::shape_mismatch);
  CHECK_THAT(error.message(), ContainsSubstring("[2, 3]") && ContainsSubstring("[4, 3]") && ContainsSubstring("2 and 4"));
  CHECK_FALSE(vitro::broadcast_shapes(Shape({0}), Shape({2})).ok());
  CHECK_FALSE(vitro::broadcast_shapes(Shape({2, 3}), Shape({2})).ok());
  CHECK(vitro::broadcast_shapes(Shape({kMaxElements, 1}), Shape({2})).error().code() == ErrorCode::overflow);
}
