// SPDX-License-Identifier: Apache-2.0
// Tensor: owns a dense, row-major, 64-byte-aligned block of elements.
#pragma once

#include "storage.hpp"
#include "view.hpp"

#include <cstdint>
#include <memory>

namespace vitro {

// Copying copies deeply, moving takes over (and leaves a scalar-shaped tensor without memory that may only be copied,
// assigned to or destroyed; so is a default-constructed one). Always contiguous: what has other strides is a view. New tensors
// hold +0. Images are NHWC, filters [kh, kw, in, out], linear weights [in, out]: the innermost axis is the one that vectors run
// along.
template <class T>
class BasicTensor {
 public:
  BasicTensor() = default;
  // Fails with out_of_memory.
  explicit BasicTensor(const Shape& shape) : shape_(shape), data_(allocate_array<T>(shape.elements())) {}
  BasicTensor(const BasicTensor& other)
      : shape_(other.shape_), data_(other.data_ ? allocate_array<T>(other.shape_.elements()) : nullptr) {
    copy_from(other);
  }
  BasicTensor(BasicTensor&& other) noexcept : shape_(other.shape_), data_(std::move(other.data_)) { other.shape_ = Shape(); }
  BasicTensor& operator=(BasicTensor other) noexcept {
    shape_ = other.shape_;
    data_ = std::move(other.data_);
    return *this;
  }

  const Shape& shape() const noexcept { return shape_; }
  Index elements() const noexcept { return data_ ? shape_.elements() : 0; }
  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::span<T> span() noexcept { return {data_.get(), static_cast<std::size_t>(elements())}; }
  std::span<const T> span() const noexcept { return {data_.get(), static_cast<std::size_t>(elements())}; }

  BasicView<T> view() noexcept { return {data_.get(), shape_}; }
  BasicView<const T> view() const noexcept { return {data_.get(), shape_}; }
  operator BasicView<T>() noexcept { return view(); }
  operator BasicView<const T>() const noexcept { return view(); }

 private:
  void copy_from(const BasicTensor& other) noexcept {
    const Index count = other.elements();
    for (Index i = 0; i < count; ++i) data_[static_cast<std::size_t>(i)] = other.data_[static_cast<std::size_t>(i)];
  }

  Shape shape_;
  AlignedArray<T> data_;
};

using Tensor = BasicTensor<float>;
using LabelTensor = BasicTensor<std::int32_t>;

// A dense copy of any view.
Tensor contiguous(ConstTensorView view);

// Dense copies with the axes in the other order; rank must be 4 (fails otherwise).
Tensor nchw_to_nhwc(ConstTensorView nchw);
Tensor nhwc_to_nchw(ConstTensorView nhwc);

}  // namespace vitro
