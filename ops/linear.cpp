// SPDX-License-Identifier: Apache-2.0
// Linear layers on the matrix kernels.
#include "linear.hpp"

#include "checks.hpp"
#include "row_batch.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

// How threads share a product: by panels of columns, so that each reads its own of w, or by rows, whichever gives them more
// equal parts.
struct Parts {
  Parts(const Context& context, const LinearProblem& p) noexcept
      : panels((p.out + kPanel - 1) / kPanel),
        tiles((p.rows + kTile - 1) / kTile),
        by_rows(used(context, p.rows, kTile) * kGain > used(context, p.out, kPanel)) {}

  // body(m, n) for the sizes that a part may have, and for the whole.
  template <class Body>
  void for_each_size(const Context& context, const LinearProblem& p, const Body& body) const noexcept {
    body(p.rows, p.out);
    const Index share = (by_rows ? tiles : panels) / context.threads();
    const Index whole = by_rows ? p.rows : p.out, unit = by_rows ? kTile : kPanel;
    for (const Index size :
         {share * unit, (share + 1) * unit, (share - 1) * unit + whole % unit, share * unit + whole % unit}) {
      if (size > 0 && size < whole) body(by_rows ? size : p.rows, by_rows ? p.out : size);
    }
  }

  // Of a panel. With few rows it is reading w that takes the time: 1x1000x512 35 us, as long as multiplying by four rows would.
  static Index panel_work(const LinearProblem& p) noexcept { return (p.rows + 4) * p.in * kPanel / 16; }

  static constexpr Index kPanel = simd::kPackedColumns, kTile = 12;  // rows, a multiple of the widest tiles'
  Index panels, tiles;
  bool by_rows;

 private:
  static constexpr float kGain = 0.9f;  // by rows, each thread packs w for itself

  // The mean part over the largest.
  static float used(const Context& context, Index whole, Index unit) noexcept {
    const Index threads = context.threads(), units = (whole + unit - 1) / unit;
    const Index most = std::min((units + threads - 1) / threads * unit, whole);
    return whole == 0 ? 0.0f : static_cast<float>(whole) / static_cast<float>(most * threads);
  }
};

std::size_t product_bytes(const Context& context, const LinearProblem& p) noexcept {
  Index floats = 0;
  Parts(context, p).for_each_size(context, p, [&](Index m, Index n) {
    floats = std::max(floats, context.kernels().gemm_scratch(m, n, p.in));
  });
  return float_bytes(floats);
}

// Many rows and so few columns that the matrix kernel puts rows of x into the lanes: that takes w as it is, and its "packed"
// form is a dense copy. 36864 x 6 x 25 takes 310 us by rows of packed columns and 215 this way, 64 x 10 x 84 1.2 and 1.05
// (AVX-512).
bool puts_rows_in_lanes(const Context& context, const LinearProblem& p) noexcept {
  constexpr Index kManyRows = 32;
  const Index lanes = context.kernels().packed_b_size(1, 1);
  return p.rows >= kManyRows && p.out <= (lanes >= 16 ? 10 : lanes >= 8 ? 6 : 0);
}

void set_strides(LinearProblem& problem, ConstTensorView x, ConstTensorView w) noexcept {
  problem.x_row_stride = x.stride(0);
  problem.x_column_stride = x.stride(1);
  problem.w_row_stride = w.stride(0);
  problem.w_column_stride = w.stride(1);
}

}  // namespace

Result<Shape> linear_shape(const LinearAttrs&, const Shape& x, const Shape& w) {
  if (x.rank() != 2 || w.rank() != 2 || x[1] != w[0]) {
    return shape_error("linear: x of shape " + to_string(x) + " and w of shape " + to_string(w) +
                       " do not multiply; x is [rows, in] and w is [in, out] with the same in.");
  }
  return Shape{x[0], w[1]};
}

Result<LinearProblem> linear_problem(const LinearAttrs& attrs, const Shape& x, const Shape& w) {
  if (Result<Shape> shape = linear_shape(attrs, x, w); !shape) return std::move(shape).error();
  LinearProblem problem;
  problem.rows = x[0];
  problem.in = x[1];
  problem.out = w[1];
  problem.x_row_stride = problem.in;
  problem.w_row_stride = problem.out;
  return problem;
}

std::size_t linear_packed_bytes(const Context& context, const LinearProblem& problem) {
  if (puts_rows_in_lanes(context, problem)) return float_bytes(problem.in * problem.out);
  return float_bytes(packed_b_step(context.kernels(), problem.in, problem.out));
}

ScratchSize linear_scratch(const Context& context, const LinearProblem& problem) {
  // run_linear_packed() needs the batch's tables in any case.
  return {0, std::max(row_batch_bytes(1), product_bytes(context, problem))};
}

ScratchSize linear_packed_scratch(const Context& context, const LinearProblem& problem) {
  return puts_rows_in_lanes(context, problem) ? linear_scratch(context, problem) : ScratchSize{0, row_batch_bytes(1)};
}

void pack_linear(Context& context, const LinearProblem& problem, const float* w, float* packed) noexcept {
  if (puts_rows_in_lanes(context, problem)) {
    for (Index i = 0; i < problem.in * problem.out; ++i) {
      packed[i] = w[i / problem.out * problem.w_row_stride + i % problem.out * problem.w_column_stride];
    }
    return;
  }
  pack_b(context, problem.in, problem.out, w, problem.w_row_stride, problem.w_column_stride, packed);
}

