// SPDX-License-Identifier: Apache-2.0
// Matrix products: the contract of gemm and gemm_rows, the same for every variant.
//
// gemm multiplies matrices with any strides and packs what it must into the caller's scratch; gemm_rows multiplies rows that
// are given by pointers with a B that pack_b has laid out before (weights packed once, convolutions without an im2col matrix).
// A NaN or an infinity in A or B takes part like any number: no term of a chain is left out, none is added (zeros are not
// padded along k). All arrays may have any alignment of at least 4 bytes; scratch and packed_b are 64-byte aligned.
#pragma once

#include "variant.hpp"

#include <cstdint>

namespace vitro::simd {

// What a matrix kernel does with an element of C before and after its chain of fused multiply-adds.
enum class Accumulate : unsigned char {
  overwrite,  // chain from +0, result stored
  chain,      // chain starts from the value in C, result stored
  add,        // chain from +0, then C = C + chain, one addition
};

// Applied to each finished element of C, in this order, one IEEE operation each.
struct Epilogue {
  const float* bias = nullptr;      // [n]: c = c + bias[j], unless null
  const float* residual = nullptr;  // row i at residual + i * residual_stride: c = c + residual[i][j], unless null
  Index residual_stride = 0;
  bool relu = false;  // c = c < 0 ? +0 : c
};

// C[m, n] (+)= A[m, k] * B[k, n] with any strides for A and B (transposes, broadcasts, negative ones), and rows of C that are
// dense (C(i, j) = c[i * c_stride + j]). For each element one chain acc = fma(A(i,p), B(p,j), acc), p rising from 0. k = 0
// gives +0 (overwrite, add) or leaves C (chain), then the epilogue runs. m = 0 or n = 0 touches nothing.
struct Gemm {
  Index m = 0, n = 0, k = 0;
  const float* a = nullptr;
  Index a_row_stride = 0, a_column_stride = 0;  // A(i, p) = a[i * a_row_stride + p * a_column_stride]
  const float* b = nullptr;
  Index b_row_stride = 0, b_column_stride = 0;  // B(p, j) = b[p * b_row_stride + j * b_column_stride]
  float* c = nullptr;
  Index c_stride = 0;
  Accumulate accumulate = Accumulate::overwrite;
  Epilogue epilogue;
  float* scratch = nullptr;  // 64-byte aligned, at least gemm_scratch(m, n, k) floats; null is legal where that is 0
};

// Lays out rows [begin, end) of B[k, n] for gemm_rows: all of them, or some of several calls, which may be threads'.
struct PackB {
  Index k = 0, n = 0;
  const float* b = nullptr;  // row `begin`
  Index b_row_stride = 0, b_column_stride = 1;
  float* packed = nullptr;  // of all rows: packed_b_size(k, n) floats, 64-byte aligned
  Index begin = 0, end = 0;
};

// The product of gemm where A is given as rows cut into segments (im2col as index arithmetic: a segment is a run of one NHWC
// row, or of a row of zeros for padding), B was packed before, and the rows of C may lie anywhere.
//   k = segments * segment_length;  A(i, s * segment_length + t) = a[i * segments + s][t * a_stride].
// Segment s multiplies rows b_segments[s] .. b_segments[s] + segment_length of the packed B (b_segments null: row
// s * segment_length), so that taps can be left out or reordered without packing again. Where all rows of A have their segments
// at the same distances (windows of an image without padding), one pointer for each is enough: with a_segments it is
//   A(i, s * segment_length + t) = a[i][a_segments[s] + t * a_stride].
// Rows may lack segments (windows that reach beyond an image): with run_ends, a pointer may be null, and the chain goes on with
// the next segment as if that one were not there. Rows of one run lack the same segments.
struct GemmRows {
  Index rows = 0, n = 0;
  const float* const* a = nullptr;    // [rows][segments], or with a_segments [rows]
  const Index* a_segments = nullptr;  // [segments], in floats
  Index segments = 0, segment_length = 0, a_stride = 1;
  const float* packed_b = nullptr;  // from pack_b with the same n, all of its rows
  Index packed_k = 0;               // the k that pack_b was given
  const Index* b_segments = nullptr;
  float* const* c = nullptr;  // [rows], each to n dense floats
  bool near_a = false;  // A is in the caches: while one tile is computed, the next one's rows of C are brought near, not A's
  bool far_c = false;   // C lies beyond the caches: its rows are brought near while their chains are computed
  Accumulate accumulate = Accumulate::overwrite;
  const float* row_bias = nullptr;         // [rows] or null: c = c + row_bias[i], before the other bias
  const float* bias = nullptr;             // [n] or null
  const float* const* residual = nullptr;  // [rows] pointers to n floats each, or null
  bool relu = false;
  // 64-byte aligned, rows * kGemmRowsScratch floats, for Accumulate::add with a k of more than 512: without it (null) the
  // chains are not cut, and a B that is larger than the second-level cache is read from farther away for each tile.
  float* scratch = nullptr;
  const Index* run_ends = nullptr;  // [runs], rising, the last one is `rows`; null where a_segments is not
  Index runs = 0;
};
constexpr Index kGemmRowsScratch = 64;
// Of a packed B[k, n] the columns from a multiple of this on, column j say, are a packed B too: float j * k is its first.
constexpr Index kPackedColumns = 64;

// The same product where the columns are the pixels of planes, one plane for each k and row of C (convolutions with few
// channels, which would leave most lanes idle as columns): row p of B is n floats at b + b_rows[p], rows may overlap, and
// neither B nor C is packed or aligned. n is a multiple of kPlaneStep: B and C have that many columns, used or not.
//   C(i, j) = chain over p of A(i, p) * B(p, j), A(i, p) = a[i * a_row_stride + p * a_column_stride], C(i, j) at
//   c + i * c_stride + j.
struct GemmPlanes {
  Index rows = 0, n = 0, k = 0;
  const float* a = nullptr;
  Index a_row_stride = 0, a_column_stride = 0;
  const float* b = nullptr;
  const Index* b_rows = nullptr;  // [k], in floats
  float* c = nullptr;
  Index c_stride = 0;
  bool chain = false;                   // chains start from the value in C, not from +0
  const std::int32_t* taken = nullptr;  // [n] or null: -1 where column j of C takes the result, 0 where it stays as it was
  const float* row_bias = nullptr;      // [rows] or null: c = c + row_bias[i]
  bool relu = false;                    // c = c < 0 ? +0 : c
};
constexpr Index kPlaneStep = 16;

// Many small products at once, one in each lane (gradients of few filters, whose chunks of images are chains of their own): all
// of A, B and C are kGemmLanes floats for each element, whatever the variant's vectors hold. In lane l < lanes
//   C(i, j) = chain over p of A(i, p) * B(p, j), p = s * line_length + t for s < lines, t < line_length,
//   A(i, p) at a + a_rows[i] + s * a_line + t * a_step, B(p, j) at b + (p * columns + j) * kGemmLanes,
//   C(i, j) at c + (i * columns + j) * kGemmLanes.
// The other lanes of C stay as they were; those of A and B may be read.
struct GemmLanes {
  Index rows = 0, columns = 0, lanes = 0;
  Index lines = 0, line_length = 0;
  const float* a = nullptr;
  const Index* a_rows = nullptr;  // [rows], in floats
  Index a_line = 0, a_step = 0;   // in floats
  const float* b = nullptr;
  float* c = nullptr;
  bool chain = false;  // chains start from the value in C, not from +0
};
constexpr Index kGemmLanes = 16;

// Rows of y, each put together from runs of x (the taps under a convolution's window):
//   y[i * y_stride + r * run + t] = x[i / block * x_block_stride + i % block * x_stride + offsets[r] + t]
// for i < rows, r < runs, t < run. Requires that rows is a multiple of block and offsets[r] >= r * run.
struct RunCopy {
  Index rows = 0, block = 1;
  Index runs = 0, run = 0;
  const Index* offsets = nullptr;  // [runs]
  const float* x = nullptr;
  Index x_stride = 0, x_block_stride = 0;
  float* y = nullptr;
  Index y_stride = 0;
};

// The entry points of one variant; KernelTable says what each does.
#define VITRO_GEMM_ENTRY_POINTS                                                                                 \
  Index gemm_scratch(Index m, Index n, Index k) noexcept;                                                       \
  void gemm(const Gemm& args) noexcept;                                                                         \
  Index packed_b_size(Index k, Index n) noexcept;                                                               \
  void pack_b(const PackB& args) noexcept;                                                                      \
  void gemm_rows(const GemmRows& args) noexcept;                                                                \
  void gemm_planes(const GemmPlanes& args) noexcept;                                                            \
  void gemm_lanes(const GemmLanes& args) noexcept;                                                              \
  void transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept; \
  void copy_runs(const RunCopy& args) noexcept;

namespace scalar {
VITRO_GEMM_ENTRY_POINTS
}
namespace scalar_fma {
VITRO_GEMM_ENTRY_POINTS
}
namespace blocked {
VITRO_GEMM_ENTRY_POINTS
}
namespace blocked_fma {
VITRO_GEMM_ENTRY_POINTS
}
namespace avx2 {
VITRO_GEMM_ENTRY_POINTS
}
namespace avx512 {
VITRO_GEMM_ENTRY_POINTS
}

#undef VITRO_GEMM_ENTRY_POINTS

}  // namespace vitro::simd
