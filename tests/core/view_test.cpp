// SPDX-License-Identifier: Apache-2.0
// Views against a naive model: the list of the offsets that a layout visits, in row-major order.
#include "../support/errors.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <vector>
#include <vitro/core/view.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Index;
using vitro::Layout;
using vitro::Shape;
using vitro_test::error_of;

namespace {

// Calls use(index) with every multi-index of the shape, the last axis fastest.
template <class Use>
void for_each_index(const Shape& shape, const Use& use) {
  std::vector<Index> index(static_cast<std::size_t>(shape.rank()), 0);
  for (Index n = 0; n < shape.elements(); ++n) {
    use(index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (++index[a] < shape[axis]) break;
      index[a] = 0;
    }
  }
}

std::vector<Index> offsets(const Layout& layout) {
  std::vector<Index> result;
  for_each_index(layout.shape, [&](const std::vector<Index>& index) {
    Index offset = layout.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * layout.strides[axis];
    result.push_back(offset);
  });
  return result;
}

// Whether some strides visit exactly `visited` under the shape. They are determined: the step along an axis is the difference
// between the first element and its neighbour there.
bool can_visit(const std::vector<Index>& visited, const Shape& shape) {
  if (visited.empty()) return true;
  Layout layout{shape, {}, visited[0]};
  Index distance = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] > 1)
      layout.strides[static_cast<std::size_t>(axis)] = visited[static_cast<std::size_t>(distance)] - visited[0];
    distance *= shape[axis];
  }
  return offsets(layout) == visited;
}

std::vector<Index> range(Index begin, Index end, Index step) {
  std::vector<Index> result;
  for (Index i = begin; step > 0 ? i < end : i > end; i += step) result.push_back(i);
  return result;
}

struct Draw {
  std::mt19937 engine;
  Index operator()(Index low, Index high) {
    return low + static_cast<Index>(engine() % static_cast<unsigned long>(high - low + 1));
  }
};

// A layout of up to 6 axes, made by random slices, permutations and broadcasts.
Layout draw_layout(Draw& draw) {
  std::vector<Index> dims(static_cast<std::size_t>(draw(0, 5)));
  for (Index& dim : dims) dim = draw(1, 4);
  Layout layout = Layout::contiguous(Shape(dims));
  for (Index steps = draw(0, 4); steps > 0; --steps) {
    const int rank = layout.shape.rank();
    const Index what = draw(0, 2);
    if (what == 0 && rank > 0) {
      const int axis = static_cast<int>(draw(0, rank - 1));
      const Index size = layout.shape[axis];
      if (size == 0) continue;
      const Index first = draw(0, size - 1);
      if (draw(0, 1) == 0) {
        const Index end = draw(first, size);
        layout = layout.slice(axis, first, end, draw(1, 3));
      } else {
        const Index end = draw(-1, first);
        layout = layout.slice(axis, first, end, draw(-3, -1));
      }
    } else if (what == 1) {
      std::vector<int> order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), draw.engine);
      layout = layout.permute(order);
    } else {
      std::vector<Index> target(layout.shape.dims().begin(), layout.shape.dims().end());
      for (Index& dim : target) {
        if (dim == 1) dim = draw(1, 3);
      }
      if (rank < 6 && draw(0, 1) == 0) target.insert(target.begin(), draw(1, 3));
      layout = layout.broadcast_to(Shape(target));
    }
  }
  return layout;
}

// A shape with the given number of elements, cut at random.
Shape draw_shape(Draw& draw, Index elements) {
  std::vector<Index> dims;
  while (dims.size() < 5 && (elements > 1 || draw(0, 2) == 0)) {
    Index dim = draw(1, 6);
    while (elements % dim != 0) --dim;
    dims.push_back(dim);
    elements /= dim;
  }
  dims.push_back(elements);
  return Shape(dims);
}

}  // namespace

TEST_CASE("a slice visits begin, begin + step, ... before end, for every legal range and step") {
  for (Index size = 0; size <= 5; ++size) {
    const Layout whole = Layout::contiguous(Shape({2, size, 3}));
    for (Index begin = -3; begin <= 7; ++begin) {
      for (Index end = -3; end <= 7; ++end) {
        for (const Index step :
             {Index{-9}, Index{-2}, Index{-1}, Index{0}, Index{1}, Index{2}, Index{9}, PTRDIFF_MIN, PTRDIFF_MAX}) {
          CAPTURE(size, begin, end, step);
          const bool legal =
              step > 0 ? begin >= 0 && begin <= end && end <= size : step < 0 && begin < size && begin >= end && end >= -1;
          if (!legal) {
            CHECK(error_of([&] { whole.slice(1, begin, end, step); }).code() == ErrorCode::invalid_argument);
            continue;
          }
          std::vector<Index> expected;
          const std::vector<Index> along = std::abs(step) > 9 || step == PTRDIFF_MIN
                                               ? (begin == end ? std::vector<Index>{} : std::vector<Index>{begin})
                                               : range(begin, end, step);
          for (Index outer = 0; outer < 2; ++outer) {
            for (const Index i : along) {
              for (Index inner = 0; inner < 3; ++inner) expected.push_back((outer * size + i) * 3 + inner);
            }
          }
          const Layout sliced = whole.slice(1, begin, end, step);
          REQUIRE(sliced.shape == Shape({2, static_cast<Index>(along.size()), 3}));
          REQUIRE(offsets(sliced) == expected);
        }
      }
    }
  }
}

