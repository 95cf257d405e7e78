// SPDX-License-Identifier: Apache-2.0
// Internal: the vector vocabulary over AVX2 and FMA3 registers, 8 floats each. The contract of each operation is in
// vec_scalar.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#if !defined(__AVX2__) || !defined(__FMA__)
#error "Compile this file with -mavx2 -mfma."
#endif
#ifdef __FAST_MATH__
#error "Vitro's numerics contract rules out -ffast-math."
#endif

namespace vitro::simd {
namespace {

struct Vec {
  using Reg = __m256;
  using Mask = __m256;  // all bits of a lane set, or none
  using Int = __m256i;
  static constexpr int kWidth = 8;

  static Reg zero() noexcept { return _mm256_setzero_ps(); }
  static Reg set1(float x) noexcept { return _mm256_set1_ps(x); }
  static Reg load(const float* p) noexcept { return _mm256_loadu_ps(p); }
  static void store(float* p, Reg x) noexcept { _mm256_storeu_ps(p, x); }
  static Mask first(std::ptrdiff_t n) noexcept {
    const Int count = _mm256_set1_epi32(n < kWidth ? static_cast<int>(n) : kWidth);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  }
  static Reg load(Mask mask, const float* p) noexcept { return _mm256_maskload_ps(p, _mm256_castps_si256(mask)); }
  static void store(Mask mask, float* p, Reg x) noexcept { _mm256_maskstore_ps(p, _mm256_castps_si256(mask), x); }
  static Reg fill(Reg x, Mask mask, const float* p) noexcept { return _mm256_or_ps(x, load(mask, p)); }

  static Reg add(Reg a, Reg b) noexcept { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) noexcept { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) noexcept { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) noexcept { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) noexcept { return _mm256_fmadd_ps(a, b, c); }

  static Mask less(Reg a, Reg b) noexcept { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Reg a, Reg b) noexcept { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  static Mask not_less_equal(Reg a, Reg b) noexcept { return _mm256_cmp_ps(a, b, _CMP_NLE_UQ); }
  static Mask equal(Reg a, Reg b) noexcept { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static Mask mask_and(Mask a, Mask b) noexcept { return _mm256_and_ps(a, b); }
  static Mask mask_or(Mask a, Mask b) noexcept { return _mm256_or_ps(a, b); }
  static Mask mask_not(Mask a) noexcept { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
  static bool any(Mask a) noexcept { return _mm256_movemask_ps(a) != 0; }
  static Reg select(Mask mask, Reg a, Reg b) noexcept { return _mm256_blendv_ps(b, a, mask); }
  static Int select(Mask mask, Int a, Int b) noexcept { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(mask)); }

  static Int set1_int(std::int32_t x) noexcept { return _mm256_set1_epi32(x); }
  static Int load_ints(const std::int32_t* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Int add_int(Int a, Int b) noexcept { return _mm256_add_epi32(a, b); }
  static Int sub_int(Int a, Int b) noexcept { return _mm256_sub_epi32(a, b); }
  static Int and_int(Int a, Int b) noexcept { return _mm256_and_si256(a, b); }
  static Mask equal_int(Int a, Int b) noexcept { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
  template <int bits>
  static Int shift_left(Int a) noexcept {
    return _mm256_slli_epi32(a, bits);
  }
  template <int bits>
  static Int shift_right(Int a) noexcept {
    return _mm256_srli_epi32(a, bits);
  }
  static Int as_int(Reg x) noexcept { return _mm256_castps_si256(x); }
  static Reg as_float(Int x) noexcept { return _mm256_castsi256_ps(x); }
  static Reg to_float(Int x) noexcept { return _mm256_cvtepi32_ps(x); }
  static Reg permute(Reg x, Int from) noexcept { return _mm256_permutevar8x32_ps(x, from); }
  static Int permute(Int x, Int from) noexcept { return _mm256_permutevar8x32_epi32(x, from); }
  static Reg permute(Reg a, Reg b, Int from) noexcept {
    const Reg in_b = _mm256_castsi256_ps(_mm256_slli_epi32(from, 28));  // the sign chooses
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, from), _mm256_permutevar8x32_ps(b, from), in_b);
  }

  static Int load_bytes(const std::uint8_t* p) noexcept {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static Int load_bytes(Mask mask, const std::uint8_t* p) noexcept {
    const unsigned lanes = static_cast<unsigned>(_mm256_movemask_ps(mask));
    if (lanes == 0xFF) return load_bytes(p);
    std::uint8_t bytes[kWidth] = {};  // AVX2 has no byte masks
    for (unsigned i = 0; i < kWidth; ++i) {
      if (lanes >> i & 1) bytes[i] = p[i];
    }
    return load_bytes(bytes);
  }
  static void store_bytes(Mask mask, std::uint8_t* p, Int x) noexcept {
    // Low bytes of each 128-bit half to its first four bytes, then the halves side by side.
    const Int pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                      0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const Int packed = _mm256_shuffle_epi8(x, pick);
    const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
    const unsigned lanes = static_cast<unsigned>(_mm256_movemask_ps(mask));
    if (lanes == 0xFF) return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
    std::uint8_t buffer[kWidth];
    _mm_storel_epi64(reinterpret_cast<__m128i*>(buffer), bytes);
    for (unsigned i = 0; i < kWidth; ++i) {
      if (lanes >> i & 1) p[i] = buffer[i];
    }
  }

  static float tree_sum(const Reg (&acc)[16 / kWidth]) noexcept {
    const __m256 eight = _mm256_add_ps(acc[0], acc[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  static float tree_max(Reg x) noexcept {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace
}  // namespace vitro::simd
