// SPDX-License-Identifier: Apache-2.0
// Matrix products in cache blocks and register tiles, written without vectors: Vec is one float.
#include "gemm.hpp"
#include "vec_scalar.hpp"

namespace vitro::simd {
namespace {

struct Tuning {
  // 32 chains are more than 16 registers hold one float each, but compilers put the 8 columns of a row into vectors of the
  // target's baseline: 4 x 8 ran at 30 (GCC 12) and 43 (Clang 14) GFLOP/s where 4 x 4 ran at 23 and 21, and 6 x 2 at 15 (GCC).
  static constexpr int kVectors = 8;
  static constexpr int kRows[] = {0, 4, 4, 4, 4, 4, 4, 4, 4};
  static constexpr Index kDepth = 512;
  // As for AVX2, but a slower tile hides more of the misses: B 512 floats wide was even at m = 200.
  static constexpr Index kPackFarBFrom = 96;
  static constexpr Index kPackNearBFrom = 192;
  static constexpr Index kPackStridedAFrom = 128;
  // Twice and half of either changed nothing at 1024 and 2048 cubed.
  static constexpr Index kColumnBlock = 1024;
  static constexpr Index kRowBlock = 240;
  // Lanes are taken one by one.
  static constexpr int kMostColumnsInLanes = 0;  // there are no lanes to fill
  static constexpr int kLaneRows = 2, kLaneColumns = 2;

  static void transpose(const Vec::Reg (&in)[1], Vec::Reg (&out)[1]) noexcept { out[0] = in[0]; }
  static bool interleave_planes(Index, Index, const float*, Index, float*, Index) noexcept { return false; }
  static constexpr int kPiece = 1;
  struct PieceRows {
    PieceRows(const float* from, Index) noexcept : first(from) {}
    void advance(Index columns) noexcept { first += columns; }
    void hide() noexcept {}

    const float* first;
  };
  static void transpose_piece(const PieceRows& from, Vec::Reg (&out)[kPiece]) noexcept { out[0] = Vec::load(from.first); }
};

}  // namespace
}  // namespace vitro::simd

#include "gemm_body.inl"
#include "gemm_copy.inl"
#include "gemm_lanes.inl"
#include "gemm_planes.inl"
#include "gemm_rows.inl"

namespace vitro::simd::VITRO_BLOCKED {

Index gemm_scratch(Index m, Index n, Index k) noexcept { return body_scratch(m, n, k); }
void gemm(const Gemm& args) noexcept { body_gemm(args); }
Index packed_b_size(Index k, Index n) noexcept { return body_packed_b_size(k, n); }
void pack_b(const PackB& args) noexcept { pack_panels(args); }
void gemm_rows(const GemmRows& args) noexcept { body_gemm_rows(args); }
void gemm_planes(const GemmPlanes& args) noexcept { body_gemm_planes(args); }
void gemm_lanes(const GemmLanes& args) noexcept { body_gemm_lanes(args); }
void transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  body_transpose(rows, columns, x, x_stride, y, y_stride);
}
void copy_runs(const RunCopy& args) noexcept { body_copy_runs(args); }

}  // namespace vitro::simd::VITRO_BLOCKED
