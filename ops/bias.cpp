// SPDX-License-Identifier: Apache-2.0
// Bias on the elementwise and reduction kernels.
#include "bias.hpp"

#include "checks.hpp"
#include "sum_rows.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

// Rows that one kernel call handles: a few channels alone would be all call and no work, so the bias is repeated to this many
// rows.
Index repeats(const BiasProblem& problem) noexcept {
  constexpr Index kFloats = 512;
  return std::clamp<Index>(kFloats / std::max<Index>(problem.channels, 1), 1, std::max<Index>(problem.rows, 1));
}

}  // namespace

Result<Shape> bias_shape(const BiasAttrs&, const Shape& x, const Shape& b) {
  if (x.rank() == 0 || b.rank() != 1 || b[0] != x[x.rank() - 1]) {
    return shape_error("bias: x of shape " + to_string(x) + " and b of shape " + to_string(b) +
                       " do not match; x is [..., channels] and b is [channels].");
  }
  return x;
}

Result<BiasProblem> bias_problem(const BiasAttrs& attrs, const Shape& x, const Shape& b) {
  if (Result<Shape> shape = bias_shape(attrs, x, b); !shape) return std::move(shape).error();
  Index rows = 1;
  for (const Index dim : x.dims().first(static_cast<std::size_t>(x.rank() - 1))) rows *= dim;
  return BiasProblem{rows, b[0]};
}

ScratchSize bias_scratch(const Context&, const BiasProblem& problem) {
  return {static_cast<std::size_t>(repeats(problem) * problem.channels) * sizeof(float), 0};
}

void run_bias(Context& context, const BiasProblem& problem, const float* x, const float* b, float* y) noexcept {
  float* const repeated = reinterpret_cast<float*>(context.shared_scratch());
  const Index rows = repeats(problem);
  for (Index i = 0; i < rows; ++i) std::copy_n(b, problem.channels, repeated + i * problem.channels);
  context.parallel_for(problem.rows, problem.channels, [&](Index begin, Index end, int) {
    for (Index i = begin; i < end; i += rows) {
      const Index at = i * problem.channels;
      context.kernels().add(std::min(rows, end - i) * problem.channels, x + at, repeated, y + at);
    }
  });
}

ScratchSize bias_grad_scratch(const Context& context, const BiasProblem& problem) {
  const Index chunks = shared_chunks(context, problem.rows, problem.channels);
  return {static_cast<std::size_t>(chunks * problem.channels) * sizeof(float), 0};
}

void run_bias_grad(Context& context, const BiasProblem& problem, const float* dy, float* db) noexcept {
  sum_rows(context, problem.rows, problem.channels, dy, db, reinterpret_cast<float*>(context.shared_scratch()));
}

void bias(Context& context, const BiasAttrs& attrs, ConstTensorView x, ConstTensorView b, TensorView y) {
  const BiasProblem problem = bias_problem(attrs, x.shape(), b.shape()).value();
  require_shape("bias", {"y", y}, x.shape());
  require_contiguous("bias", {{"x", x}, {"b", b}, {"y", y}});
  require_apart("bias", {"y", y}, {{"x", x}}, true);
  require_apart("bias", {"y", y}, {{"b", b}});
  context.reserve_scratch(bias_scratch(context, problem));
  run_bias(context, problem, x.data(), b.data(), y.data());
}

void bias_grad(Context& context, const BiasAttrs& attrs, ConstTensorView dy, TensorView db) {
  const BiasProblem problem = bias_problem(attrs, dy.shape(), db.shape()).value();
  require_contiguous("bias_grad", {{"dy", dy}, {"db", db}});
  require_apart("bias_grad", {"db", db}, {{"dy", dy}});
  context.reserve_scratch(bias_grad_scratch(context, problem));
  run_bias_grad(context, problem, dy.data(), db.data());
}

}  // namespace vitro::ops
