// SPDX-License-Identifier: Apache-2.0
// Planes to pixels: an even number of rows of floats, up to 8, interleaved to dense pixels of as many, in 256-bit registers.
//
// Included by gemm_avx2.cpp and gemm_avx512.cpp; with 512 bits there would be half as many ports for the exchanges.
#include <cstddef>
#include <immintrin.h>

namespace vitro::simd {
namespace {

// pair[i] holds, in each 128-bit lane, elements 2 * i and 2 * i + 1 of a first pixel and then of a second one. Stores the two
// pixels of the low lanes at `to` and those of the high lanes `lane_step` floats on, from their 128 bits number m on.
template <int pairs, int m = 0>
[[gnu::always_inline]] inline void store_pixels(const __m256d (&pair)[pairs], float* to, std::ptrdiff_t lane_step) noexcept {
  constexpr int kFirst = 2 * m, kSecond = 2 * m + 1;  // of the 64-bit halves in the order of the pixels
  constexpr int kHalves = kFirst / pairs * 0x5 | kSecond / pairs * 0xA;
  const __m256 halves = _mm256_castpd_ps(_mm256_shuffle_pd(pair[kFirst % pairs], pair[kSecond % pairs], kHalves));
  _mm_storeu_ps(to + 4 * m, _mm256_castps256_ps128(halves));
  _mm_storeu_ps(to + lane_step + 4 * m, _mm256_extractf128_ps(halves, 1));
  if constexpr (m + 1 < pairs) store_pixels<pairs, m + 1>(pair, to, lane_step);
}

// y[j * 2 * pairs + i] = x[i * x_stride + j] for i < 2 * pairs, j < columns. Requires columns >= 8. What the last column would
// cut short begins earlier, and is written twice.
template <int pairs>
void interleave_pairs(std::ptrdiff_t columns, const float* x, std::ptrdiff_t x_stride, float* y) noexcept {
  for (std::ptrdiff_t j = 0; j < columns; j += 8) {
    const std::ptrdiff_t column = j < columns - 8 ? j : columns - 8;
    __m256d even[pairs], odd[pairs];  // of each four pixels the first two, and the others
    for (int i = 0; i < pairs; ++i) {
      const __m256 first = _mm256_loadu_ps(x + 2 * i * x_stride + column);
      const __m256 second = _mm256_loadu_ps(x + (2 * i + 1) * x_stride + column);
      even[i] = _mm256_castps_pd(_mm256_unpacklo_ps(first, second));
      odd[i] = _mm256_castps_pd(_mm256_unpackhi_ps(first, second));
    }
    float* const to = y + column * 2 * pairs;
    store_pixels(even, to, 8 * pairs);
    store_pixels(odd, to + 4 * pairs, 8 * pairs);
  }
}

// y[j * y_stride + i] = x[i * x_stride + j] for i < rows, j < columns where that can be done so; whether it could.
bool try_interleave(std::ptrdiff_t rows, std::ptrdiff_t columns, const float* x, std::ptrdiff_t x_stride, float* y,
                    std::ptrdiff_t y_stride) noexcept {
  if (columns < 8 || y_stride != rows) return false;
  switch (rows) {
    case 2: interleave_pairs<1>(columns, x, x_stride, y); return true;
    case 4: interleave_pairs<2>(columns, x, x_stride, y); return true;
    case 6: interleave_pairs<3>(columns, x, x_stride, y); return true;
    case 8: interleave_pairs<4>(columns, x, x_stride, y); return true;
    default: return false;
  }
}

}  // namespace
}  // namespace vitro::simd
