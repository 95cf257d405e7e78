// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX-512.
#include "gemm.hpp"
#include "vec_avx512.hpp"

#include "gemm_interleave.inl"

namespace vitro::simd {
namespace {

struct Tuning {
  // Columns first: a 6 x 64 tile reads 4 vectors of B and 6 numbers of A for 24 fma, the least traffic of what 32 registers
  // hold. Narrow tiles need at least 8 chains (latency 4, 2 fma a cycle); one vector wide, 12 ran at the peak of 177 GFLOP/s
  // and 16 at 157, whose row pointers do not fit into registers any more; two wide, convolutions of 3 channels took 0.94 of the
  // time with 10 that they took with 8, those of 24 and 32 as long.
  static constexpr int kVectors = 4;
  static constexpr int kRows[] = {0, 12, 10, 8, 6};
  // A panel of B takes 288 KB of the second-level cache (1 to 2 MB where there is AVX-512), six rows of A half of the first.
  // 1024 and 2048 cubed gained 2 % over 512, as C is read and written less often; 1152 is 3 * 3 * 128, the depth of a
  // convolution's product.
  static constexpr Index kDepth = 1152;
  // Reading in place wins until the pages and cache sets that the rows touch run out. B 256 or 384 floats wide: in place 171
  // and 168 against 162 and 157 GFLOP/s, packed, with as many rows; 512 wide they are even. 1024 wide, k = 256: in place 146
  // against 124 at m = 64, even at 100, 116 against 135 at 200. A transposed: 1024 cubed went from 77 to 136, one panel
  // (n = 64) lost a tenth.
  static constexpr Index kPackFarBFrom = 80;
  static constexpr Index kPackNearBFrom = 480;
  static constexpr Index kPackStridedAFrom = 128;
  // A block of A takes half of the second-level cache beside a panel of B: 2048 cubed ran at 155.3, 155.2, 154.2 and 153.4
  // GFLOP/s with 120, 180, 240 and 300 rows. A block of packed B is larger than that cache: its panels are prefetched.
  static constexpr Index kColumnBlock = 1024;
  static constexpr Index kRowBlock = 120;
  // Chains in the lanes, rows x columns: the rows' numbers stay in registers while the columns' pass.
  // With so few columns rows are put into the lanes: 4096 x 8 x 84 ran at 68 GFLOP/s without and at 91 with, 4096 x 10 x 84 at
  // 84 and 87, 4096 x 12 x 150 at 102 and 82.
  static constexpr int kMostColumnsInLanes = 10;
  static constexpr int kLaneRows = 4, kLaneColumns = 6;

  // Four times four rows are interleaved within 128-bit lanes, then the lanes are brought to their places. The masked forms
  // with all lanes on are what Vec uses, too: the plain ones make GCC 12 warn.
  static void transpose(const Vec::Reg (&in)[16], Vec::Reg (&out)[16]) noexcept {
    Vec::Reg quads[16];
    // quads[i + c] holds, in its 128-bit lane l, column 4 * l + c of rows i to i + 3.
    for (int i = 0; i < 16; i += 4) transpose_lanes(in + i, quads + i);
    for (int c = 0; c < 4; ++c) {
      const __m512 upper_even = _mm512_maskz_shuffle_f32x4(Vec::kAll, quads[c], quads[4 + c], 0x88);
      const __m512 upper_odd = _mm512_maskz_shuffle_f32x4(Vec::kAll, quads[c], quads[4 + c], 0xDD);
      const __m512 lower_even = _mm512_maskz_shuffle_f32x4(Vec::kAll, quads[8 + c], quads[12 + c], 0x88);
      const __m512 lower_odd = _mm512_maskz_shuffle_f32x4(Vec::kAll, quads[8 + c], quads[12 + c], 0xDD);
      out[c] = _mm512_maskz_shuffle_f32x4(Vec::kAll, upper_even, lower_even, 0x88);
      out[4 + c] = _mm512_maskz_shuffle_f32x4(Vec::kAll, upper_odd, lower_odd, 0x88);
      out[8 + c] = _mm512_maskz_shuffle_f32x4(Vec::kAll, upper_even, lower_even, 0xDD);
      out[12 + c] = _mm512_maskz_shuffle_f32x4(Vec::kAll, upper_odd, lower_odd, 0xDD);
    }
  }

