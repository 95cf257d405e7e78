// SPDX-License-Identifier: Apache-2.0
// Broadcasting sums and products, and the sums that undo broadcasting.
#include "broadcast.hpp"

#include "checks.hpp"
#include "row_batch.hpp"
#include "sum_rows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

std::size_t at(int axis) noexcept { return static_cast<std::size_t>(axis); }

const char* name_of(BinaryOp op) noexcept { return op == BinaryOp::add ? "add" : "mul"; }

// The innermost axis. Kernels take dense operands, or one number beside them; a few elements, and other strides, are done here
// (the same single IEEE operation).
template <BinaryOp op>
void run_axis(const simd::KernelTable& kernels, const BinaryProblem::Axis& axis, const float* a, const float* b,
              float* y) noexcept {
  constexpr Index kWorthACall = 16;
  constexpr bool is_add = op == BinaryOp::add;
  if (axis.size >= kWorthACall && axis.a_stride == 1 && axis.b_stride == 1) {
    (is_add ? kernels.add : kernels.mul)(axis.size, a, b, y);
  } else if (axis.size >= kWorthACall && axis.a_stride == 1 && axis.b_stride == 0) {
    (is_add ? kernels.add_scalar : kernels.mul_scalar)(axis.size, a, *b, y);
  } else if (axis.size >= kWorthACall && axis.a_stride == 0 && axis.b_stride == 1) {
    (is_add ? kernels.add_scalar : kernels.mul_scalar)(axis.size, b, *a, y);
  } else {
    for (Index i = 0; i < axis.size; ++i) {
      y[i] = is_add ? a[i * axis.a_stride] + b[i * axis.b_stride] : a[i * axis.a_stride] * b[i * axis.b_stride];
    }
  }
}

template <BinaryOp op>
void run_axes(Context& context, const BinaryProblem& problem, const float* a, const float* b, float* y) noexcept {
  const BinaryProblem::Axis inner = problem.axes[at(problem.rank - 1)];
  Index rows = 1;
  for (int axis = 0; axis < problem.rank - 1; ++axis) rows *= problem.axes[at(axis)].size;
  if (rows == 1) {
    context.parallel_for(inner.size, 1, [&](Index begin, Index end, int) {
      run_axis<op>(context.kernels(), {end - begin, inner.a_stride, inner.b_stride}, a + begin * inner.a_stride,
                   b + begin * inner.b_stride, y + begin);
    });
    return;
  }
  context.parallel_for(rows, inner.size + 8, [&](Index begin, Index end, int) {
    for (Index row = begin; row < end; ++row) {
      Index a_offset = 0, b_offset = 0, rest = row;
      for (int axis = problem.rank - 2; axis >= 0; --axis) {
        const BinaryProblem::Axis& outer = problem.axes[at(axis)];
        const Index i = rest % outer.size;
        rest /= outer.size;
        a_offset += i * outer.a_stride;
        b_offset += i * outer.b_stride;
      }
      run_axis<op>(context.kernels(), inner, a + a_offset, b + b_offset, y + row * inner.size);
    }
  });
}

// Whether group i of the problem is summed: the kinds alternate.
bool summed(const SumToShapeProblem& problem, int group) noexcept {
  return ((problem.count - 1 - group) % 2 == 0) == problem.last_summed;
}

Index product(const SumToShapeProblem& problem, int begin, int end) noexcept {
  Index result = 1;
  for (int group = begin; group < end; ++group) result *= problem.groups[at(group)];
  return result;
}

// The last summed group among the first `end`, or -1.
int last_summed_group(const SumToShapeProblem& problem, int end) noexcept {
  for (int group = end - 1; group >= 0; --group) {
    if (summed(problem, group)) return group;
  }
  return -1;
}

// Elements that are left behind each of the first two sums.
std::array<Index, 2> intermediate_elements(const SumToShapeProblem& problem) noexcept {
  std::array<Index, 2> result{};
  Index kept = 1;  // of the groups behind
  int end = problem.count;
  for (Index& elements : result) {
    const int group = last_summed_group(problem, end);
    if (group < 0) break;
    kept *= product(problem, group + 1, end);
    elements = product(problem, 0, group) * kept;
    end = group;
  }
  return result;
}

}  // namespace

Result<Shape> binary_shape(const BinaryAttrs& attrs, const Shape& a, const Shape& b) {
  Result<Shape> shape = broadcast_shapes(a, b);
  if (shape) return shape;
  return Error(shape.error().code(),
               std::string(name_of(attrs.op)) + ": a of shape " + to_string(a) + " and b of shape " + to_string(b) +
                   " do not broadcast; aligned at the end, each pair of axes must be equal " + "or one of them 1.");
}

Result<BinaryProblem> binary_problem(const BinaryAttrs& attrs, const Shape& a, const Shape& b) {
  return binary_problem(attrs, Layout::contiguous(a), Layout::contiguous(b));
}

