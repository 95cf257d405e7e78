// SPDX-License-Identifier: Apache-2.0
// The vector vocabulary as functions of arrays, so that one test can call the vocabulary of every instruction set.
//
// vec_ops_<isa>.cpp fills the struct from vec_ops.inl under that set's compiler flags; this header has no inline functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitro_test {

// Lane operations of up to three operands. Comparisons and masks yield 1 and 0; mask operations take less(a, b) and less(b, c).
enum class LaneOp {
  zero,            // 0
  set1,            // a[0] in every lane
  add,             // a + b
  sub,             // a - b
  mul,             // a * b
  div,             // a / b
  fma,             // a * b + c
  less,            // a < b
  less_equal,      // a <= b
  not_less_equal,  // not a <= b
  equal,           // a == b
  mask_and,        // a < b and b < c
  mask_or,         // a < b or b < c
  mask_not,        // not a < b
  select_float,    // a < b ? c : a
  select_int,      // the same, through integer lanes
  set1_int,        // the bits of a[0] in every lane
  add_int,         // bits of a + bits of b
  sub_int,         // bits of a - bits of b
  and_int,         // bits of a & bits of b
  equal_int,       // bits of a == bits of b
  shift_left_5,    // bits of a << 5
  shift_right_5,   // bits of a >> 5, zeros moving in
  to_float,        // bits of a as a signed integer, converted
};
constexpr int kLaneOps = static_cast<int>(LaneOp::to_float) + 1;

struct VecOps {
  int width;
  void (*lanes)(LaneOp op, const float* a, const float* b, const float* c, float* y);  // each of `width` floats
  void (*load_first)(std::ptrdiff_t n, const float* p, float* y);                      // y has `width` floats
  void (*store_first)(std::ptrdiff_t n, float* p, const float* x);                     // x has `width` floats
  void (*fill_rest)(std::ptrdiff_t n, const float* x, const float* p, float* y);       // n lanes of x, the others of p
  void (*permute)(const std::int32_t* from, const float* x, float* y);                 // through floats, then integers
  void (*permute_two)(const std::int32_t* from, const float* a, const float* b, float* y);
  void (*load_bytes)(const std::uint8_t* p, float* y);  // all lanes, converted to float
  void (*load_bytes_first)(std::ptrdiff_t n, const std::uint8_t* p, float* y);
  void (*store_bytes_first)(std::ptrdiff_t n, std::uint8_t* p, const float* x);  // the low bytes of the bits of x
  bool (*any_less)(const float* a, const float* b);
  float (*tree_sum)(const float* x);  // 16 floats
  float (*tree_max)(const float* x);  // `width` floats
};

extern const VecOps kScalarOps, kScalarFmaOps, kAvx2Ops, kAvx512Ops;

}  // namespace vitro_test
