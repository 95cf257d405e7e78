// SPDX-License-Identifier: Apache-2.0
// Operations that move elements without changing them: reshape, flatten, permute, copy, fill.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace vitro::ops {

// The same elements in row-major order under other dimensions, of which one may be -1 (whatever is left over). Reshaping copies
// nothing: a dense buffer is read under the new shape. Errors: element counts that differ, more than one -1, a -1 beside a 0.
Result<Shape> reshape_shape(const Shape& x, std::span<const Index> dims);

// Axes first_axis, first_axis + 1, ... become one: [N, H, W, C] -> [N, H * W * C] for first_axis = 1 (in the order h, w, c).
struct FlattenAttrs {
  std::uint8_t first_axis = 1;
};

// Error: first_axis > rank. first_axis = rank appends an axis of size 1.
Result<Shape> flatten_shape(const FlattenAttrs& attrs, const Shape& x);

// Axis i of the result is axis order[i] of x, for i < rank.
struct PermuteAttrs {
  std::array<std::uint8_t, kMaxRank> order{0, 1, 2, 3, 4, 5};
  std::uint8_t rank = 0;
};

// Errors: a rank other than x's, an order that is not a permutation.
Result<Shape> permute_shape(const PermuteAttrs& attrs, const Shape& x);
// The permutation that undoes this one; the gradient of permute is permute by it. Requires a permutation.
PermuteAttrs inverse(const PermuteAttrs& attrs) noexcept;

// Strided elements into a dense array.
struct CopyProblem {
  struct Axis {
    Index size, stride;
  };
  std::array<Axis, kMaxRank> axes{};  // outermost first, merged where source and copy step as one
  std::int32_t rank = 0;
};

CopyProblem copy_problem(const Layout& from);  // every layout is legal: strides may be 0 or negative
Result<CopyProblem> permute_problem(const PermuteAttrs& attrs, const Shape& x);  // for dense x

// y = the elements of x in the problem's order; y is dense and does not overlap x. No scratch.
void run_copy(Context& context, const CopyProblem& problem, const float* x, float* y) noexcept;

// y[0 .. count) = value.
void run_fill(Context& context, Index count, float value, float* y) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. x may have any strides; y is contiguous and overlaps no input.
void permute(Context& context, const PermuteAttrs& attrs, ConstTensorView x, TensorView y);
void copy(Context& context, ConstTensorView x, TensorView y);
void fill(Context& context, float value, TensorView y);

}  // namespace vitro::ops
