// SPDX-License-Identifier: Apache-2.0
// Gradients of linear layers.
#include "linear.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

float* shared_floats(const Context& context) noexcept { return reinterpret_cast<float*>(context.shared_scratch()); }

// With few rows, packing w for a gradient would take longer than multiplying by it.
constexpr Index kFewRows = 8;

bool reads_in_place(const LinearProblem& problem) noexcept { return problem.rows <= kFewRows && problem.w_column_stride == 1; }

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

}  // namespace

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

}  // namespace vitro::ops
