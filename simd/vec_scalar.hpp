// SPDX-License-Identifier: Apache-2.0
// Internal: the vector vocabulary for one float: what every ISA must offer to the kernel bodies (*.inl), with the contract of
// each operation.
//
// vec_avx2.hpp and vec_avx512.hpp hold the same list over wider registers; a translation unit includes exactly one of the
// three. Everything is in an anonymous namespace, and nothing with inline functions is included, so that code compiled with ISA
// flags cannot be taken by the linker for another file's.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __FAST_MATH__
#error "Vitro's numerics contract rules out -ffast-math."
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "Vitro's numerics contract needs float arithmetic in float (on 32-bit x86: -msse2 -mfpmath=sse)."
#endif

namespace vitro::simd {
namespace {

struct Vec {
  using Reg = float;          // kWidth floats
  using Mask = bool;          // kWidth truth values
  using Int = std::uint32_t;  // kWidth 32-bit integers; arithmetic wraps
  static constexpr int kWidth = 1;

  // --- Registers and memory. No alignment is required. ---
  static Reg zero() noexcept { return 0.0f; }
  static Reg set1(float x) noexcept { return x; }
  static Reg load(const float* p) noexcept { return *p; }
  static void store(float* p, Reg x) noexcept { *p = x; }
  // The first n lanes. Requires n >= 0; n >= kWidth means all.
  static Mask first(std::ptrdiff_t n) noexcept { return n > 0; }
  // Lanes outside the mask: loaded as +0, not stored; their memory is not touched.
  static Reg load(Mask mask, const float* p) noexcept { return mask ? *p : 0.0f; }
  static void store(Mask mask, float* p, Reg x) noexcept {
    if (mask) *p = x;
  }
  // x with the lanes of the mask loaded. Requires that they are +0 in x.
  static Reg fill(Reg x, Mask mask, const float* p) noexcept { return mask ? *p : x; }

  // --- Arithmetic: one IEEE operation a lane ---
  static Reg add(Reg a, Reg b) noexcept { return a + b; }
  static Reg sub(Reg a, Reg b) noexcept { return a - b; }
  static Reg mul(Reg a, Reg b) noexcept { return a * b; }
  static Reg div(Reg a, Reg b) noexcept { return a / b; }
  // a * b + c, rounded once.
  static Reg fma(Reg a, Reg b, Reg c) noexcept {
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return emulated_fma(a, b, c);
#endif
  }

  // --- Comparisons (false where an operand is NaN, -0 equals +0) and masks ---
  static Mask less(Reg a, Reg b) noexcept { return a < b; }
  static Mask less_equal(Reg a, Reg b) noexcept { return a <= b; }
  static Mask not_less_equal(Reg a, Reg b) noexcept { return !(a <= b); }  // true where an operand is NaN
  static Mask equal(Reg a, Reg b) noexcept { return a == b; }
  static Mask mask_and(Mask a, Mask b) noexcept { return a && b; }
  static Mask mask_or(Mask a, Mask b) noexcept { return a || b; }
  static Mask mask_not(Mask a) noexcept { return !a; }
  static bool any(Mask a) noexcept { return a; }
  // mask ? a : b, lane by lane, bits unchanged.
  static Reg select(Mask mask, Reg a, Reg b) noexcept { return mask ? a : b; }
  static Int select(Mask mask, Int a, Int b) noexcept { return mask ? a : b; }

  // --- Integer lanes ---
  static Int set1_int(std::int32_t x) noexcept { return static_cast<Int>(x); }
  static Int load_ints(const std::int32_t* p) noexcept { return static_cast<Int>(*p); }
  static Int add_int(Int a, Int b) noexcept { return a + b; }
  static Int sub_int(Int a, Int b) noexcept { return a - b; }
  static Int and_int(Int a, Int b) noexcept { return a & b; }
  static Mask equal_int(Int a, Int b) noexcept { return a == b; }
  template <int bits>
  static Int shift_left(Int a) noexcept {
    return a << bits;
  }
  template <int bits>
  static Int shift_right(Int a) noexcept {  // zeros move in
    return a >> bits;
  }
  static Int as_int(Reg x) noexcept { return __builtin_bit_cast(Int, x); }
  static Reg as_float(Int x) noexcept { return __builtin_bit_cast(Reg, x); }
  // The value of a signed integer. Requires |x| <= 2^24.
  static Reg to_float(Int x) noexcept { return static_cast<float>(static_cast<std::int32_t>(x)); }
  // Lane i is x's lane from[i]. Requires 0 <= from[i] < kWidth.
  static Reg permute(Reg x, Int) noexcept { return x; }
  static Int permute(Int x, Int) noexcept { return x; }
  // The same of a's lanes, and b's behind them. Requires 0 <= from[i] < 2 * kWidth.
  static Reg permute(Reg a, Reg b, Int from) noexcept { return from == 0 ? a : b; }
  // One byte a lane: zero-extended, and each lane's low byte.
  static Int load_bytes(const std::uint8_t* p) noexcept { return *p; }
  static Int load_bytes(Mask mask, const std::uint8_t* p) noexcept { return mask ? *p : 0u; }
  static void store_bytes(Mask mask, std::uint8_t* p, Int x) noexcept {
    if (mask) *p = static_cast<std::uint8_t>(x);
  }

  // The sum of 16 lanes, lane i in acc[i / kWidth]: i + (i + 8), then i + (i + 4), i + (i + 2), i + (i + 1).
  static float tree_sum(const Reg (&acc)[16 / kWidth]) noexcept {
    float lane[8];
    for (int i = 0; i < 8; ++i) lane[i] = acc[i] + acc[i + 8];
    for (int i = 0; i < 4; ++i) lane[i] = lane[i] + lane[i + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
  }

  // The largest lane. Requires that none is NaN; of zeros of both signs, either.
  static float tree_max(Reg x) noexcept { return x; }

  // fma from double arithmetic, for targets without the instruction: the same bits as the IEEE operation for all operands (NaNs
  // as NaNs). The product of two floats is exact in double. The sum with c is rounded to odd: where it is inexact and its last
  // bit is even, it takes the neighbour on the side of the rounding error. 53 bits rounded to odd then round to at most 24
  // (fewer for denormals) exactly as the infinitely precise sum would [Boldo & Melquiond 2008].
  static float emulated_fma(float a, float b, float c) noexcept {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    const double sum = product + addend;
    // Knuth's TwoSum: error = product + addend - sum, exactly; NaN where the sum is not finite.
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    std::uint64_t bits = __builtin_bit_cast(std::uint64_t, sum);
    // An exact zero has no error, so bits + 1 and bits - 1 are the neighbours away from and towards zero.
    const bool inexact = error > 0.0 || error < 0.0;
    const bool away = (error > 0.0) == (sum > 0.0);
    if (inexact && (bits & 1) == 0) bits = away ? bits + 1 : bits - 1;
    return static_cast<float>(__builtin_bit_cast(double, bits));
  }
};

}  // namespace
}  // namespace vitro::simd
