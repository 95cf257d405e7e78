// SPDX-License-Identifier: Apache-2.0
// One test over the vector vocabularies of all instruction sets, and the emulated fma against the C library's.
#include "../../simd/vec_scalar.hpp"
#include "kernel_variants.hpp"
#include "vec_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

using namespace vitro_test;

namespace {

// The vocabulary that the variant's kernels are compiled over; skips the test case as table_or_skip() does.
template <class Variant>
const VecOps& vocabulary_or_skip() {
  table_or_skip(Variant::kTable);
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Variant, Avx512>) return kAvx512Ops;
  if constexpr (std::is_same_v<Variant, Avx2>) return kAvx2Ops;
  if constexpr (std::is_same_v<Variant, Scalar>) return kScalarFmaOps;
#endif
  return kScalarOps;
}

std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float expected_lane(LaneOp op, float a, float b, float c, float a0) {
  switch (op) {
    case LaneOp::zero: return 0.0f;
    case LaneOp::set1:
    case LaneOp::set1_int: return a0;
    case LaneOp::add: return a + b;
    case LaneOp::sub: return a - b;
    case LaneOp::mul: return a * b;
    case LaneOp::div: return a / b;
    case LaneOp::fma: return std::fma(a, b, c);
    case LaneOp::less: return a < b ? 1.0f : 0.0f;
    case LaneOp::less_equal: return a <= b ? 1.0f : 0.0f;
    case LaneOp::not_less_equal: return a <= b ? 0.0f : 1.0f;
    case LaneOp::equal: return a == b ? 1.0f : 0.0f;
    case LaneOp::mask_and: return a < b && b < c ? 1.0f : 0.0f;
    case LaneOp::mask_or: return a < b || b < c ? 1.0f : 0.0f;
    case LaneOp::mask_not: return a < b ? 0.0f : 1.0f;
    case LaneOp::select_float:
    case LaneOp::select_int: return a < b ? c : a;
    case LaneOp::add_int: return float_of(bits_of(a) + bits_of(b));
    case LaneOp::sub_int: return float_of(bits_of(a) - bits_of(b));
    case LaneOp::and_int: return float_of(bits_of(a) & bits_of(b));
    case LaneOp::equal_int: return bits_of(a) == bits_of(b) ? 1.0f : 0.0f;
    case LaneOp::shift_left_5: return float_of(bits_of(a) << 5);
    case LaneOp::shift_right_5: return float_of(bits_of(a) >> 5);
    case LaneOp::to_float: return static_cast<float>(static_cast<std::int32_t>(bits_of(a)));
  }
  return 0.0f;
}