void run_linear(Context& context, const LinearProblem& p, const float* x, const float* w, const Epilogue& epilogue,
                float* y) noexcept {
  // Rows [top, bottom) and columns [left, right).
  const auto run = [&](Index top, Index bottom, Index left, Index right, int thread) {
    simd::Gemm gemm;
    gemm.m = bottom - top, gemm.n = right - left, gemm.k = p.in;
    gemm.a = x + top * p.x_row_stride, gemm.a_row_stride = p.x_row_stride, gemm.a_column_stride = p.x_column_stride;
    gemm.b = w + left * p.w_column_stride, gemm.b_row_stride = p.w_row_stride, gemm.b_column_stride = p.w_column_stride;
    gemm.c = y + top * p.out + left, gemm.c_stride = p.out;
    gemm.epilogue.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + left;
    gemm.epilogue.residual = epilogue.residual == nullptr ? nullptr : epilogue.residual + top * p.out + left;
    gemm.epilogue.residual_stride = p.out;
    gemm.epilogue.relu = epilogue.relu;
    gemm.scratch = reinterpret_cast<float*>(context.thread_scratch(thread));
    context.kernels().gemm(gemm);
  };
  const Parts parts(context, p);
  if (parts.by_rows) {
    constexpr Index kTile = Parts::kTile;
    context.parallel_for(parts.tiles, kTile * p.in * (p.out / 16 + 1), [&](Index begin, Index end, int thread) {
      run(begin * kTile, std::min(end * kTile, p.rows), 0, p.out, thread);
    });
  } else {
    constexpr Index kPanel = Parts::kPanel;
    context.parallel_for(parts.panels, Parts::panel_work(p), [&](Index begin, Index end, int thread) {
      run(0, p.rows, begin * kPanel, std::min(end * kPanel, p.out), thread);
    });
  }
}

void run_linear_packed(Context& context, const LinearProblem& problem, const float* x, const float* packed,
                       const Epilogue& epilogue, float* y) noexcept {
  if (puts_rows_in_lanes(context, problem)) {
    LinearProblem dense = problem;
    dense.w_row_stride = problem.out, dense.w_column_stride = 1;
    return run_linear(context, dense, x, packed, epilogue, y);
  }
  simd::GemmRows product;
  product.n = problem.out;
  product.far_c = is_far(problem.rows * problem.out);
  product.segments = 1;
  product.segment_length = problem.in;
  product.a_stride = problem.x_column_stride;
  product.packed_b = packed;
  product.packed_k = problem.in;
  product.bias = epilogue.bias;
  product.relu = epilogue.relu;
  const Parts parts(context, problem);
  if (parts.by_rows) return multiply_rows(context, product, problem.rows, x, problem.x_row_stride, epilogue.residual, y);
  context.parallel_for(parts.panels, Parts::panel_work(problem), [&](Index begin, Index end, int thread) {
    const Index left = begin * Parts::kPanel;
    simd::GemmRows part = product;
    part.n = std::min(end * Parts::kPanel, problem.out) - left;
    part.packed_b += left * problem.in;
    if (part.bias != nullptr) part.bias += left;
    multiply_rows(context.kernels(), part, problem.rows, x, problem.x_row_stride,
                  epilogue.residual == nullptr ? nullptr : epilogue.residual + left, y + left, problem.out,
                  context.thread_scratch(thread));
  });
}

void linear(Context& context, const LinearAttrs& attrs, ConstTensorView x, ConstTensorView w, TensorView y,
            const EpilogueViews& epilogue) {
  LinearProblem problem = linear_problem(attrs, x.shape(), w.shape()).value();
  require_shape("linear", {"y", y}, Shape{problem.rows, problem.out});
  require_contiguous("linear", {{"y", y}});
  require_apart("linear", {"y", y}, {{"x", x}, {"w", w}});
  set_strides(problem, x, w);
  context.reserve_scratch(linear_scratch(context, problem));
  run_linear(context, problem, x.data(), w.data(), checked_epilogue("linear", epilogue, y), y.data());
}

void linear_grad_input(Context& context, const LinearAttrs& attrs, ConstTensorView dy, ConstTensorView w, TensorView dx) {
  LinearProblem problem = linear_problem(attrs, dx.shape(), w.shape()).value();
  require_shape("linear_grad_input", {"dy", dy}, Shape{problem.rows, problem.out});
  require_contiguous("linear_grad_input", {{"dy", dy}, {"dx", dx}});
  require_apart("linear_grad_input", {"dx", dx}, {{"dy", dy}, {"w", w}});
  set_strides(problem, dx, w);
  context.reserve_scratch(linear_grad_input_scratch(context, problem));
  run_linear_grad_input(context, problem, dy.data(), w.data(), dx.data());
}

void linear_grad_weight(Context& context, const LinearAttrs& attrs, ConstTensorView x, ConstTensorView dy, TensorView dw) {
  LinearProblem problem = linear_problem(attrs, x.shape(), dw.shape()).value();
  require_shape("linear_grad_weight", {"dy", dy}, Shape{problem.rows, problem.out});
  require_contiguous("linear_grad_weight", {{"dy", dy}, {"dw", dw}});
  require_apart("linear_grad_weight", {"dw", dw}, {{"x", x}, {"dy", dy}});
  set_strides(problem, x, dw);
  context.reserve_scratch(linear_grad_weight_scratch(context, problem));
  run_linear_grad_weight(context, problem, x.data(), dy.data(), dw.data());
}

}  // namespace vitro::ops
