// SPDX-License-Identifier: Apache-2.0
// Shape rules of reshape, flatten and permute, and the strided copy.
#include "layout.hpp"

#include "checks.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

std::size_t at(int axis) noexcept { return static_cast<std::size_t>(axis); }

std::string order_text(const PermuteAttrs& attrs) {
  std::array<Index, kMaxRank> order{};
  const std::size_t rank = std::min<std::size_t>(attrs.rank, kMaxRank);
  std::copy_n(attrs.order.begin(), rank, order.begin());
  return to_string(std::span<const Index>(order.data(), rank));
}

// Innermost axis of a copy: `size` elements `stride` apart, to dense memory.
void copy_axis(Index size, Index stride, const float* x, float* y) noexcept {
  if (stride == 1) {
    std::copy_n(x, size, y);
  } else {
    for (Index i = 0; i < size; ++i) y[i] = x[i * stride];
  }
}

}  // namespace

Result<Shape> reshape_shape(const Shape& x, std::span<const Index> dims) {
  std::array<Index, kMaxRank> result{};
  const auto wrong = [&](const char* why) {
    return shape_error("reshape: x of shape " + to_string(x) + " cannot become " + to_string(dims) + ": " + why);
  };
  if (dims.size() > result.size()) return wrong("there are at most 6 axes.");
  std::copy(dims.begin(), dims.end(), result.begin());
  Index* open = nullptr;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != -1) continue;
    if (open != nullptr) return wrong("only one axis may be -1.");
    open = &result[axis];
    *open = 1;
  }
  const Result<Shape> known = Shape::make(std::span<const Index>(result.data(), dims.size()));
  if (!known) return known.error();
  if (open != nullptr) {
    if (known.value().elements() == 0) return wrong("beside an axis of size 0, -1 could be anything.");
    *open = x.elements() / known.value().elements();
  }
  Result<Shape> shape = Shape::make(std::span<const Index>(result.data(), dims.size()));
  if (shape && shape.value().elements() != x.elements()) return wrong("the numbers of elements differ.");
  return shape;
}

Result<Shape> flatten_shape(const FlattenAttrs& attrs, const Shape& x) {
  const int first = attrs.first_axis;
  if (first > x.rank() || first >= kMaxRank) {
    return shape_error("flatten: x of shape " + to_string(x) + " has no axis " + std::to_string(first) + " to flatten from.");
  }
  std::array<Index, kMaxRank> dims{};
  std::copy_n(x.dims().begin(), first, dims.begin());
  dims[at(first)] = 1;
  for (int axis = first; axis < x.rank(); ++axis) dims[at(first)] *= x[axis];
  return Shape::make(std::span<const Index>(dims.data(), at(first) + 1));
}

Result<Shape> permute_shape(const PermuteAttrs& attrs, const Shape& x) {
  std::array<Index, kMaxRank> dims{};
  std::array<bool, kMaxRank> seen{};
  bool legal = attrs.rank == x.rank();
  for (int i = 0; legal && i < attrs.rank; ++i) {
    const std::size_t axis = attrs.order[at(i)];
    legal = axis < attrs.rank && !seen[axis];
    if (!legal) break;
    seen[axis] = true;
    dims[at(i)] = x[static_cast<int>(axis)];
  }
  if (!legal) {
    return shape_error("permute: the order " + order_text(attrs) + " does not name each axis of x, whose shape is " +
                       to_string(x) + ", once.");
  }
  return Shape::make(std::span<const Index>(dims.data(), attrs.rank));
}

PermuteAttrs inverse(const PermuteAttrs& attrs) noexcept {
  PermuteAttrs result;
  result.rank = attrs.rank;
  for (std::uint8_t i = 0; i < attrs.rank; ++i) {
    result.order[i] = static_cast<std::uint8_t>(std::find(attrs.order.begin(), attrs.order.end(), i) - attrs.order.begin());
  }
  return result;
}

CopyProblem copy_problem(const Layout& from) {
  CopyProblem problem;
  for (int axis = 0; axis < from.shape.rank(); ++axis) {
    const CopyProblem::Axis next{from.shape[axis], from.strides[at(axis)]};
    if (next.size == 1) continue;
    if (problem.rank > 0) {
      CopyProblem::Axis& outer = problem.axes[at(problem.rank - 1)];
      if (outer.stride == next.stride * next.size) {
        outer = {outer.size * next.size, next.stride};
        continue;
      }
    }
    problem.axes[at(problem.rank++)] = next;
  }
  if (problem.rank == 0) problem.axes[at(problem.rank++)] = {1, 1};
  return problem;
}

Result<CopyProblem> permute_problem(const PermuteAttrs& attrs, const Shape& x) {
  const Result<Shape> shape = permute_shape(attrs, x);
  if (!shape) return shape.error();
  Layout layout{shape.value()};
  const Strides dense = contiguous_strides(x);
  for (int axis = 0; axis < x.rank(); ++axis) layout.strides[at(axis)] = dense[attrs.order[at(axis)]];
  return copy_problem(layout);
}

void run_copy(Context& context, const CopyProblem& problem, const float* x, float* y) noexcept {
  const CopyProblem::Axis inner = problem.axes[at(problem.rank - 1)];
  Index rows = 1;
  for (int axis = 0; axis < problem.rank - 1; ++axis) rows *= problem.axes[at(axis)].size;
  if (rows == 1) {
    context.parallel_for(inner.size, 1, [&](Index begin, Index end, int) {
      copy_axis(end - begin, inner.stride, x + begin * inner.stride, y + begin);
    });
    return;
  }
  context.parallel_for(rows, inner.size, [&](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      Index offset = 0, rest = row;
      for (int axis = problem.rank - 2; axis >= 0; --axis) {
        const CopyProblem::Axis& outer = problem.axes[at(axis)];
        offset += rest % outer.size * outer.stride;
        rest /= outer.size;
      }
      copy_axis(inner.size, inner.stride, x + offset, y + row * inner.size);
    }
  });
}

void run_fill(Context& context, Index count, float value, float* y) noexcept {
  context.parallel_for(count, 1, [&](Index begin, Index end, int) { std::fill(y + begin, y + end, value); });
}

void permute(Context& context, const PermuteAttrs& attrs, ConstTensorView x, TensorView y) {
  require_shape("permute", {"y", y}, permute_shape(attrs, x.shape()).value());
  require_contiguous("permute", {{"y", y}});
  require_apart("permute", {"y", y}, {{"x", x}});
  Layout layout{y.shape()};
  for (int axis = 0; axis < x.rank(); ++axis) layout.strides[at(axis)] = x.stride(attrs.order[at(axis)]);
  run_copy(context, copy_problem(layout), x.data(), y.data());
}

void copy(Context& context, ConstTensorView x, TensorView y) {
  require_shape("copy", {"y", y}, x.shape());
  require_contiguous("copy", {{"y", y}});
  require_apart("copy", {"y", y}, {{"x", x}});
  run_copy(context, copy_problem(x.layout()), x.data(), y.data());
}

void fill(Context& context, float value, TensorView y) {
  require_contiguous("fill", {{"y", y}});
  run_fill(context, y.elements(), value, y.data());
}

}  // namespace vitro::ops
