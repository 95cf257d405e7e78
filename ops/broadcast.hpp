// SPDX-License-Identifier: Apache-2.0
// Sums and products of tensors that broadcast against each other, and the gradient of broadcasting.
#pragma once

#include "../core/view.hpp"
#include "context.hpp"

#include <array>
#include <cstdint>

namespace vitro::ops {

enum class BinaryOp : std::uint8_t { add, mul };

struct BinaryAttrs {
  BinaryOp op = BinaryOp::add;
};

// The shape both broadcast to (NumPy's rule: axes aligned at the end; equal, or one of them 1). The error names both shapes.
Result<Shape> binary_shape(const BinaryAttrs& attrs, const Shape& a, const Shape& b);

struct BinaryProblem {
  struct Axis {
    Index size, a_stride, b_stride;
  };
  std::array<Axis, kMaxRank> axes{};  // outermost first, merged where all three arrays step as one; y is dense over them
  std::int32_t rank = 0;
  BinaryOp op = BinaryOp::add;
};

// For dense a and b, or for any layouts (strides may be 0 or negative).
Result<BinaryProblem> binary_problem(const BinaryAttrs& attrs, const Shape& a, const Shape& b);
Result<BinaryProblem> binary_problem(const BinaryAttrs& attrs, const Layout& a, const Layout& b);

// y = a + b or a * b, one IEEE operation for each element. y is dense; it may be a (or b) where that is dense and of y's shape.
// No scratch. The gradients of a product are binary(mul, dy, b) and binary(mul, dy, a), each brought to its input by
// sum_to_shape.
void run_binary(Context& context, const BinaryProblem& problem, const float* a, const float* b, float* y) noexcept;

// The gradient of broadcasting: dx of shape `to` from dy of shape `from`, where `to` broadcasts to `from` (else an error).
struct SumToShapeProblem {
  std::array<Index, kMaxRank> groups{};  // adjacent axes of one kind merged, axes of size 1 in `from` dropped, outermost first
  std::int32_t count = 0;                // number of groups; kinds alternate
  bool last_summed = false;              // kind of the last group
};

Result<SumToShapeProblem> sum_to_shape_problem(const Shape& from, const Shape& to);

// The order of summation is a property of the two shapes: adjacent summed axes form one group; groups are summed one at a time,
// the last first. A group that ends the shape is summed by the 16-lane rule, any other by the outer-axis rule (chunks of 512).
// Without a summed group dx is a copy of dy. Empty sums are +0. Dense arrays, not overlapping.
ScratchSize sum_to_shape_scratch(const Context& context, const SumToShapeProblem& problem);
void run_sum_to_shape(Context& context, const SumToShapeProblem& problem, const float* dy, float* dx) noexcept;

// Checked forms: fail() with shape_mismatch or invalid_argument. Inputs of `binary` may have any strides, all else is
// contiguous; the output of `binary` may be an input that is contiguous and of its shape, other overlaps are errors.
void binary(Context& context, const BinaryAttrs& attrs, ConstTensorView a, ConstTensorView b, TensorView y);
inline void add(Context& context, ConstTensorView a, ConstTensorView b, TensorView y) {
  binary(context, {BinaryOp::add}, a, b, y);
}
inline void mul(Context& context, ConstTensorView a, ConstTensorView b, TensorView y) {
  binary(context, {BinaryOp::mul}, a, b, y);
}
void sum_to_shape(Context& context, ConstTensorView dy, TensorView dx);

}  // namespace vitro::ops
