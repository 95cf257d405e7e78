// SPDX-License-Identifier: Apache-2.0
// Matrix products as three loops: the oracle that every other variant must equal bit for bit. Never optimised.
#include "gemm.hpp"
#include "vec_scalar.hpp"

namespace vitro::simd::VITRO_SCALAR {

namespace {

// C is read only where it takes part: an overwritten C may be uninitialised.
float start(Accumulate accumulate, const float& c) noexcept { return accumulate == Accumulate::chain ? c : 0.0f; }

float finish(Accumulate accumulate, const float& c, float chain, const float* row_bias, const float* bias,
             const float* residual, bool relu) noexcept {
  float result = accumulate == Accumulate::add ? c + chain : chain;
  if (row_bias != nullptr) result = result + *row_bias;
  if (bias != nullptr) result = result + *bias;
  if (residual != nullptr) result = result + *residual;
  return relu && result < 0.0f ? 0.0f : result;
}

}  // namespace

Index gemm_scratch(Index, Index, Index) noexcept { return 0; }

void gemm(const Gemm& args) noexcept {
  const Epilogue& epilogue = args.epilogue;
  for (Index i = 0; i < args.m; ++i) {
    const float* residual = epilogue.residual == nullptr ? nullptr : epilogue.residual + i * epilogue.residual_stride;
    for (Index j = 0; j < args.n; ++j) {
      float& c = args.c[i * args.c_stride + j];
      float chain = start(args.accumulate, c);
      for (Index p = 0; p < args.k; ++p) {
        chain = Vec::fma(args.a[i * args.a_row_stride + p * args.a_column_stride],
                         args.b[p * args.b_row_stride + j * args.b_column_stride], chain);
      }
      c = finish(args.accumulate, c, chain, nullptr, epilogue.bias == nullptr ? nullptr : epilogue.bias + j,
                 residual == nullptr ? nullptr : residual + j, epilogue.relu);
    }
  }
}

// Packed B is B, row by row.
Index packed_b_size(Index k, Index n) noexcept { return k * n; }

void pack_b(const PackB& args) noexcept {
  for (Index p = args.begin; p < args.end; ++p) {
    for (Index j = 0; j < args.n; ++j) {
      args.packed[p * args.n + j] = args.b[(p - args.begin) * args.b_row_stride + j * args.b_column_stride];
    }
  }
}

void gemm_rows(const GemmRows& args) noexcept {
  for (Index i = 0; i < args.rows; ++i) {
    const float* residual = args.residual == nullptr ? nullptr : args.residual[i];
    for (Index j = 0; j < args.n; ++j) {
      float& c = args.c[i][j];
      float chain = start(args.accumulate, c);
      for (Index s = 0; s < args.segments; ++s) {
        const float* a = args.a_segments == nullptr ? args.a[i * args.segments + s] : args.a[i] + args.a_segments[s];
        if (args.run_ends != nullptr && a == nullptr) continue;
        const Index first_row = args.b_segments == nullptr ? s * args.segment_length : args.b_segments[s];
        for (Index t = 0; t < args.segment_length; ++t) {
          chain = Vec::fma(a[t * args.a_stride], args.packed_b[(first_row + t) * args.n + j], chain);
        }
      }
      c = finish(args.accumulate, c, chain, args.row_bias == nullptr ? nullptr : args.row_bias + i,
                 args.bias == nullptr ? nullptr : args.bias + j, residual == nullptr ? nullptr : residual + j, args.relu);
    }
  }
}

void gemm_planes(const GemmPlanes& args) noexcept {
  for (Index i = 0; i < args.rows; ++i) {
    for (Index j = 0; j < args.n; ++j) {
      if (args.taken != nullptr && args.taken[j] == 0) continue;
      float& c = args.c[i * args.c_stride + j];
      float chain = start(args.chain ? Accumulate::chain : Accumulate::overwrite, c);
      for (Index p = 0; p < args.k; ++p) {
        chain = Vec::fma(args.a[i * args.a_row_stride + p * args.a_column_stride], args.b[args.b_rows[p] + j], chain);
      }
      c = finish(Accumulate::overwrite, c, chain, args.row_bias == nullptr ? nullptr : args.row_bias + i, nullptr, nullptr,
                 args.relu);
    }
  }
}

void gemm_lanes(const GemmLanes& args) noexcept {
  for (Index i = 0; i < args.rows; ++i) {
    for (Index j = 0; j < args.columns; ++j) {
      for (Index lane = 0; lane < args.lanes; ++lane) {
        float& c = args.c[(i * args.columns + j) * kGemmLanes + lane];
        float chain = start(args.chain ? Accumulate::chain : Accumulate::overwrite, c);
        for (Index p = 0; p < args.lines * args.line_length; ++p) {
          const Index at = args.a_rows[i] + p / args.line_length * args.a_line + p % args.line_length * args.a_step;
          chain = Vec::fma(args.a[at + lane], args.b[(p * args.columns + j) * kGemmLanes + lane], chain);
        }
        c = chain;
      }
    }
  }
}

void transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) y[j * y_stride + i] = x[i * x_stride + j];
  }
}

void copy_runs(const RunCopy& args) noexcept {
  for (Index i = 0; i < args.rows; ++i) {
    const float* const x = args.x + i / args.block * args.x_block_stride + i % args.block * args.x_stride;
    for (Index r = 0; r < args.runs; ++r) {
      for (Index t = 0; t < args.run; ++t) args.y[i * args.y_stride + r * args.run + t] = x[args.offsets[r] + t];
    }
  }
}

}  // namespace vitro::simd::VITRO_SCALAR
