// SPDX-License-Identifier: Apache-2.0
// Linear layers on the matrix kernels.
#include "linear.hpp"

#include "checks.hpp"
#include "row_batch.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

float* shared_floats(const Context& context) noexcept { return reinterpret_cast<float*>(context.shared_scratch()); }

// rows x k times a packed k x n. Row i of A starts at a + i * a_row_stride, rows of C and of the residual c_stride apart.
void multiply_rows(const simd::KernelTable& kernels, const simd::GemmRows& product, Index rows, const float* a,
                   Index a_row_stride, const float* residual, float* c, Index c_stride, std::byte* memory) noexcept {
  RowBatch batch(kernels, product, {}, residual != nullptr, memory);
  for (Index i = 0; i < rows;) {
    const float* const row_residual = residual == nullptr ? nullptr : residual + i * c_stride;
    const RowBatch::Rows added = batch.add(rows - i, c + i * c_stride, c_stride, row_residual);
    for (Index j = 0; j < added.count; ++j) added.slots[j] = a + (i + j) * a_row_stride;
    i += added.count;
  }
  batch.flush();
}

// The same, rows split over threads, C and residual dense.
void multiply_rows(Context& context, const simd::GemmRows& product, Index rows, const float* a, Index a_row_stride,
                   const float* residual, float* c) noexcept {
  const Index n = product.n;
  context.parallel_for(rows, (product.segment_length * n) / 16 + n + 1, [&](Index begin, Index end, int thread) {
    multiply_rows(context.kernels(), product, end - begin, a + begin * a_row_stride, a_row_stride,
                  residual == nullptr ? nullptr : residual + begin * n, c + begin * n, n, context.thread_scratch(thread));
  });
}

// With few rows, packing w for a gradient would take longer than multiplying by it.
constexpr Index kFewRows = 8;

bool reads_in_place(const LinearProblem& problem) noexcept { return problem.rows <= kFewRows && problem.w_column_stride == 1; }

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

  static constexpr Index kPanel = simd::kPackedColumns, kTile = 12;  // the micro-kernels' rows are divisors of 12
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

// What gemm needs for the blocks of `size` that cut `whole`, the last one shorter; scratch(block) in floats.
template <class Scratch>
std::size_t largest_block_bytes(Index whole, Index size, const Scratch& scratch) noexcept {
  return float_bytes(std::max(scratch(std::min(size, whole)), scratch(whole % size)));
}

// The gradients of few rows go by blocks of w and dw, read in place and written once. Packing all of w, or filling dw with
// zeros before something is added to it, takes longer than the products. Times over those of that way at 1x256x120, 1x120x84
// and 512x1000: dx 0.82, 0.79, 0.53 (AVX-512) and 0.85, 0.86, 0.63 (AVX2), dw 0.64, 0.50, 0.68 and 0.80, 0.78, 0.72.
constexpr Index kInputBlock = 64, kDepthBlock = 512;  // transposed at a time: 128 KB, a share of the second-level cache
constexpr Index kWeightRows = 96;

std::size_t transposed_block_bytes() noexcept { return float_bytes(kInputBlock * kDepthBlock); }

std::size_t input_block_bytes(const Context& context, const LinearProblem& p) noexcept {
  if (p.rows == 1) {
    return largest_block_bytes(p.in, kInputBlock, [&](Index m) { return context.kernels().gemm_scratch(m, 1, p.out); });
  }
  return largest_block_bytes(p.in, kInputBlock, [&](Index n) {
    const auto size = [&](Index k) { return context.kernels().gemm_scratch(p.rows, n, k); };
    return std::max(size(std::min(kDepthBlock, p.out)), size(p.out % kDepthBlock));
  });
}

// dx of few rows. The chain of each element goes on from block to block.
void multiply_transposed_blocks(Context& context, const LinearProblem& p, const float* dy, const float* w, float* dx) noexcept {
  const Index blocks = (p.in + kInputBlock - 1) / kInputBlock;
  context.parallel_for(blocks, (p.rows + 16) * p.out * kInputBlock / 16, [&](Index begin, Index end, int thread) {
    float* const transposed = reinterpret_cast<float*>(context.thread_scratch(thread));
    simd::Gemm gemm;
    gemm.m = p.rows;
    gemm.a_row_stride = p.out, gemm.a_column_stride = 1;
    gemm.b = transposed, gemm.b_row_stride = kInputBlock, gemm.b_column_stride = 1;
    gemm.c_stride = p.in;
    gemm.scratch = transposed + kInputBlock * kDepthBlock;
    for (Index i = begin * kInputBlock; i < std::min(end * kInputBlock, p.in); i += kInputBlock) {
      gemm.n = std::min(kInputBlock, p.in - i);
      gemm.c = dx + i;
      gemm.accumulate = simd::Accumulate::overwrite;
      Index k = 0;
      do {  // once even for no columns: dx is +0 then
        gemm.k = std::min(kDepthBlock, p.out - k);
        gemm.a = dy + k;
        context.kernels().transpose(gemm.n, gemm.k, w + i * p.w_row_stride + k, p.w_row_stride, transposed, kInputBlock);
        context.kernels().gemm(gemm);
        gemm.accumulate = simd::Accumulate::chain;
        k += kDepthBlock;
      } while (k < p.out);
    }
  });
}