// Any bit pattern, an edge of arithmetic, a number of ordinary size or (for to_float) the bits of a small integer.
float draw_lane(Draw& draw) {
  switch (draw.below(4)) {
    case 0: return float_of(draw.bits());
    case 1: return draw.awkward_number();
    case 2: return float_of(static_cast<std::uint32_t>(draw.below(1 << 25) - (1 << 24)));
    default: return draw.number();
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Each lane operation of the vocabulary is the IEEE or integer operation that its name says", "",
                   VITRO_VARIANTS) {
  const VecOps& ops = vocabulary_or_skip<TestType>();
  Draw draw(7);
  float a[16], b[16], c[16], y[16];
  for (int round = 0; round < 20000; ++round) {
    for (int i = 0; i < ops.width; ++i) a[i] = draw_lane(draw), b[i] = draw_lane(draw), c[i] = draw_lane(draw);
    if (draw.chance(30)) b[0] = a[0];
    for (int op = 0; op < kLaneOps; ++op) {
      ops.lanes(static_cast<LaneOp>(op), a, b, c, y);
      for (int i = 0; i < ops.width; ++i) {
        const std::uint32_t want = canonical_bits(expected_lane(static_cast<LaneOp>(op), a[i], b[i], c[i], a[0]));
        if (canonical_bits(y[i]) == want) continue;
        CAPTURE(op, i, a[i], b[i], c[i], y[i]);
        REQUIRE(canonical_bits(y[i]) == want);
      }
    }
  }
}

TEMPLATE_TEST_CASE("Masked loads and stores of the vocabulary touch the first lanes and no other memory", "", VITRO_VARIANTS) {
  const VecOps& ops = vocabulary_or_skip<TestType>();
  for (int n = 0; n <= ops.width + 2; ++n) {
    const int lanes = n < ops.width ? n : ops.width;
    CAPTURE(n);
    const Guarded<float> in(lanes), out(lanes);
    const Guarded<std::uint8_t> bytes(lanes), bytes_out(lanes);
    for (int i = 0; i < lanes; ++i) in[i] = -static_cast<float>(i), bytes[i] = static_cast<std::uint8_t>(255 - 7 * i);

    float y[16], x[16];
    ops.load_first(n, in.data(), y);
    for (int i = 0; i < ops.width; ++i) REQUIRE(bits_of(y[i]) == (i < lanes ? bits_of(in[i]) : 0u));
    ops.load_bytes_first(n, bytes.data(), y);
    for (int i = 0; i < ops.width; ++i) REQUIRE(y[i] == (i < lanes ? static_cast<float>(bytes[i]) : 0.0f));
    if (lanes == ops.width) {
      ops.load_bytes(bytes.data(), y);
      for (int i = 0; i < ops.width; ++i) REQUIRE(y[i] == static_cast<float>(bytes[i]));
    }

    for (int i = 0; i < ops.width; ++i) x[i] = float_of(0x12345600u + static_cast<std::uint32_t>(16 * i + 3));
    ops.store_first(n, out.data(), x);
    ops.store_bytes_first(n, bytes_out.data(), x);
    for (int i = 0; i < lanes; ++i) {
      REQUIRE(bits_of(out[i]) == bits_of(x[i]));
      REQUIRE(bytes_out[i] == 16 * i + 3);
    }
    // In the middle of memory that may be touched, the rest must keep its value.
    float wide[20];
    std::uint8_t wide_bytes[20];
    for (int i = 0; i < 20; ++i) wide[i] = 5.0f, wide_bytes[i] = 99;
    ops.store_first(n, wide, x);
    ops.store_bytes_first(n, wide_bytes, x);
    for (int i = lanes; i < 20; ++i) {
      REQUIRE(wide[i] == 5.0f);
      REQUIRE(wide_bytes[i] == 99);
    }
  }
}

TEMPLATE_TEST_CASE("A register of the vocabulary is filled up from other memory, and permuted", "", VITRO_VARIANTS) {
  const VecOps& ops = vocabulary_or_skip<TestType>();
  Draw draw(12);
  for (int n = 0; n <= ops.width; ++n) {
    CAPTURE(n);
    const Guarded<float> first(n), rest(ops.width - n, true);
    for (int i = 0; i < ops.width; ++i) (i < n ? first[i] : rest[i - n]) = draw.awkward_number();
    float y[32];
    ops.fill_rest(n, first.data(), rest.data() - n, y);
    for (int i = 0; i < ops.width; ++i) REQUIRE(bits_of(y[i]) == bits_of(i < n ? first[i] : rest[i - n]));
  }
  for (int round = 0; round < 200; ++round) {
    float x[16], y[32];
    std::int32_t from[16];
    for (int i = 0; i < ops.width; ++i)
      x[i] = draw.awkward_number(), from[i] = static_cast<std::int32_t>(draw.below(ops.width));
    ops.permute(from, x, y);
    for (int i = 0; i < ops.width; ++i) {
      REQUIRE(bits_of(y[i]) == bits_of(x[from[i]]));
      REQUIRE(bits_of(y[ops.width + i]) == bits_of(x[from[from[i]]]));
    }
    float behind[16];
    for (int i = 0; i < ops.width; ++i) {
      behind[i] = draw.awkward_number(), from[i] = static_cast<std::int32_t>(draw.below(2 * ops.width));
    }
    ops.permute_two(from, x, behind, y);
    for (int i = 0; i < ops.width; ++i) {
      REQUIRE(bits_of(y[i]) == bits_of(from[i] < ops.width ? x[from[i]] : behind[from[i] - ops.width]));
    }
  }
}

TEMPLATE_TEST_CASE("Any, tree_sum and tree_max of the vocabulary look at every lane in the order of the contract", "",
                   VITRO_VARIANTS) {
  const VecOps& ops = vocabulary_or_skip<TestType>();
  Draw draw(11);
  const float low[16] = {};
  for (int i = 0; i < ops.width; ++i) {
    float one[16] = {};
    one[i] = 1.0f;
    REQUIRE(ops.any_less(low, one));
    REQUIRE(ops.tree_max(one) == 1.0f);
  }
  REQUIRE_FALSE(ops.any_less(low, low));
  for (int round = 0; round < 2000; ++round) {
    float x[16], lane[16];
    for (int i = 0; i < 16; ++i) x[i] = lane[i] = draw.awkward_number() * (draw.chance(50) ? 1.0f : 1e6f);
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
    }
    REQUIRE(canonical_bits(ops.tree_sum(x)) == canonical_bits(lane[0]));
    for (int i = 0; i < ops.width; ++i) x[i] = draw.number() - (i % 3 == 0 ? 5.0f : 0.0f);
    REQUIRE(ops.tree_max(x) == *std::max_element(x, x + ops.width));
  }
}