  // Four columns of 16 rows straight from memory: the load ports bring rows r, r + 4, r + 8 and r + 12 into the lanes of one
  // register, and half of transpose()'s exchanges remain.
  static constexpr int kPiece = 4;
  struct PieceRows {
    PieceRows(const float* from, Index rows_stride) noexcept
        : first(from),
          second(from + 4 * rows_stride),
          third(from + 8 * rows_stride),
          fourth(third + 4 * rows_stride),
          stride(rows_stride) {}
    void advance(Index columns) noexcept { first += columns, second += columns, third += columns, fourth += columns; }
    // The compiler is not to know that these stay a distance apart: GCC 12 computed the distances of all 16 rows before a loop,
    // had no registers for them, and reloaded one for each load (36864 x 6 x 25 took 270 us instead of 220).
    void hide() noexcept {
      asm("" : "+r"(first));
      asm("" : "+r"(second));
      asm("" : "+r"(third));
      asm("" : "+r"(fourth));
    }

    const float *first, *second, *third, *fourth;
    Index stride;
  };
  static void transpose_piece(const PieceRows& from, Vec::Reg (&out)[kPiece]) noexcept {
    Vec::Reg in[kPiece];
    for (int r = 0; r < kPiece; ++r) {
      in[r] = _mm512_castps128_ps512(_mm_loadu_ps(from.first + r * from.stride));
      in[r] = _mm512_mask_broadcast_f32x4(in[r], 0x00F0, _mm_loadu_ps(from.second + r * from.stride));
      in[r] = _mm512_mask_broadcast_f32x4(in[r], 0x0F00, _mm_loadu_ps(from.third + r * from.stride));
      in[r] = _mm512_mask_broadcast_f32x4(in[r], 0xF000, _mm_loadu_ps(from.fourth + r * from.stride));
    }
    transpose_lanes(in, out);
  }

  // A few planes as pixels, where it can be done.
  static constexpr auto interleave_planes = try_interleave;

  // The same for 8 x 16: in[i] is row i, and out[i] columns i and i + 8, 8 lanes each; or, the other way round, in[i] rows i
  // and i + 8 of 8 lanes each, and out[i] column i.
  static void transpose_halves(const Vec::Reg (&in)[8], Vec::Reg (&out)[8]) noexcept {
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    Vec::Reg quads[8];
    for (int i = 0; i < 8; i += 4) transpose_lanes(in + i, quads + i);
    for (int c = 0; c < 4; ++c) {
      const __m512d upper = _mm512_castps_pd(quads[c]), lower = _mm512_castps_pd(quads[4 + c]);
      out[c] = _mm512_castpd_ps(_mm512_permutex2var_pd(upper, even, lower));
      out[4 + c] = _mm512_castpd_ps(_mm512_permutex2var_pd(upper, odd, lower));
    }
  }
  // The first lanes, up to 8, of two arrays.
  static Vec::Reg load_halves(Vec::Mask low_mask, const float* low, Vec::Mask high_mask, const float* high) noexcept {
    const __m256 first = _mm256_maskz_loadu_ps(static_cast<__mmask8>(low_mask), low);
    const __m256 second = _mm256_maskz_loadu_ps(static_cast<__mmask8>(high_mask), high);
    return _mm512_maskz_insertf32x8(Vec::kAll, _mm512_castps256_ps512(first), second, 1);
  }
  // Whole registers under masks: compilers make one instruction of extracting a half and storing it under a mask, and that one
  // touches the memory of lanes that the mask leaves out.
  static void store_halves(Vec::Reg x, Vec::Mask low_mask, float* low, Vec::Mask high_mask, float* high) noexcept {
    constexpr int kSwapHalves = 0x4E;
    Vec::store(low_mask, low, x);
    Vec::store(high_mask, high, _mm512_maskz_shuffle_f32x4(Vec::kAll, x, x, kSwapHalves));
  }

 private:
  // The four 4 x 4 squares that lie side by side in the 128-bit lanes of four registers.
  static void transpose_lanes(const Vec::Reg* in, Vec::Reg* out) noexcept {
    constexpr __mmask8 kAllDoubles = 0xFF;
    for (int half = 0; half < 2; ++half) {
      const __m512 upper =
          half == 0 ? _mm512_maskz_unpacklo_ps(Vec::kAll, in[0], in[1]) : _mm512_maskz_unpackhi_ps(Vec::kAll, in[0], in[1]);
      const __m512 lower =
          half == 0 ? _mm512_maskz_unpacklo_ps(Vec::kAll, in[2], in[3]) : _mm512_maskz_unpackhi_ps(Vec::kAll, in[2], in[3]);
      const __m512d two = _mm512_castps_pd(upper), more = _mm512_castps_pd(lower);
      out[2 * half] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kAllDoubles, two, more));
      out[2 * half + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kAllDoubles, two, more));
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

namespace vitro::simd::avx512 {

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

}  // namespace vitro::simd::avx512
