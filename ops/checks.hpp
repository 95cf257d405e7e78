// SPDX-License-Identifier: Apache-2.0
// Internal: what the checked functions ask of their views - shape, density, no overlap - with errors that name op and operand.
#pragma once

#include "../core/view.hpp"
#include "epilogue.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>

namespace vitro::ops {

// A view under the name that its operation's documentation gives it. Refers to the view's layout: lives as long as the view.
struct Operand {
  template <class T>
  Operand(const char* operand_name, const BasicView<T>& view)
      : name(operand_name), data(view.data()), layout(&view.layout()), element_bytes(sizeof(T)) {}

  const char* name;
  const void* data;
  const Layout* layout;
  std::size_t element_bytes;
};

inline Error shape_error(std::string message) { return Error(ErrorCode::shape_mismatch, std::move(message)); }

// Each fails with shape_mismatch or invalid_argument and a sentence that begins with `op`.
void require_contiguous(const char* op, std::initializer_list<Operand> operands);
void require_shape(const char* op, const Operand& operand, const Shape& expected);
// The memory between the output's first and last element must not meet that of an input. in_place: an input that is contiguous,
// has the output's shape and starts at the same address is allowed.
void require_apart(const char* op, const Operand& output, std::initializer_list<Operand> inputs, bool in_place = false);
// The epilogue's pointers, after checking bias [channels of y] and residual [shape of y]: dense, apart from y.
Epilogue checked_epilogue(const char* op, const EpilogueViews& views, const TensorView& y);

}  // namespace vitro::ops
