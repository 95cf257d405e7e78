// SPDX-License-Identifier: Apache-2.0
// The checks behind the checked functions.
#include "checks.hpp"

#include <cstdint>

namespace vitro::ops {
namespace {

// Addresses of the first and behind the last byte that a view reaches; equal for an empty one. As numbers, because comparing
// pointers into different arrays is undefined.
struct Extent {
  std::uintptr_t begin, end;
};

Extent extent(const Operand& operand) {
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(operand.data);
  if (operand.layout->shape.elements() == 0) return {first, first};
  Index low = 0, high = 0;
  for (int axis = 0; axis < operand.layout->shape.rank(); ++axis) {
    const Index reach = (operand.layout->shape[axis] - 1) * operand.layout->strides[static_cast<std::size_t>(axis)];
    (reach < 0 ? low : high) += reach;
  }
  const Index bytes = static_cast<Index>(operand.element_bytes);
  return {first + static_cast<std::uintptr_t>(low * bytes), first + static_cast<std::uintptr_t>((high + 1) * bytes)};
}

std::string named(const char* op, const Operand& operand) { return std::string(op) + ": " + operand.name; }

}  // namespace

void require_contiguous(const char* op, std::initializer_list<Operand> operands) {
  for (const Operand& operand : operands) {
    if (operand.layout->is_contiguous()) continue;
    const Shape& shape = operand.layout->shape;
    fail(ErrorCode::invalid_argument,
         named(op, operand) + " of shape " + to_string(shape) + " has strides " +
             to_string(std::span<const Index>(operand.layout->strides.data(), static_cast<std::size_t>(shape.rank()))) +
             ", but this operation reads and writes dense row-major memory only; pass a copy made by contiguous().");
  }
}

void require_shape(const char* op, const Operand& operand, const Shape& expected) {
  if (operand.layout->shape == expected) return;
  fail(ErrorCode::shape_mismatch, named(op, operand) + " has shape " + to_string(operand.layout->shape) +
                                      ", but the other operands make it " + to_string(expected) + ".");
}

void require_apart(const char* op, const Operand& output, std::initializer_list<Operand> inputs, bool in_place) {
  const Extent written = extent(output);
  for (const Operand& input : inputs) {
    const Extent read = extent(input);
    if (written.begin >= read.end || read.begin >= written.end || written.begin == written.end || read.begin == read.end)
      continue;
    if (in_place && input.data == output.data && input.layout->shape == output.layout->shape && input.layout->is_contiguous()) {
      continue;
    }
    fail(ErrorCode::invalid_argument,
         named(op, output) + " overlaps the memory of " + input.name +
             (in_place ? "; it may be that very tensor (dense, of the same shape), or must lie apart from it."
                       : "; this operation does not work in place, so give it an output of its own."));
  }
}

Epilogue checked_epilogue(const char* op, const EpilogueViews& views, const TensorView& y) {
  Epilogue epilogue;
  epilogue.relu = views.relu;
  if (views.bias) {
    require_shape(op, {"bias", *views.bias}, Shape{y.dim(y.rank() - 1)});
    require_contiguous(op, {{"bias", *views.bias}});
    require_apart(op, {"y", y}, {{"bias", *views.bias}});
    epilogue.bias = views.bias->data();
  }
  if (views.residual) {
    require_shape(op, {"residual", *views.residual}, y.shape());
    require_contiguous(op, {{"residual", *views.residual}});
    require_apart(op, {"y", y}, {{"residual", *views.residual}});
    epilogue.residual = views.residual->data();
  }
  return epilogue;
}

}  // namespace vitro::ops
