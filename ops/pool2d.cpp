// SPDX-License-Identifier: Apache-2.0
// Shape rules of pooling.
#include "pool2d.hpp"

#include "checks.hpp"
#include "pool_windows.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace vitro::ops {
namespace {

// Output size along one axis, or 0 where the kernel does not fit.
Index output_size(Index input, Index before, Index after, Index kernel, Index stride, bool ceil_mode) noexcept {
  const Index room = input + before + after - kernel;
  if (room < 0) return 0;
  if (!ceil_mode) return room / stride + 1;
  const Index starts =
      std::max<Index>((input + before + stride - 1) / stride, 1);  // windows that start before the trailing padding
  return std::min((room + stride - 1) / stride + 1, starts);
}

// Whether some window of an axis has no tap in the input. The first window starts furthest left, the last one furthest right.
bool has_empty_window(Index input, Index before, Index kernel, Index stride, Index outputs) noexcept {
  return input == 0 || before >= kernel || (outputs - 1) * stride - before >= input;
}

Result<Shape> pool_shape(const char* op, const Pool2dAttrs& a, const Shape& x, bool needs_taps) {
  const Index kernel[] = {a.kernel_h, a.kernel_w};
  const std::string subject = std::string(op) + ": x of shape " + to_string(x);
  const std::string window = " under a kernel of " + to_string(kernel);
  if (x.rank() != 4) return shape_error(subject + " has the wrong rank; images are [N, H, W, C].");
  if (a.kernel_h == 0 || a.kernel_w == 0 || a.stride_h == 0 || a.stride_w == 0) {
    return Error(ErrorCode::invalid_argument, subject + window + " has a kernel or stride of 0; each is at least 1.");
  }
  const Index oh = output_size(x[1], a.pad_top, a.pad_bottom, a.kernel_h, a.stride_h, a.ceil_mode);
  const Index ow = output_size(x[2], a.pad_left, a.pad_right, a.kernel_w, a.stride_w, a.ceil_mode);
  if (oh == 0 || ow == 0) {
    const Index padded[] = {x[1] + a.pad_top + a.pad_bottom, x[2] + a.pad_left + a.pad_right};
    return shape_error(subject + window + " gives nothing: the kernel is larger than the padded image's " + to_string(padded) +
                       ".");
  }
  if (needs_taps && (has_empty_window(x[1], a.pad_top, a.kernel_h, a.stride_h, oh) ||
                     has_empty_window(x[2], a.pad_left, a.kernel_w, a.stride_w, ow))) {
    const Index padding[] = {a.pad_top, a.pad_left, a.pad_bottom, a.pad_right};
    return shape_error(subject + window + " and padding " + to_string(padding) +
                       " (top, left, bottom, right) has a window that lies in the padding altogether; use less padding.");
  }
  const Index dims[] = {x[0], oh, ow, x[3]};
  return Shape::make(dims);
}

Result<Pool2dProblem> pool_problem(const Pool2dAttrs& attrs, const Shape& x, const Result<Shape>& y) {
  if (!y) return y.error();
  return Pool2dProblem{x[0], x[1], x[2], x[3], y.value()[1], y.value()[2], attrs};
}

}  // namespace

Result<Shape> max_pool2d_shape(const Pool2dAttrs& attrs, const Shape& x) {
  if (Index{attrs.kernel_h} * attrs.kernel_w > std::numeric_limits<std::int32_t>::max()) {
    return Error(ErrorCode::invalid_argument, "max_pool2d: a window has more than 2^31 - 1 taps, too many to number.");
  }
  return pool_shape("max_pool2d", attrs, x, true);
}

Result<Shape> average_pool2d_shape(const Pool2dAttrs& attrs, const Shape& x) {
  return pool_shape("average_pool2d", attrs, x, attrs.divisor == AverageDivisor::valid);
}

Result<Pool2dProblem> max_pool2d_problem(const Pool2dAttrs& attrs, const Shape& x) {
  return pool_problem(attrs, x, max_pool2d_shape(attrs, x));
}

Result<Pool2dProblem> average_pool2d_problem(const Pool2dAttrs& attrs, const Shape& x) {
  return pool_problem(attrs, x, average_pool2d_shape(attrs, x));
}

ScratchSize pool2d_scratch(const Context&, const Pool2dProblem& problem) { return {0, PoolScratch::bytes(problem)}; }

}  // namespace vitro::ops
