// SPDX-License-Identifier: Apache-2.0
// Broadcasting sums and products over drawn shapes and strides, and the order in which their gradients are summed.
#include "../../ops/broadcast.hpp"

#include "../support/errors.hpp"
#include "support.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// The element of a view at a row-major position of the shape that it is broadcast to.
float element_at(const ConstTensorView& view, const Shape& shape, Index position) {
  const ConstTensorView wide = view.broadcast_to(shape);
  const float* element = wide.data();
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    element += position % shape[axis] * wide.stride(axis);
    position /= shape[axis];
  }
  return *element;
}

void check_binary(const ConstTensorView& a, const ConstTensorView& b, const std::vector<std::unique_ptr<Context>>& contexts) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape()).value();
  Tensor want_sum(shape), want_product(shape);
  for (Index i = 0; i < shape.elements(); ++i) {
    want_sum.data()[i] = element_at(a, shape, i) + element_at(b, shape, i);
    want_product.data()[i] = element_at(a, shape, i) * element_at(b, shape, i);
  }
  for (const auto& context : contexts) {
    INFO(name_of(*context) << ": " << to_string(a.shape()) << " and " << to_string(b.shape()));
    Tensor y(shape);
    ops::add(*context, a, b, y);
    require_same_bits(y, want_sum);
    ops::mul(*context, a, b, y);
    require_same_bits(y, want_product);
  }
}

// Two shapes that broadcast: each drops leading axes and has ones of its own.
Shape draw_operand(Draw& draw, const Shape& shape) {
  std::vector<Index> dims(shape.dims().begin(), shape.dims().end());
  for (Index& dim : dims) dim = draw.one_in(3) ? 1 : dim;
  dims.erase(dims.begin(), dims.begin() + (draw.one_in(3) ? draw.range(0, shape.rank()) : 0));
  return Shape(std::span<const Index>(dims));
}

Shape draw_shape(Draw& draw) {
  std::vector<Index> dims;
  for (Index rank = draw.range(0, 6); rank > 0; --rank)
    dims.push_back(draw.one_in(15) ? 0 : draw.one_in(8) ? 18 : draw.range(1, 4));
  return Shape(std::span<const Index>(dims));
}

// The contract's order: groups of adjacent summed axes, the last one first; by lanes where it ends the shape, else in chunks.
Tensor expected_sum(const Tensor& dy, const Shape& to) {
  std::vector<Index> dims(dy.shape().dims().begin(), dy.shape().dims().end());
  std::vector<float> values(dy.span().begin(), dy.span().end());
  const std::size_t missing = dims.size() - static_cast<std::size_t>(to.rank());
  const auto is_summed = [&](std::size_t axis) {
    return dims[axis] != 1 && (axis < missing || to[static_cast<int>(axis - missing)] == 1);
  };
  for (std::size_t last = dims.size(); last-- > 0;) {
    if (!is_summed(last)) continue;
    std::size_t first = last;
    while (first > 0 && (dims[first - 1] == 1 || is_summed(first - 1))) --first;
    Index outer = 1, count = 1, inner = 1;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) (axis < first ? outer : axis <= last ? count : inner) *= dims[axis];
    bool ends_shape = true;
    for (std::size_t axis = last + 1; axis < dims.size(); ++axis)
      ends_shape = ends_shape && dy.shape()[static_cast<int>(axis)] == 1;
    std::vector<float> sums;
    for (Index o = 0; o < outer; ++o) {
      for (Index i = 0; i < inner; ++i) {
        const auto element = [&](Index k) { return values[static_cast<std::size_t>((o * count + k) * inner + i)]; };
        sums.push_back(ends_shape ? sum_lanes(count, element) : sum_chunks(count, element));
      }
    }
    values = sums;
    for (std::size_t axis = first; axis <= last; ++axis) dims[axis] = 1;
  }
  Tensor dx(to);
  REQUIRE(static_cast<Index>(values.size()) == dx.elements());
  std::copy(values.begin(), values.end(), dx.data());
  return dx;
}

}  // namespace

TEST_CASE("sums and products of broadcast tensors are element by element on every context") {
  const auto contexts = make_contexts();
  Draw draw(40);
  for (int i = 0; i < 60; ++i) {
    const Shape shape = draw_shape(draw);
    const Tensor a = draw.tensor(draw_operand(draw, shape), true), b = draw.tensor(draw_operand(draw, shape), true);
    check_binary(a, b, contexts);
  }
}

