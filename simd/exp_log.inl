// SPDX-License-Identifier: Apache-2.0
// exp and log over one register of the vector vocabulary: one polynomial each, every operation written out, no libm.
//
// The coefficients are minimax fits in relative error, made by tests/golden/fit_exp_log.py, which also states the intervals.
// The accuracies below were measured over every float (tests/simd/exp_log_test.cpp with VITRO_EXHAUSTIVE; a sample without).
#pragma once

namespace vitro::simd {
namespace {

// exp(x). Largest error: 0.69 ulp; 0.78 of the last place where the result is denormal (underflow is gradual). exp(+-0) = 1;
// above 88.7228 +inf; below -103.9721 +0; NaN gives NaN.
//
// x = n log 2 + r with n integral, so exp(x) = 2^n (1 + r + r^2 q(r)); |r| <= 0.34668, fit 2^-28.0 relative.
inline Vec::Reg exp_lanes(Vec::Reg x) noexcept {
  using V = Vec;
  // Beyond these bounds the result has overflowed or is under half the smallest denormal; a NaN fails both comparisons. The
  // latter is computed at 0 and then replaced: an operation that underflows costs a hundred cycles, and -inf is a usual mask.
  const V::Mask vanishes = V::less(x, V::set1(-104.0f));
  x = V::select(V::less(V::set1(89.0f), x), V::set1(89.0f), x);
  x = V::select(vanishes, V::zero(), x);

  // Adding 1.5 * 2^23 rounds to an integer, which then also stands in the low bits of the sum.
  const V::Reg magic = V::set1(0x1.8p23f);
  const V::Reg shifted = V::fma(x, V::set1(0x1.715476p0f), magic);  // 1 / log 2
  const V::Reg n = V::sub(shifted, magic);
  // log 2 in two parts. The first product and sum are exact: multiples of 2^-24 under 1, or n = 0.
  const V::Reg upper = V::fma(n, V::set1(-0x1.62e430p-1f), x);
  const V::Reg lower = V::set1(0x1.05c610p-29f);
  const V::Reg r = V::fma(n, lower, upper);

  V::Reg q = V::set1(0x1.6a2400p-10f);
  q = V::fma(q, r, V::set1(0x1.123a02p-7f));
  q = V::fma(q, r, V::set1(0x1.5558f2p-5f));
  q = V::fma(q, r, V::set1(0x1.555492p-3f));
  q = V::fma(q, r, V::set1(0x1.fffffcp-2f));

  // 1 + r with its rounding error recovered (Fast2Sum): without it the largest error is 1.01 ulp.
  const V::Reg one = V::set1(1.0f);
  const V::Reg sum = V::add(one, upper);
  const V::Reg error = V::sub(upper, V::sub(sum, one));
  const V::Reg p = V::add(sum, V::fma(V::mul(r, r), q, V::fma(n, lower, error)));

  // 2^n as two factors, each a normal number: the first product is exact, the second rounds a denormal once. The sum of their
  // biased exponents, n + 254, is positive, so that shifting in zeros halves it.
  const V::Int exponents = V::add_int(V::sub_int(V::as_int(shifted), V::as_int(magic)), V::set1_int(254));
  const V::Int half = V::shift_right<1>(exponents);
  const V::Reg scaled = V::mul(p, V::as_float(V::shift_left<23>(half)));
  const V::Reg result = V::mul(scaled, V::as_float(V::shift_left<23>(V::sub_int(exponents, half))));
  return V::select(vanishes, V::zero(), result);
}

// log(x). Largest error: 0.94 ulp (0.1 % of results are not the nearest float), denormal arguments included. log(1) = +0;
// log(+-0) = -inf; log(+inf) = +inf; NaN for NaN and for x < 0.
//
// x = 2^e m with 2/3 <= m < 4/3 and f = m - 1 (exact), so log(x) = e log 2 + f + f^2 (-1/2 + f p(f)); fit 2^-27.4 relative. The
// interval is centred on 1 so that no sum cancels where e is not 0.
inline Vec::Reg log_lanes(Vec::Reg x) noexcept {
  using V = Vec;
  const V::Mask denormal = V::less(x, V::set1(0x1p-126f));
  const V::Reg normal = V::select(denormal, V::mul(x, V::set1(0x1p23f)), x);

  const std::int32_t two_thirds = 0x3f2aaaab;  // the bits of 2/3
  const V::Int bits = V::add_int(V::as_int(normal), V::set1_int(0x3f800000 - two_thirds));
  const V::Reg bias = V::select(denormal, V::set1(127.0f + 23.0f), V::set1(127.0f));
  const V::Reg e = V::sub(V::to_float(V::shift_right<23>(bits)), bias);
  const V::Reg m = V::as_float(V::add_int(V::and_int(bits, V::set1_int(0x7fffff)), V::set1_int(two_thirds)));
  const V::Reg f = V::sub(m, V::set1(1.0f));

  V::Reg p = V::set1(-0x1.08059ap-3f);
  p = V::fma(p, f, V::set1(0x1.1e66b8p-3f));
  p = V::fma(p, f, V::set1(-0x1.f31138p-4f));
  p = V::fma(p, f, V::set1(0x1.1ed718p-3f));
  p = V::fma(p, f, V::set1(-0x1.559dccp-3f));
  p = V::fma(p, f, V::set1(0x1.99d028p-3f));
  p = V::fma(p, f, V::set1(-0x1.fffef0p-3f));
  p = V::fma(p, f, V::set1(0x1.555506p-2f));
  p = V::fma(p, f, V::set1(-0.5f));
  const V::Reg tail = V::mul(V::mul(f, f), p);

  // e * high is exact (8 and 15 bits). The rounding error of its sum with f is recovered (Fast2Sum: |e * high| > |f| or e = 0).
  const V::Reg high = V::mul(e, V::set1(0x1.62e4p-1f));
  const V::Reg sum = V::add(high, f);
  const V::Reg error = V::add(V::sub(high, sum), f);
  V::Reg result = V::add(sum, V::add(error, V::fma(e, V::set1(0x1.7f7d1cp-20f), tail)));

  const V::Reg infinity = V::set1(__builtin_inff());
  result = V::select(V::equal(x, infinity), infinity, result);
  result = V::select(V::equal(x, V::zero()), V::set1(-__builtin_inff()), result);
  return V::select(V::less_equal(V::zero(), x), result, V::set1(__builtin_nanf("")));
}

}  // namespace
}  // namespace vitro::simd
