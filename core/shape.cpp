// SPDX-License-Identifier: Apache-2.0
// Shape construction with its checks, strides, broadcasting, and printing.
#include "shape.hpp"

#include <algorithm>
#include <limits>

namespace vitro {

Result<Shape> Shape::make(std::span<const Index> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank)) {
    return Error(ErrorCode::invalid_argument, "shape " + vitro::to_string(dims) + " has " + std::to_string(dims.size()) +
                                                  " dimensions; at most 6 are supported");
  }
  constexpr Index kMaxElements = std::numeric_limits<Index>::max() / 8;
  Shape shape;
  Index product = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return Error(ErrorCode::invalid_argument, "shape " + vitro::to_string(dims) + " has the negative dimension " +
                                                    std::to_string(dims[i]) + " at axis " + std::to_string(i));
    }
    if (dims[i] > 0 && product > kMaxElements / dims[i]) {
      return Error(ErrorCode::overflow,
                   "shape " + vitro::to_string(dims) + " has more than " + std::to_string(kMaxElements) + " elements");
    }
    if (dims[i] > 0) product *= dims[i];
    shape.dims_[i] = dims[i];
  }
  shape.rank_ = static_cast<int>(dims.size());
  return shape;
}

Index Shape::elements() const noexcept {
  Index product = 1;
  for (Index dim : dims()) product *= dim;
  return product;
}

Shape Shape::with(int axis, Index dim) const {
  if (axis < 0 || axis >= rank_) {
    fail(ErrorCode::invalid_argument,
         "axis " + std::to_string(axis) + " is outside shape " + vitro::to_string(*this) + " of rank " + std::to_string(rank_));
  }
  std::array<Index, kMaxRank> dims = dims_;
  dims[static_cast<std::size_t>(axis)] = dim;
  return Shape(std::span<const Index>(dims.data(), static_cast<std::size_t>(rank_)));
}

Strides contiguous_strides(const Shape& shape) noexcept {
  Strides strides{};
  Index stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= std::max<Index>(shape[axis], 1);
  }
  return strides;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<Index, kMaxRank> dims{};
  for (int i = 0; i < rank; ++i) {  // i counts axes from the end
    const Index dim_a = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const Index dim_b = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1) {
      return Error(ErrorCode::shape_mismatch, "shapes " + to_string(a) + " and " + to_string(b) +
                                                  " do not broadcast: dimensions " + std::to_string(dim_a) + " and " +
                                                  std::to_string(dim_b) + " (counted from the end: " + std::to_string(i) +
                                                  ") are neither equal nor 1");
    }
    dims[static_cast<std::size_t>(rank - 1 - i)] = dim_a == 1 ? dim_b : dim_a;
  }
  return Shape::make(std::span<const Index>(dims.data(), static_cast<std::size_t>(rank)));
}

std::string to_string(std::span<const Index> numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(numbers[i]);
  }
  return text + "]";
}

std::string to_string(const Shape& shape) { return to_string(shape.dims()); }

}  // namespace vitro