Result<BinaryProblem> binary_problem(const BinaryAttrs& attrs, const Layout& a, const Layout& b) {
  const Result<Shape> shape = binary_shape(attrs, a.shape, b.shape);
  if (!shape) return shape.error();
  const Layout wide_a = a.broadcast_to(shape.value()), wide_b = b.broadcast_to(shape.value());
  BinaryProblem problem;
  problem.op = attrs.op;
  for (int axis = 0; axis < shape.value().rank(); ++axis) {
    const BinaryProblem::Axis next{shape.value()[axis], wide_a.strides[at(axis)], wide_b.strides[at(axis)]};
    if (next.size == 1) continue;
    if (problem.rank > 0) {
      BinaryProblem::Axis& outer = problem.axes[at(problem.rank - 1)];
      if (outer.a_stride == next.a_stride * next.size && outer.b_stride == next.b_stride * next.size) {
        outer = {outer.size * next.size, next.a_stride, next.b_stride};
        continue;
      }
    }
    problem.axes[at(problem.rank++)] = next;
  }
  if (problem.rank == 0) problem.axes[at(problem.rank++)] = {1, 1, 1};
  return problem;
}

void run_binary(Context& context, const BinaryProblem& problem, const float* a, const float* b, float* y) noexcept {
  if (problem.op == BinaryOp::add) {
    run_axes<BinaryOp::add>(context, problem, a, b, y);
  } else {
    run_axes<BinaryOp::mul>(context, problem, a, b, y);
  }
}

Result<SumToShapeProblem> sum_to_shape_problem(const Shape& from, const Shape& to) {
  const Result<Shape> wide = broadcast_shapes(from, to);
  if (!wide || wide.value() != from) {
    return shape_error("sum_to_shape: a gradient of shape " + to_string(from) + " cannot be summed to " + to_string(to) +
                       ", because that shape does not broadcast to it.");
  }
  SumToShapeProblem problem;
  const int missing = from.rank() - to.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == 1) continue;
    const bool sum = axis < missing || to[axis - missing] == 1;
    if (problem.count > 0 && sum == problem.last_summed) {
      problem.groups[at(problem.count - 1)] *= from[axis];
    } else {
      problem.groups[at(problem.count++)] = from[axis];
    }
    problem.last_summed = sum;
  }
  return problem;
}

ScratchSize sum_to_shape_scratch(const Context&, const SumToShapeProblem& problem) {
  const std::array<Index, 2> elements = intermediate_elements(problem);
  return {aligned_up(float_bytes(elements[0])) + aligned_up(float_bytes(elements[1])), 0};
}

void run_sum_to_shape(Context& context, const SumToShapeProblem& problem, const float* dy, float* dx) noexcept {
  int group = last_summed_group(problem, problem.count);
  if (group < 0) {
    std::copy_n(dy, product(problem, 0, problem.count), dx);
    return;
  }
  float* intermediate = reinterpret_cast<float*>(context.shared_scratch());
  Index inner = product(problem, group + 1, problem.count);  // kept elements behind the group
  const float* from = dy;
  for (bool first = true; group >= 0; first = false) {
    const int next = last_summed_group(problem, group);
    const Index outer = product(problem, 0, group), rows = problem.groups[at(group)];
    float* const to = next < 0 ? dx : intermediate;
    if (first && problem.last_summed) {
      context.parallel_for(outer, rows + 8, [&](Index begin, Index end, int) {
        for (Index i = begin; i < end; ++i) to[i] = context.kernels().sum(rows, from + i * rows);
      });
    } else if (outer == 1) {
      sum_rows(context, rows, inner, from, to);
    } else {
      context.parallel_for(outer, rows * inner + 8, [&](Index begin, Index end, int) {
        for (Index i = begin; i < end; ++i)
          context.kernels().sum_rows(rows, inner, from + i * rows * inner, inner, to + i * inner);
      });
    }
    from = to;
    if (next >= 0) {
      intermediate += aligned_up(float_bytes(outer * inner)) / sizeof(float);
      inner *= product(problem, next + 1, group);
    }
    group = next;
  }
}

void binary(Context& context, const BinaryAttrs& attrs, ConstTensorView a, ConstTensorView b, TensorView y) {
  const char* const op = name_of(attrs.op);
  const BinaryProblem problem = binary_problem(attrs, a.layout(), b.layout()).value();
  require_shape(op, {"y", y}, binary_shape(attrs, a.shape(), b.shape()).value());
  require_contiguous(op, {{"y", y}});
  require_apart(op, {"y", y}, {{"a", a}, {"b", b}}, true);
  run_binary(context, problem, a.data(), b.data(), y.data());
}

void sum_to_shape(Context& context, ConstTensorView dy, TensorView dx) {
  const SumToShapeProblem problem = sum_to_shape_problem(dy.shape(), dx.shape()).value();
  require_contiguous("sum_to_shape", {{"dy", dy}, {"dx", dx}});
  require_apart("sum_to_shape", {"dx", dx}, {{"dy", dy}});
  context.reserve_scratch(sum_to_shape_scratch(context, problem));
  run_sum_to_shape(context, problem, dy.data(), dx.data());
}

}  // namespace vitro::ops
