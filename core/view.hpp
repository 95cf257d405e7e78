// SPDX-License-Identifier: Apache-2.0
// Views: a pointer, a shape and strides. They look and never own; making one copies no element.
#pragma once

#include "shape.hpp"

#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace vitro {

// How the elements of a view lie in memory: element (i0, i1, ...) is at offset sum(i_axis * strides[axis]). Strides may be 0
// (broadcast) or negative (a slice with a negative step).
struct Layout {
  Shape shape;
  Strides strides{};
  Index offset = 0;  // of the first element, relative to where the layout was derived from

  static Layout contiguous(const Shape& shape) noexcept { return {shape, contiguous_strides(shape), 0}; }
  // Row-major and dense; axes of size 1 may have any stride, and an empty layout is contiguous.
  bool is_contiguous() const noexcept;

  // Elements begin, begin + step, ... before end along axis (with step < 0: after end). Errors name the axis and its size.
  Layout slice(int axis, Index begin, Index end, Index step) const;
  // Axis i of the result is axis order[i] of this one. `order` must be a permutation of 0..rank-1.
  Layout permute(std::span<const int> order) const;
  // Axes aligned at the end; axes that are missing or grow from size 1 get stride 0. Fails if the shape does not broadcast to
  // `target`.
  Layout broadcast_to(const Shape& target) const;
  // The same elements in row-major order under another shape; fails (with the strides in the message) where that needs a copy.
  Layout reshape(const Shape& target) const;
};

// T is the element type, const-qualified for a view that only reads. Copyable, cheap, never owns.
template <class T>
class BasicView {
 public:
  BasicView() = default;
  BasicView(T* data, const Shape& shape) noexcept : data_(data), layout_(Layout::contiguous(shape)) {}
  BasicView(T* data, const Layout& layout) noexcept : data_(data + layout.offset), layout_(layout) { layout_.offset = 0; }
  // A writable view converts to a reading one.
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>) BasicView(const BasicView<U>& other)
  noexcept : data_(other.data()), layout_(other.layout()) {}

  T* data() const noexcept { return data_; }
  const Layout& layout() const noexcept { return layout_; }
  const Shape& shape() const noexcept { return layout_.shape; }
  int rank() const noexcept { return layout_.shape.rank(); }
  Index dim(int axis) const noexcept { return layout_.shape[axis]; }
  Index stride(int axis) const noexcept { return layout_.strides[static_cast<std::size_t>(axis)]; }
  Index elements() const noexcept { return layout_.shape.elements(); }
  bool is_contiguous() const noexcept { return layout_.is_contiguous(); }

  // One element. Requires one index per axis, each in range; unchecked.
  template <class... I>
  T& operator()(I... index) const noexcept {
    Index offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<Index>(index) * layout_.strides[axis++]), ...);
    return data_[offset];
  }

  BasicView slice(int axis, Index begin, Index end, Index step = 1) const {
    return {data_, layout_.slice(axis, begin, end, step)};
  }
  BasicView permute(std::initializer_list<int> order) const {
    return {data_, layout_.permute(std::span<const int>(order.begin(), order.size()))};
  }
  BasicView broadcast_to(const Shape& target) const { return {data_, layout_.broadcast_to(target)}; }
  BasicView reshape(const Shape& target) const { return {data_, layout_.reshape(target)}; }

 private:
  T* data_ = nullptr;
  Layout layout_;
};

using TensorView = BasicView<float>;
using ConstTensorView = BasicView<const float>;
using LabelView = BasicView<const std::int32_t>;

// Copies element by element; shapes must be equal (fails otherwise), strides may differ. The memory must not overlap.
void copy(ConstTensorView from, TensorView to);

}  // namespace vitro
