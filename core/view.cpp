// SPDX-License-Identifier: Apache-2.0
// Layout arithmetic: slices, permutations, broadcasts, reshapes without a copy, and the strided copy.
#include "view.hpp"

#include <algorithm>

namespace vitro {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

std::string describe(const Layout& layout) {
  return "shape " + to_string(layout.shape) + " with strides " +
         to_string(std::span<const Index>(layout.strides.data(), at(layout.shape.rank())));
}

// The layout without its axes of size 1 and with every pair of axes merged that steps through memory as one; what is left is
// compared with the target's axes from the inside out.
struct Run {
  Index size;
  Index stride;
};

// Runs of `layout`, innermost first; returns how many.
int merged_runs(const Layout& layout, std::array<Run, kMaxRank>& runs) {
  int count = 0;
  for (int axis = layout.shape.rank() - 1; axis >= 0; --axis) {
    const Index size = layout.shape[axis];
    const Index stride = layout.strides[at(axis)];
    if (size == 1) continue;
    if (count > 0 && stride == runs[at(count - 1)].stride * runs[at(count - 1)].size) {
      runs[at(count - 1)].size *= size;
    } else {
      runs[at(count++)] = {size, stride};
    }
  }
  return count;
}

}  // namespace

bool Layout::is_contiguous() const noexcept {
  if (shape.elements() == 0) return true;
  const Strides dense = contiguous_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != 1 && strides[at(axis)] != dense[at(axis)]) return false;
  }
  return true;
}

Layout Layout::slice(int axis, Index begin, Index end, Index step) const {
  if (axis < 0 || axis >= shape.rank()) {
    fail(ErrorCode::invalid_argument, "slice: axis " + std::to_string(axis) + " is outside " + describe(*this));
  }
  const Index size = shape[axis];
  const bool forward = step > 0 && begin >= 0 && begin <= end && end <= size;
  const bool backward = step < 0 && begin < size && begin >= end && end >= -1;
  if (!forward && !backward) {
    fail(ErrorCode::invalid_argument, "slice: [" + std::to_string(begin) + ", " + std::to_string(end) + ") in steps of " +
                                          std::to_string(step) + " is outside axis " + std::to_string(axis) + " of size " +
                                          std::to_string(size));
  }
  const Index span = forward ? end - begin : begin - end;
  const Index stride = strides[at(axis)];
  // A step longer than the axis is one element; clamping it keeps stride * step from overflowing.
  const Index magnitude = std::min(forward ? step : (step < -size ? size + 1 : -step), size + 1);
  const Index count = span == 0 ? 0 : (span - 1) / magnitude + 1;
  Layout result = *this;
  result.shape = shape.with(axis, count);
  result.strides[at(axis)] = count <= 1 ? stride : stride * (forward ? magnitude : -magnitude);
  if (result.shape.elements() > 0) result.offset += begin * stride;  // an empty view may have no memory to step through
  return result;
}

Layout Layout::permute(std::span<const int> order) const {
  Layout result = *this;
  unsigned seen = 0;
  std::array<Index, kMaxRank> dims{};
  bool valid = static_cast<int>(order.size()) == shape.rank();
  for (std::size_t i = 0; valid && i < order.size(); ++i) {
    valid = order[i] >= 0 && order[i] < shape.rank() && (seen & (1U << order[i])) == 0;
    if (!valid) break;
    seen |= 1U << order[i];
    dims[i] = shape[order[i]];
    result.strides[i] = strides[at(order[i])];
  }
  if (!valid) {
    std::string text;
    for (int axis : order) text += (text.empty() ? "" : ", ") + std::to_string(axis);
    fail(ErrorCode::invalid_argument,
         "permute: [" + text + "] is not a permutation of the " + std::to_string(shape.rank()) + " axes of " + describe(*this));
  }
  result.shape = Shape(std::span<const Index>(dims.data(), order.size()));
  return result;
}

Layout Layout::broadcast_to(const Shape& target) const {
  const Result<Shape> joint = broadcast_shapes(shape, target);
  if (!joint || joint.value() != target) {
    fail(ErrorCode::shape_mismatch, "shape " + to_string(shape) + " does not broadcast to " + to_string(target));
  }
  Layout result{target, Strides{}, offset};
  const int missing = target.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result.strides[at(axis + missing)] = shape[axis] == target[axis + missing] ? strides[at(axis)] : 0;
  }
  return result;
}

Layout Layout::reshape(const Shape& target) const {
  if (target.elements() != shape.elements()) {
    fail(ErrorCode::shape_mismatch, "reshape: " + to_string(shape) + " has " + std::to_string(shape.elements()) +
                                        " elements, " + to_string(target) + " has " + std::to_string(target.elements()));
  }
  Layout result{target, contiguous_strides(target), offset};
  if (is_contiguous()) return result;
  std::array<Run, kMaxRank> runs{};
  const int count = merged_runs(*this, runs);
  int run = 0;
  Index inside = 1;  // how many elements of runs[run] the target's axes so far have used
  for (int axis = target.rank() - 1; axis >= 0; --axis) {
    const Index size = target[axis];
    if (size == 1) continue;
    if (run < count && inside == runs[at(run)].size) {
      ++run;
      inside = 1;
    }
    if (run == count || runs[at(run)].size % (inside * size) != 0) {
      fail(ErrorCode::shape_mismatch,
           "reshape: " + describe(*this) + " cannot become " + to_string(target) + " without a copy; use contiguous() first");
    }
    result.strides[at(axis)] = runs[at(run)].stride * inside;
    inside *= size;
  }
  return result;
}

void copy(ConstTensorView from, TensorView to) {
  if (from.shape() != to.shape()) {
    fail(ErrorCode::shape_mismatch,
         "copy: source has shape " + to_string(from.shape()) + ", destination " + to_string(to.shape()));
  }
  const Index total = from.elements();
  if (total == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    std::copy_n(from.data(), total, to.data());
    return;
  }
  const int rank = from.rank();
  const Index inner = from.dim(rank - 1);  // rank 0 is contiguous and has returned
  const Index from_step = from.stride(rank - 1);
  const Index to_step = to.stride(rank - 1);
  std::array<Index, kMaxRank> index{};
  for (Index done = 0; done < total; done += inner) {
    Index from_offset = 0;
    Index to_offset = 0;
    for (int axis = 0; axis < rank - 1; ++axis) {
      from_offset += index[at(axis)] * from.stride(axis);
      to_offset += index[at(axis)] * to.stride(axis);
    }
    for (Index i = 0; i < inner; ++i) to.data()[to_offset + i * to_step] = from.data()[from_offset + i * from_step];
    for (int axis = rank - 2; axis >= 0 && ++index[at(axis)] == from.dim(axis); --axis) index[at(axis)] = 0;
  }
}

}  // namespace vitro
