// SPDX-License-Identifier: Apache-2.0
// Shape: up to six dimensions stored inline, whose product is known not to overflow.
#pragma once

#include "error.hpp"

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace vitro {

// Counts, indices and strides, in elements unless a name says bytes.
using Index = std::ptrdiff_t;

inline constexpr int kMaxRank = 6;

// Immutable list of dimensions, outermost first. Rank 0 is a scalar (one element). A dimension may be 0.
// Invariant: the product of the non-zero dimensions, times 8 bytes, fits Index, so no offset or byte count inside a tensor
// of any element type overflows.
class Shape {
 public:
  Shape() = default;
  // Fails with invalid_argument (rank > 6, a negative dimension) or overflow.
  Shape(std::initializer_list<Index> dims) : Shape(std::span<const Index>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const Index> dims) : Shape(make(dims).value()) {}
  // The same for dimensions that come from outside.
  static Result<Shape> make(std::span<const Index> dims);

  int rank() const noexcept { return rank_; }
  // Requires 0 <= axis < rank().
  Index operator[](int axis) const noexcept { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const Index> dims() const noexcept { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  Index elements() const noexcept;

  // A copy with one dimension replaced; same errors as the constructor.
  Shape with(int axis, Index dim) const;

  friend bool operator==(const Shape&, const Shape&) noexcept = default;

 private:
  std::array<Index, kMaxRank> dims_{};  // unused entries stay 0, so that == compares all of them
  int rank_ = 0;
};

using Strides = std::array<Index, kMaxRank>;

// Row-major strides: the last axis has stride 1. An axis' stride does not depend on zero-sized axes (they count as 1).
Strides contiguous_strides(const Shape& shape) noexcept;

// NumPy broadcasting: axes aligned at the end; equal, or one of them 1. Error shape_mismatch names both shapes.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// "[64, 28, 28, 1]"; "[]" for a scalar.
std::string to_string(const Shape& shape);
std::string to_string(std::span<const Index> numbers);

}  // namespace vitro