TEST_CASE("The emulated fma rounds once, as the C library's does") {
  const auto same = [](float a, float b, float c) {
    return canonical_bits(vitro::simd::Vec::emulated_fma(a, b, c)) == canonical_bits(std::fma(a, b, c));
  };

  SECTION("on every combination of edge values") {
    std::vector<float> edges;
    for (const std::uint32_t bits :
         {0x00000000u, 0x00000001u, 0x00000002u, 0x00000003u, 0x007FFFFFu, 0x00800000u, 0x00800001u, 0x00FFFFFFu,
          0x01000000u, 0x1F800000u, 0x1FFFFFFFu, 0x20000000u, 0x33800000u, 0x34000000u, 0x34000001u, 0x3F7FFFFFu,
          0x3F800000u, 0x3F800001u, 0x3FFFFFFFu, 0x40000000u, 0x4B800000u, 0x4B800001u, 0x5F7FFFFFu, 0x5F800000u,
          0x7F000000u, 0x7F7FFFFEu, 0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u, 0x3FC00000u, 0x35800000u, 0x39FFFFFFu}) {
      edges.push_back(float_of(bits));
      edges.push_back(float_of(bits | 0x80000000u));
    }
    for (const float a : edges) {
      for (const float b : edges) {
        for (const float c : edges) {
          if (same(a, b, c)) continue;
          CAPTURE(a, b, c);
          REQUIRE(same(a, b, c));
        }
      }
    }
  }

  SECTION("where rounding first to double would round twice") {
    // a * a is exactly half way between two floats; c decides the direction from below double's last bit.
    const float a = 1.0f + 0x1p-12f;  // a * a = 1 + 2^-11 + 2^-24
    for (const float c : {0x1p-60f, -0x1p-60f, 0x1p-100f, -0x1p-100f, 0x1p-149f, -0x1p-149f, 0.0f}) REQUIRE(same(a, a, c));
    REQUIRE(vitro::simd::Vec::emulated_fma(a, a, 0x1p-100f) == 1.0f + 0x1p-11f + 0x1p-23f);
    REQUIRE(vitro::simd::Vec::emulated_fma(a, a, -0x1p-100f) == 1.0f + 0x1p-11f);
    // Double's sum is odd and inexact, one unit beside a half way point: it must not be moved onto that point.
    const float b = 1.0f + 0x3p-12f;  // a * b = 1 + 2^-10 + 2^-23 + 2^-24
    REQUIRE(vitro::simd::Vec::emulated_fma(a, b, -0x1.ffffep-53f) == 1.0f + 0x1p-10f + 0x1p-23f);
    REQUIRE(vitro::simd::Vec::emulated_fma(a, a, 0x1.ffffep-53f) == 1.0f + 0x1p-11f + 0x1p-23f);
    // The same at a denormal result, and at the border to overflow.
    REQUIRE(vitro::simd::Vec::emulated_fma(0x1.8p-75f, 0x1p-74f, 0x1p-149f) == 0x1p-148f);
    REQUIRE(same(0x1.000002p-75f, 0x1p-75f, 0.0f));
    REQUIRE(same(0x1p-75f, 0x1p-75f, 0x1p-149f));
    REQUIRE(same(0x1p104f, 0x1p-1f, 0x1.fffffep127f));
    REQUIRE(same(0x1p104f, 0x1.fffffep-2f, 0x1.fffffep127f));
  }

  SECTION("on drawn operands whose product and addend overlap") {
    Draw draw(3);
    for (int i = 0; i < 3000000; ++i) {
      std::uint32_t a = draw.bits(), b = draw.bits(), c = draw.bits();
      if (i % 4 != 0) {  // exponents such that the addend falls within 30 bits of the product
        const std::uint32_t ea = static_cast<std::uint32_t>(40 + draw.below(150)),
                            eb = static_cast<std::uint32_t>(40 + draw.below(150));
        const int ec = static_cast<int>(ea + eb) - 127 + static_cast<int>(draw.below(60)) - 30;
        a = (a & 0x807FFFFFu) | ea << 23;
        b = (b & 0x807FFFFFu) | eb << 23;
        c = (c & 0x807FFFFFu) | static_cast<std::uint32_t>(ec < 0 ? 0 : ec > 254 ? 254 : ec) << 23;
      }
      if (i % 4 > 1) {  // short mantissas make exact halves frequent
        a &= 0xFFFFF000u;
        b &= 0xFFFFF000u;
        c &= draw.chance(50) ? 0xFFF00000u : 0xFFFFFFFFu;
      }
      if (same(float_of(a), float_of(b), float_of(c))) continue;
      CAPTURE(a, b, c);
      REQUIRE(same(float_of(a), float_of(b), float_of(c)));
    }
  }
}