// dx of one row: w times that row as a column, for which gemm takes w as it lies. 0.65, 0.70, 0.51 times as long (AVX-512; AVX2
// 0.69, 0.60, 0.65).
void multiply_one_row(Context& context, const LinearProblem& p, const float* dy, const float* w, float* dx) noexcept {
  const Index blocks = (p.in + kInputBlock - 1) / kInputBlock;
  context.parallel_for(blocks, p.out * kInputBlock, [&](Index begin, Index end, int thread) {
    simd::Gemm gemm;
    gemm.n = 1, gemm.k = p.out;
    gemm.a_row_stride = p.w_row_stride, gemm.a_column_stride = 1;
    gemm.b = dy, gemm.b_row_stride = 1, gemm.b_column_stride = 1;
    gemm.c_stride = 1;
    gemm.scratch = reinterpret_cast<float*>(context.thread_scratch(thread));
    for (Index i = begin * kInputBlock; i < std::min(end * kInputBlock, p.in); i += kInputBlock) {
      gemm.m = std::min(kInputBlock, p.in - i);
      gemm.a = w + i * p.w_row_stride, gemm.c = dx + i;
      context.kernels().gemm(gemm);
    }
  });
}

std::size_t weight_block_bytes(const Context& context, const LinearProblem& p) noexcept {
  return largest_block_bytes(p.in, kWeightRows, [&](Index m) { return context.kernels().gemm_scratch(m, p.out, p.rows); });
}

// dw of few rows, which are one chunk.
void multiply_few_rows(Context& context, const LinearProblem& p, const float* x, const float* dy, const float* zeros,
                       float* dw) noexcept {
  const Index blocks = (p.in + kWeightRows - 1) / kWeightRows;
  context.parallel_for(blocks, (p.rows + 16) * p.out * kWeightRows / 16, [&](Index begin, Index end, int thread) {
    simd::Gemm gemm;
    gemm.n = p.out, gemm.k = p.rows;
    gemm.a_row_stride = p.x_column_stride, gemm.a_column_stride = p.x_row_stride;
    gemm.b = dy, gemm.b_row_stride = p.out, gemm.b_column_stride = 1;
    gemm.c_stride = p.out;
    gemm.epilogue.bias = zeros;
    gemm.scratch = reinterpret_cast<float*>(context.thread_scratch(thread));
    for (Index i = begin * kWeightRows; i < std::min(end * kWeightRows, p.in); i += kWeightRows) {
      gemm.m = std::min(kWeightRows, p.in - i);
      gemm.a = x + i * p.x_column_stride, gemm.c = dw + i * p.out;
      context.kernels().gemm(gemm);
    }
  });
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

ScratchSize linear_grad_input_scratch(const Context& context, const LinearProblem& problem) {
  if (reads_in_place(problem) && problem.rows == 1) return {0, input_block_bytes(context, problem)};
  if (reads_in_place(problem)) return {0, transposed_block_bytes() + input_block_bytes(context, problem)};
  return {float_bytes(packed_b_step(context.kernels(), problem.out, problem.in)), row_batch_bytes(1)};
}

void run_linear_grad_input(Context& context, const LinearProblem& problem, const float* dy, const float* w,
                           float* dx) noexcept {
  if (reads_in_place(problem) && problem.rows == 1) return multiply_one_row(context, problem, dy, w, dx);
  if (reads_in_place(problem)) return multiply_transposed_blocks(context, problem, dy, w, dx);
  float* const packed = shared_floats(context);
  pack_b(context, problem.out, problem.in, w, problem.w_column_stride, problem.w_row_stride, packed);
  simd::GemmRows product;
  product.n = problem.in;
  product.far_c = is_far(problem.rows * problem.in);
  product.segments = 1;
  product.segment_length = problem.out;
  product.packed_b = packed;
  product.packed_k = problem.out;
  multiply_rows(context, product, problem.rows, dy, problem.out, nullptr, dx);
}

ScratchSize linear_grad_weight_scratch(const Context& context, const LinearProblem& problem) {
  const std::size_t zeros = aligned_up(float_bytes(problem.out));
  if (problem.rows <= kFewRows) return {zeros, weight_block_bytes(context, problem)};
  return {zeros + float_bytes(packed_b_step(context.kernels(), std::min(problem.rows, kGradWeightRows), problem.out)),
          row_batch_bytes(1, simd::Accumulate::add)};
}

void run_linear_grad_weight(Context& context, const LinearProblem& problem, const float* x, const float* dy,
                            float* dw) noexcept {
  // The first chunk is not added to zeros in memory: adding +0 afterwards gives the same bits.
  float* const zeros = shared_floats(context);
  std::fill_n(zeros, problem.out, 0.0f);
  if (problem.rows <= kFewRows) return multiply_few_rows(context, problem, x, dy, zeros, dw);
  float* const packed = zeros + aligned_up(float_bytes(problem.out)) / sizeof(float);
  simd::GemmRows product;
  product.n = problem.out;
  product.segments = 1;
  product.a_stride = problem.x_row_stride;
  product.packed_b = packed;
  product.bias = zeros;
  for (Index begin = 0; begin < problem.rows; begin += kGradWeightRows) {
    const Index rows = std::min(kGradWeightRows, problem.rows - begin);
    pack_b(context, rows, problem.out, dy + begin * problem.out, problem.out, 1, packed);
    product.segment_length = rows;
    product.packed_k = rows;
    multiply_rows(context, product, problem.in, x + begin * problem.x_row_stride, problem.x_column_stride, nullptr, dw);
    product.accumulate = simd::Accumulate::add;
    product.bias = nullptr;
  }
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
