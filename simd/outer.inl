// SPDX-License-Identifier: Apache-2.0
// What reads the outer product of a column and a row without anybody storing it, over the vector vocabulary.
#pragma once

#include "outer.hpp"

#include "reduce.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// Calls whole(i, product) with the elements from first + i on, a register at a time, and part(i, mask, product) where n ends
// within one. Registers run on across the ends of rows, so that what stands beside the product is read and written as it is
// aligned: the update of LeNet-5's 41 thousand weights took 10.1 us row by row and takes 9.0 this way (AVX-512).
template <class Whole, class Part>
void each_outer(const OuterProduct& outer, Index first, Index n, Whole whole, Part part) noexcept {
  if (n <= 0) return;
  const float* column = outer.column + first / outer.columns;
  Index j = first % outer.columns;
  Vec::Reg factor = Vec::set1(*column);
  // + 0 makes the zeros what a chain of fma from +0 and an addition to +0 make them.
  const auto product = [&](Vec::Reg x) { return Vec::add(Vec::mul(x, Vec::load(outer.row + j)), Vec::zero()); };
  for (Index i = 0; i < n;) {
    const Index in_row = outer.columns - j < n - i ? outer.columns - j : n - i;
    for (const Index end = i + in_row - Vec::kWidth; i <= end; i += Vec::kWidth, j += Vec::kWidth) whole(i, product(factor));
    if (i == n) return;
    // The next register begins in this row, or behind it, and ends in another, or with the last element.
    const Index lanes = n - i < Vec::kWidth ? n - i : Vec::kWidth;
    Vec::Reg factors = factor;
    Index lane = outer.columns - j;
    for (; lane < lanes; lane += outer.columns) {
      factor = Vec::set1(*++column);
      factors = Vec::select(Vec::first(lane), factors, factor);
    }
    if (lanes == Vec::kWidth) {
      whole(i, product(factors));
    } else {
      part(i, Vec::first(lanes), product(factors));
    }
    i += lanes;
    j = lanes - (lane - outer.columns);
  }
}

}  // namespace

void sgd_update_outer(const OuterProduct& outer, Index first, Index n, float scale, float rate, float momentum,
                      float weight_decay, float* v, float* p) noexcept {
  const Vec::Reg minus_rate = Vec::set1(-rate), all_momentum = Vec::set1(momentum), decay = Vec::set1(weight_decay);
  const Vec::Reg all_scale = Vec::set1(scale);
  const auto velocity = [=](Vec::Reg g, Vec::Reg old_v, Vec::Reg old_p) {
    return Vec::fma(all_momentum, old_v, Vec::fma(decay, old_p, Vec::mul(g, all_scale)));
  };
  each_outer(
      outer, first, n,
      [&](Index i, Vec::Reg g) {
        const Vec::Reg old_p = Vec::load(p + i);
        const Vec::Reg new_v = velocity(g, Vec::load(v + i), old_p);
        Vec::store(v + i, new_v);
        Vec::store(p + i, Vec::fma(minus_rate, new_v, old_p));
      },
      [&](Index i, Vec::Mask mask, Vec::Reg g) {
        const Vec::Reg old_p = Vec::load(mask, p + i);
        const Vec::Reg new_v = velocity(g, Vec::load(mask, v + i), old_p);
        Vec::store(mask, v + i, new_v);
        Vec::store(mask, p + i, Vec::fma(minus_rate, new_v, old_p));
      });
}

float sum_squares_outer(const OuterProduct& outer, Index n) noexcept {
  // By pieces in the first-level cache: the chains of the lanes take longer than making them.
  constexpr Index kPiece = 256;
  alignas(64) float piece[kPiece];
  Vec::Reg lanes[16 / Vec::kWidth];
  for (Vec::Reg& lane : lanes) lane = Vec::zero();
  for (Index i = 0; i < n; i += kPiece) {
    const Index count = n - i < kPiece ? n - i : kPiece;
    each_outer(
        outer, i, count, [&](Index j, Vec::Reg x) { Vec::store(piece + j, x); },
        [&](Index j, Vec::Mask mask, Vec::Reg x) { Vec::store(mask, piece + j, x); });
    add_squares(lanes, count, piece);
  }
  return Vec::tree_sum(lanes);
}

}  // namespace vitro::simd::VITRO_VARIANT