TEST_CASE("sums and products read permuted, reversed and repeated views as what they show") {
  const auto contexts = make_contexts();
  Draw draw(41);
  const Tensor a = draw.tensor({20, 6, 5}), b = draw.tensor({5, 6, 20}), row = draw.tensor({20});
  check_binary(a.view().permute({2, 1, 0}), b, contexts);
  check_binary(a.view().slice(1, 5, -1, -2), a.view().slice(1, 0, 6, 2), contexts);
  check_binary(row.view().broadcast_to({5, 6, 20}), a.view().permute({2, 1, 0}), contexts);
  check_binary(row.view().slice(0, 19, -1, -1), b, contexts);
}

TEST_CASE("a sum may be written over an operand that has its place and shape") {
  Draw draw(42);
  for (const auto& context : make_contexts()) {
    const Tensor a = draw.tensor({3, 40}), b = draw.tensor({40});
    Tensor want({3, 40}), left = a, square = a;
    ops::add(*context, a, b, want);
    ops::add(*context, left, b, left);
    require_same_bits(left, want);
    ops::mul(*context, a, a, want);
    ops::mul(*context, square, square, square);
    require_same_bits(square, want);
  }
}

TEST_CASE("the gradient of broadcasting sums in the order that the shapes alone decide") {
  const auto contexts = make_contexts();
  Draw draw(43);
  const auto check = [&](const Shape& from, const Shape& to, bool awkward) {
    const Tensor dy = draw.tensor(from, awkward);
    const Tensor want = expected_sum(dy, to);
    for (const auto& context : contexts) {
      INFO(name_of(*context) << ": " << to_string(from) << " to " << to_string(to));
      Tensor dx(to);
      for (float& value : dx.span()) value = std::numeric_limits<float>::quiet_NaN();
      ops::sum_to_shape(*context, dy, dx);
      require_same_bits(dx, want);
    }
  };
  for (int i = 0; i < 80; ++i) {
    const Shape from = draw_shape(draw);
    check(from, draw_operand(draw, from), i % 4 == 0);
  }
  check({1030, 6}, {6}, false);         // an outer axis in three chunks
  check({6, 1030}, {6, 1}, false);      // a trailing axis by lanes
  check({1030, 3, 40}, {3, 1}, false);  // lanes, then chunks
  check({3, 600, 4, 5}, {3, 1, 4, 1}, false);
  check({2, 3, 2, 3, 2, 3}, {1, 3, 1, 3, 1, 3}, false);
  check({2, 3}, {2, 3}, false);
  check({700}, {}, false);
}

TEST_CASE("an element that is alone in its sum keeps its sign of zero only where nothing is summed") {
  Context context;
  Tensor dy({1, 2}), dx({2});
  dy.data()[0] = dy.data()[1] = -0.0f;
  ops::sum_to_shape(context, dy, dx);  // the axis of size 1 is no sum
  CHECK(std::signbit(dx.data()[0]));
}

TEST_CASE("shapes that do not broadcast are errors that name both") {
  CHECK_THAT(ops::binary_shape({ops::BinaryOp::mul}, {2, 3}, {4}).error().message(),
             ContainsSubstring("mul:") && ContainsSubstring("[2, 3]") && ContainsSubstring("[4]"));
  CHECK_THAT(ops::sum_to_shape_problem({2, 3}, {4}).error().message(), ContainsSubstring("[2, 3]") && ContainsSubstring("[4]"));
  CHECK_FALSE(ops::sum_to_shape_problem({1, 3}, {2, 3}).ok());
  CHECK_FALSE(ops::sum_to_shape_problem({3}, {1, 3}).ok());

  Context context;
  Tensor a({4, 3}), y({4, 3});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] { ops::add(context, a, a, Tensor({3, 4})); }), ContainsSubstring("add: y has shape [3, 4]"));
  CHECK_THAT(message([&] { ops::add(context, a, a.view().slice(0, 1, 2), a); }), ContainsSubstring("overlaps the memory of b"));
  CHECK_THAT(message([&] { ops::add(context, a, a, y.view().slice(0, 3, -1, -1)); }), ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] {
               ops::sum_to_shape(context, a.view().permute({1, 0}), Tensor({4}));
             }),
             ContainsSubstring("sum_to_shape: dy"));
}
