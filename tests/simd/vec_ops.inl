// SPDX-License-Identifier: Apache-2.0
// Defines one VecOps over the vocabulary that was included before.

namespace vitro_test {
namespace {

using V = vitro::simd::Vec;

void lanes(LaneOp op, const float* pa, const float* pb, const float* pc, float* y) {
  const V::Reg a = V::load(pa), b = V::load(pb), c = V::load(pc);
  const V::Int ia = V::as_int(a), ib = V::as_int(b);
  const V::Mask ab = V::less(a, b), bc = V::less(b, c);
  const auto truth = [](V::Mask mask) { return V::select(mask, V::set1(1.0f), V::zero()); };
  V::Reg result = V::zero();
  switch (op) {
    case LaneOp::zero: result = V::zero(); break;
    case LaneOp::set1: result = V::set1(*pa); break;
    case LaneOp::add: result = V::add(a, b); break;
    case LaneOp::sub: result = V::sub(a, b); break;
    case LaneOp::mul: result = V::mul(a, b); break;
    case LaneOp::div: result = V::div(a, b); break;
    case LaneOp::fma: result = V::fma(a, b, c); break;
    case LaneOp::less: result = truth(V::less(a, b)); break;
    case LaneOp::less_equal: result = truth(V::less_equal(a, b)); break;
    case LaneOp::not_less_equal: result = truth(V::not_less_equal(a, b)); break;
    case LaneOp::equal: result = truth(V::equal(a, b)); break;
    case LaneOp::mask_and: result = truth(V::mask_and(ab, bc)); break;
    case LaneOp::mask_or: result = truth(V::mask_or(ab, bc)); break;
    case LaneOp::mask_not: result = truth(V::mask_not(ab)); break;
    case LaneOp::select_float: result = V::select(ab, c, a); break;
    case LaneOp::select_int: result = V::as_float(V::select(ab, V::as_int(c), ia)); break;
    case LaneOp::set1_int: result = V::as_float(V::set1_int(__builtin_bit_cast(std::int32_t, *pa))); break;
    case LaneOp::add_int: result = V::as_float(V::add_int(ia, ib)); break;
    case LaneOp::sub_int: result = V::as_float(V::sub_int(ia, ib)); break;
    case LaneOp::and_int: result = V::as_float(V::and_int(ia, ib)); break;
    case LaneOp::equal_int: result = truth(V::equal_int(ia, ib)); break;
    case LaneOp::shift_left_5: result = V::as_float(V::shift_left<5>(ia)); break;
    case LaneOp::shift_right_5: result = V::as_float(V::shift_right<5>(ia)); break;
    case LaneOp::to_float: result = V::to_float(ia); break;
  }
  V::store(y, result);
}

void load_first(std::ptrdiff_t n, const float* p, float* y) { V::store(y, V::load(V::first(n), p)); }
void store_first(std::ptrdiff_t n, float* p, const float* x) { V::store(V::first(n), p, V::load(x)); }
void fill_rest(std::ptrdiff_t n, const float* x, const float* p, float* y) {
  const V::Mask first = V::first(n);
  V::store(y, V::fill(V::load(first, x), V::mask_not(first), p));
}
void permute(const std::int32_t* from, const float* x, float* y) {
  const V::Int lanes_from = V::load_ints(from);
  const V::Reg once = V::permute(V::load(x), lanes_from);
  V::store(y, once);
  V::store(y + V::kWidth, V::as_float(V::permute(V::as_int(once), lanes_from)));
}
void permute_two(const std::int32_t* from, const float* a, const float* b, float* y) {
  V::store(y, V::permute(V::load(a), V::load(b), V::load_ints(from)));
}
void load_bytes(const std::uint8_t* p, float* y) { V::store(y, V::to_float(V::load_bytes(p))); }
void load_bytes_first(std::ptrdiff_t n, const std::uint8_t* p, float* y) {
  V::store(y, V::to_float(V::load_bytes(V::first(n), p)));
}
void store_bytes_first(std::ptrdiff_t n, std::uint8_t* p, const float* x) {
  V::store_bytes(V::first(n), p, V::as_int(V::load(x)));
}
bool any_less(const float* a, const float* b) { return V::any(V::less(V::load(a), V::load(b))); }
float tree_sum(const float* x) {
  V::Reg acc[16 / V::kWidth];
  for (int r = 0; r < 16 / V::kWidth; ++r) acc[r] = V::load(x + r * V::kWidth);
  return V::tree_sum(acc);
}
float tree_max(const float* x) { return V::tree_max(V::load(x)); }

}  // namespace

const VecOps VITRO_VEC_OPS = {V::kWidth, lanes,       load_first, store_first,      fill_rest,
                              permute,   permute_two, load_bytes, load_bytes_first, store_bytes_first,
                              any_less,  tree_sum,    tree_max};

}  // namespace vitro_test
