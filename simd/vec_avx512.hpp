// SPDX-License-Identifier: Apache-2.0
// Internal: the vector vocabulary over AVX-512 registers, 16 floats each. The contract of each operation is in vec_scalar.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
#error "Compile this file with -mavx512f -mavx512bw -mavx512dq -mavx512vl."
#endif
#ifdef __FAST_MATH__
#error "Vitro's numerics contract rules out -ffast-math."
#endif

namespace vitro::simd {
namespace {

struct Vec {
  using Reg = __m512;
  using Mask = __mmask16;
  using Int = __m512i;
  static constexpr int kWidth = 16;
  // GCC 12 warns of an uninitialised source inside the plain forms of some intrinsics; their zero-masked forms with all lanes
  // on are the same instruction without the warning.
  static constexpr Mask kAll = 0xFFFF;

  static Reg zero() noexcept { return _mm512_setzero_ps(); }
  static Reg set1(float x) noexcept { return _mm512_set1_ps(x); }
  static Reg load(const float* p) noexcept { return _mm512_loadu_ps(p); }
  static void store(float* p, Reg x) noexcept { _mm512_storeu_ps(p, x); }
  static Mask first(std::ptrdiff_t n) noexcept {
    return n < kWidth ? static_cast<Mask>((1u << static_cast<unsigned>(n)) - 1u) : kAll;
  }
  static Reg load(Mask mask, const float* p) noexcept { return _mm512_maskz_loadu_ps(mask, p); }
  static void store(Mask mask, float* p, Reg x) noexcept { _mm512_mask_storeu_ps(p, mask, x); }
  static Reg fill(Reg x, Mask mask, const float* p) noexcept { return _mm512_mask_loadu_ps(x, mask, p); }

  static Reg add(Reg a, Reg b) noexcept { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) noexcept { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) noexcept { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) noexcept { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) noexcept { return _mm512_fmadd_ps(a, b, c); }

  static Mask less(Reg a, Reg b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Reg a, Reg b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static Mask not_less_equal(Reg a, Reg b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ); }
  static Mask equal(Reg a, Reg b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Mask mask_and(Mask a, Mask b) noexcept { return static_cast<Mask>(a & b); }
  static Mask mask_or(Mask a, Mask b) noexcept { return static_cast<Mask>(a | b); }
  static Mask mask_not(Mask a) noexcept { return static_cast<Mask>(~a & 0xFFFF); }
  static bool any(Mask a) noexcept { return a != 0; }
  static Reg select(Mask mask, Reg a, Reg b) noexcept { return _mm512_mask_blend_ps(mask, b, a); }
  static Int select(Mask mask, Int a, Int b) noexcept { return _mm512_mask_blend_epi32(mask, b, a); }

  static Int set1_int(std::int32_t x) noexcept { return _mm512_set1_epi32(x); }
  static Int load_ints(const std::int32_t* p) noexcept { return _mm512_loadu_si512(p); }
  static Int add_int(Int a, Int b) noexcept { return _mm512_add_epi32(a, b); }
  static Int sub_int(Int a, Int b) noexcept { return _mm512_sub_epi32(a, b); }
  static Int and_int(Int a, Int b) noexcept { return _mm512_and_si512(a, b); }
  static Mask equal_int(Int a, Int b) noexcept { return _mm512_cmpeq_epi32_mask(a, b); }
  template <int bits>
  static Int shift_left(Int a) noexcept {
    return _mm512_maskz_slli_epi32(kAll, a, bits);
  }
  template <int bits>
  static Int shift_right(Int a) noexcept {
    return _mm512_maskz_srli_epi32(kAll, a, bits);
  }
  static Int as_int(Reg x) noexcept { return _mm512_castps_si512(x); }
  static Reg as_float(Int x) noexcept { return _mm512_castsi512_ps(x); }
  static Reg to_float(Int x) noexcept { return _mm512_maskz_cvtepi32_ps(kAll, x); }
  static Reg permute(Reg x, Int from) noexcept { return _mm512_maskz_permutexvar_ps(kAll, from, x); }
  static Int permute(Int x, Int from) noexcept { return _mm512_maskz_permutexvar_epi32(kAll, from, x); }
  static Reg permute(Reg a, Reg b, Int from) noexcept { return _mm512_permutex2var_ps(a, from, b); }

  static Int load_bytes(const std::uint8_t* p) noexcept {
    return _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Int load_bytes(Mask mask, const std::uint8_t* p) noexcept {
    return _mm512_maskz_cvtepu8_epi32(kAll, _mm_maskz_loadu_epi8(mask, p));
  }
  static void store_bytes(Mask mask, std::uint8_t* p, Int x) noexcept { _mm512_mask_cvtepi32_storeu_epi8(p, mask, x); }

  static float tree_sum(const Reg (&acc)[16 / kWidth]) noexcept {
    const __m256 eight =
        _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, acc[0], 0), _mm512_maskz_extractf32x8_ps(0xFF, acc[0], 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  static float tree_max(Reg x) noexcept {
    const __m256 eight = _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xFF, x, 0), _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace
}  // namespace vitro::simd
