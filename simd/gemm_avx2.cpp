// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX2.
#include "gemm.hpp"
#include "vec_avx2.hpp"

#include "gemm_interleave.inl"

namespace vitro::simd {
namespace {

struct Tuning {
  // 6 x 16: 12 chains, 2 vectors of B and one of A fill 15 of the 16 registers; 5 x 16 was 3 % slower, 4 x 16 7 %.
  // One vector wide, 12 rows gained 7 % over 10.
  static constexpr int kVectors = 2;
  static constexpr int kRows[] = {0, 12, 6};
  // A panel of B takes 32 KB, most of the first-level cache; the rows of A stream past it.
  static constexpr Index kDepth = 512;
  // Reading in place wins until the pages and cache sets that the rows touch run out. B 512 floats wide: in place 81 against 78
  // GFLOP/s, packed, at m = 150; 1024 wide, k = 256: 77 against 65 at m = 24, even at 64. A transposed: 1152 x 128 x 512 went
  // from 57 to 78, 120 x 84 x 64 lost 7 %.
  static constexpr Index kPackFarBFrom = 40;
  static constexpr Index kPackNearBFrom = 300;
  static constexpr Index kPackStridedAFrom = 128;
  // As for AVX-512: 1024 and 2048 cubed gained 1 % over 240 rows.
  static constexpr Index kColumnBlock = 1024;
  static constexpr Index kRowBlock = 120;
  // Chains in the lanes, rows x columns: 12 chains, 3 vectors of A and one of B take all 16 registers.
  // As for AVX-512: 36864 x 6 x 25 took 449 us without and takes 378 with, 64 x 6 x 84 1.23 and 1.16.
  static constexpr int kMostColumnsInLanes = 6;
  static constexpr int kLaneRows = 3, kLaneColumns = 4;

  static void transpose(const Vec::Reg (&in)[8], Vec::Reg (&out)[8]) noexcept {
    Vec::Reg quads[8];
    // quads[i + c] holds, in its 128-bit lane l, column 4 * l + c of rows i to i + 3.
    for (int i = 0; i < 8; i += 4) transpose_lanes(in + i, quads + i);
    for (int c = 0; c < 4; ++c) {
      out[c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20);
      out[4 + c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31);
    }
  }

  // Four columns of 8 rows straight from memory: the load ports bring rows r and r + 4 into the lanes of one register.
  static constexpr int kPiece = 4;
  struct PieceRows {
    PieceRows(const float* from, Index rows_stride) noexcept
        : first(from), second(from + 4 * rows_stride), stride(rows_stride) {}
    void advance(Index columns) noexcept { first += columns, second += columns; }
    void hide() noexcept {}  // 8 rows' distances fit into registers

    const float *first, *second;
    Index stride;
  };
  static void transpose_piece(const PieceRows& from, Vec::Reg (&out)[kPiece]) noexcept {
    Vec::Reg in[kPiece];
    for (int r = 0; r < kPiece; ++r) {
      const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(from.first + r * from.stride));
      in[r] = _mm256_insertf128_ps(low, _mm_loadu_ps(from.second + r * from.stride), 1);
    }
    transpose_lanes(in, out);
  }

  // A few planes as pixels, where it can be done.
  static constexpr auto interleave_planes = try_interleave;

 private:
  // The two 4 x 4 squares that lie side by side in the 128-bit lanes of four registers.
  static void transpose_lanes(const Vec::Reg* in, Vec::Reg* out) noexcept {
    for (int half = 0; half < 2; ++half) {
      const __m256 upper = half == 0 ? _mm256_unpacklo_ps(in[0], in[1]) : _mm256_unpackhi_ps(in[0], in[1]);
      const __m256 lower = half == 0 ? _mm256_unpacklo_ps(in[2], in[3]) : _mm256_unpackhi_ps(in[2], in[3]);
      const __m256d two = _mm256_castps_pd(upper), more = _mm256_castps_pd(lower);
      out[2 * half] = _mm256_castpd_ps(_mm256_unpacklo_pd(two, more));
      out[2 * half + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(two, more));
    }
  }
};

}  // namespace
}  // namespace vitro::simd

#include "gemm_body.inl"
#include "gemm_copy.inl"
#include "gemm_lanes.inl"
#include "gemm_planes.inl"
#include "gemm_rows.inl"

namespace vitro::simd::avx2 {

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

}  // namespace vitro::simd::avx2