TEST_CASE("a slice of a slice is what the two ranges say") {
  const Layout layout = Layout::contiguous(Shape({10})).slice(0, 8, 0, -2).slice(0, 3, -1, -3);  // 8 6 4 2, then 2 8
  CHECK(offsets(layout) == std::vector<Index>{2, 8});
}

TEST_CASE("a slice's errors name the axis and its size") {
  const Layout layout = Layout::contiguous(Shape({2, 5}));
  CHECK_THAT(error_of([&] { layout.slice(1, 2, 6, 1); }).message(),
             ContainsSubstring("[2, 6)") && ContainsSubstring("axis 1 of size 5"));
  CHECK_THAT(error_of([&] { layout.slice(2, 0, 1, 1); }).message(), ContainsSubstring("axis 2"));
  CHECK(error_of([&] { layout.slice(-1, 0, 1, 1); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("a view without elements can be sliced where there is no memory") {
  const vitro::TensorView view(nullptr, Shape({0, 8}));
  CHECK(view.slice(1, 3, 8).shape() == Shape({0, 5}));
  CHECK(view.slice(1, 3, 8).data() == nullptr);
}

TEST_CASE("a permutation moves the axes") {
  const Layout layout = Layout::contiguous(Shape({2, 3, 4})).permute(std::vector<int>{2, 0, 1});
  CHECK(layout.shape == Shape({4, 2, 3}));
  CHECK(layout.strides == vitro::Strides{1, 12, 4});
  CHECK(Layout::contiguous(Shape()).permute(std::vector<int>{}).shape == Shape());
}

TEST_CASE("what is no permutation of the axes is refused") {
  const Layout layout = Layout::contiguous(Shape({2, 3}));
  for (const std::vector<int>& order : {std::vector<int>{0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 2}, {1, 40}, {}}) {
    const vitro::Error error = error_of([&] { layout.permute(order); });
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK_THAT(error.message(), ContainsSubstring("[2, 3]") && ContainsSubstring("permutation"));
  }
}

TEST_CASE("a broadcast repeats elements with stride 0") {
  const Layout column = Layout::contiguous(Shape({3, 1})).broadcast_to(Shape({2, 3, 4}));
  CHECK(column.shape == Shape({2, 3, 4}));
  CHECK(column.strides == vitro::Strides{0, 1, 0});
  CHECK_FALSE(column.is_contiguous());
  CHECK(offsets(Layout::contiguous(Shape()).broadcast_to(Shape({2, 2}))) == std::vector<Index>{0, 0, 0, 0});
  CHECK(Layout::contiguous(Shape({1, 3})).broadcast_to(Shape({0, 3})).shape.elements() == 0);
}

TEST_CASE("a broadcast to a shape that is not larger is refused") {
  for (const auto& [from, to] : {std::pair{Shape({3}), Shape({4})},
                                 {Shape({3, 2}), Shape({2})},
                                 {Shape({3}), Shape({1})},
                                 {Shape({3}), Shape({3, 1})},
                                 {Shape({2}), Shape({0})}}) {
    const vitro::Error error = error_of([&, f = from, t = to] { Layout::contiguous(f).broadcast_to(t); });
    CHECK(error.code() == ErrorCode::shape_mismatch);
    CHECK_THAT(error.message(), ContainsSubstring(to_string(from)) && ContainsSubstring(to_string(to)));
  }
}

TEST_CASE("drawn layouts reshape exactly where some strides would do, and visit the same elements") {
  Draw draw{std::mt19937(20240531)};
  int possible = 0;
  int impossible = 0;
  for (int round = 0; round < 20000; ++round) {
    const Layout layout = draw_layout(draw);
    if (layout.shape.elements() > 2000) continue;
    const std::vector<Index> visited = offsets(layout);
    const Shape target = draw_shape(draw, layout.shape.elements());
    CAPTURE(to_string(layout.shape), layout.strides, to_string(target));
    if (can_visit(visited, target)) {
      ++possible;
      const Layout reshaped = layout.reshape(target);
      REQUIRE(reshaped.shape == target);
      REQUIRE(offsets(reshaped) == visited);
    } else {
      ++impossible;
      const vitro::Error error = error_of([&] { layout.reshape(target); });
      REQUIRE(error.code() == ErrorCode::shape_mismatch);
      REQUIRE_THAT(error.message(), ContainsSubstring("without a copy"));
    }
  }
  CHECK(possible > 1000);
  CHECK(impossible > 1000);
}

TEST_CASE("a reshape keeps the number of elements and copies nothing") {
  std::vector<float> memory(12);
  const vitro::TensorView view(memory.data(), Shape({3, 4}));
  const vitro::TensorView reshaped = view.reshape(Shape({2, 6}));
  CHECK(reshaped.data() == memory.data());
  CHECK(view.slice(0, 1, 3).reshape(Shape({8})).data() == memory.data() + 4);
  CHECK_THAT(error_of([&] { view.reshape(Shape({5, 2})); }).message(), ContainsSubstring("12") && ContainsSubstring("10"));
  CHECK_THAT(error_of([&] { view.permute({1, 0}).reshape(Shape({12})); }).message(), ContainsSubstring("strides [1, 4]"));
  CHECK(vitro::TensorView(nullptr, Shape({0, 3})).reshape(Shape({7, 0, 2})).elements() == 0);
}

TEST_CASE("contiguous means dense and row-major; axes of size 1 and empty layouts do not count") {
  Draw draw{std::mt19937(7)};
  for (int round = 0; round < 2000; ++round) {
    const Layout layout = draw_layout(draw);
    std::vector<Index> dense(static_cast<std::size_t>(layout.shape.elements()));
    std::iota(dense.begin(), dense.end(), layout.offset);
    CAPTURE(to_string(layout.shape), layout.strides);
    REQUIRE(layout.is_contiguous() == (offsets(layout) == dense));
  }
  Layout odd = Layout::contiguous(Shape({3, 1, 2}));
  odd.strides[1] = -77;
  CHECK(odd.is_contiguous());
}

TEST_CASE("an element of a view is where its strides say") {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0F);
  const vitro::TensorView view = vitro::TensorView(memory.data(), Shape({2, 3, 4})).permute({2, 0, 1}).slice(0, 3, -1, -1);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 2; ++j) {
      for (Index k = 0; k < 3; ++k) CHECK(view(i, j, k) == static_cast<float>(j * 12 + k * 4 + (3 - i)));
    }
  }
  CHECK(view.rank() == 3);
  CHECK(view.dim(0) == 4);
  CHECK(view.stride(0) == -1);
  CHECK(view.elements() == 24);
}

TEST_CASE("a copy between drawn layouts copies each element once") {
  Draw draw{std::mt19937(99)};
  std::vector<float> from(5000);
  std::iota(from.begin(), from.end(), 1.0F);
  int strided = 0;
  for (int round = 0; round < 2000; ++round) {
    const Layout source = draw_layout(draw);
    if (source.shape.elements() > 2000) continue;
    // The destination: dense in another order of the axes, with a gap after each element.
    std::vector<int> order(static_cast<std::size_t>(source.shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), draw.engine);
    std::vector<Index> dims;
    for (const int axis : order) dims.push_back(source.shape[axis]);
    dims.push_back(2);
    Layout target{source.shape, {}, 0};
    const vitro::Strides dense = dims.size() <= 6 ? vitro::contiguous_strides(Shape(dims)) : vitro::Strides{};
    if (dims.size() > 6) continue;
    for (std::size_t i = 0; i < order.size(); ++i) target.strides[static_cast<std::size_t>(order[i])] = dense[i];
    std::vector<float> to(static_cast<std::size_t>(Shape(dims).elements()) + 1, -1.0F);
    vitro::copy({from.data(), source}, {to.data(), target});
    std::vector<float> expected(to.size(), -1.0F);
    const std::vector<Index> read = offsets(source);
    const std::vector<Index> written = offsets(target);
    for (std::size_t i = 0; i < read.size(); ++i)
      expected[static_cast<std::size_t>(written[i])] = from[static_cast<std::size_t>(read[i])];
    REQUIRE(to == expected);
    ++strided;
  }
  CHECK(strided > 1000);
}

TEST_CASE("a copy between different shapes is refused") {
  std::vector<float> memory(6);
  const vitro::TensorView view(memory.data(), Shape({2, 3}));
  const vitro::Error error = error_of([&] { vitro::copy(view, view.reshape(Shape({3, 2}))); });
  CHECK(error.code() == ErrorCode::shape_mismatch);
  CHECK_THAT(error.message(), ContainsSubstring("[2, 3]") && ContainsSubstring("[3, 2]"));
}
