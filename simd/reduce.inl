// SPDX-License-Identifier: Apache-2.0
// Reductions over the vector vocabulary, in the two orders of summation of the numerics contract.
#pragma once

namespace vitro::simd::VITRO_VARIANT {

namespace {

// How a step of reduce16 reads its elements: a whole register, or its first lanes.
struct WholeLoad {
  Vec::Reg operator()(const float* p) const noexcept { return Vec::load(p); }
};
struct MaskedLoad {
  Vec::Mask mask;
  Vec::Reg operator()(const float* p) const noexcept { return Vec::load(mask, p); }
};

// Along a contiguous axis: 16 lanes from +0, lane i taking elements i, i + 16, ..., then the halving tree. step(lane, load, i)
// takes elements i .. i + kWidth, read through load(pointer), into `lane`. reduce_into() goes on from what is in the lanes.
template <class Step>
void reduce_into(Vec::Reg (&lanes)[16 / Vec::kWidth], Index n, Step step) noexcept {
  constexpr int kRegs = 16 / Vec::kWidth;
  Index i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int r = 0; r < kRegs; ++r) lanes[r] = step(lanes[r], WholeLoad{}, i + r * Vec::kWidth);
  }
  for (int r = 0; r < kRegs && i < n; ++r, i += Vec::kWidth) {
    // A lane without an element keeps its value: a step may turn the masked +0 into something (log_softmax: exp(-m)).
    const Vec::Mask mask = Vec::first(n - i);
    lanes[r] = Vec::select(mask, step(lanes[r], MaskedLoad{mask}, i), lanes[r]);
  }
}

template <class Step>
float reduce16(Index n, Step step) noexcept {
  Vec::Reg lanes[16 / Vec::kWidth];
  for (Vec::Reg& lane : lanes) lane = Vec::zero();
  reduce_into(lanes, n, step);
  return Vec::tree_sum(lanes);
}

// The chains of a sum of squares, continued. Requires that those before ended after a multiple of 16 elements.
inline void add_squares(Vec::Reg (&lanes)[16 / Vec::kWidth], Index n, const float* x) noexcept {
  reduce_into(lanes, n, [x](Vec::Reg lane, auto load, Index i) {
    const Vec::Reg v = load(x + i);
    return Vec::fma(v, v, lane);
  });
}

// The first zero of x, with its sign. Requires that there is one.
inline float first_zero(const float* x) noexcept {
  while (*x != 0.0f) ++x;
  return *x;
}

template <int R>
void store_registers(const Vec::Reg (&sums)[R], Vec::Mask last, float* y) noexcept {
  for (int r = 0; r < R - 1; ++r) Vec::store(y + r * Vec::kWidth, sums[r]);
  Vec::store(last, y + (R - 1) * Vec::kWidth, sums[R - 1]);
}

// take(sums) with the rising chain from +0 of each chunk of 512 rows, of columns that fill R registers, the last of them
// perhaps in part. Chunks do not depend on each other, so P of them advance together: one narrow chain alone would wait for
// each addition.
template <int R, int P, class Take>
void for_each_chunk(Index rows, Vec::Mask last, const float* x, Index row_stride, Take take) noexcept {
  const auto add_chunks = [&]<int parallel>(Index first_row, Index count) {
    Vec::Reg acc[parallel][R];
    for (auto& chunk : acc) {
      for (Vec::Reg& a : chunk) a = Vec::zero();
    }
    const float* row = x + first_row * row_stride;
    for (Index i = 0; i < count; ++i, row += row_stride) {
      for (int p = 0; p < parallel; ++p) {
        const float* in = row + p * kSumChunk * row_stride;
        for (int r = 0; r < R - 1; ++r) acc[p][r] = Vec::add(acc[p][r], Vec::load(in + r * Vec::kWidth));
        acc[p][R - 1] = Vec::add(acc[p][R - 1], Vec::load(last, in + (R - 1) * Vec::kWidth));
      }
    }
    for (int p = 0; p < parallel; ++p) take(acc[p]);
  };

  Index i = 0;
  if constexpr (P > 1) {
    for (; i + P * kSumChunk <= rows; i += P * kSumChunk) add_chunks.template operator()<P>(i, kSumChunk);
  }
  if constexpr (P > 3) {
    for (; i + P / 2 * kSumChunk <= rows; i += P / 2 * kSumChunk) add_chunks.template operator()<P / 2>(i, kSumChunk);
  }
  if constexpr (P > 7) {
    for (; i + P / 4 * kSumChunk <= rows; i += P / 4 * kSumChunk) add_chunks.template operator()<P / 4>(i, kSumChunk);
  }
  for (; i < rows; i += kSumChunk) add_chunks.template operator()<1>(i, rows - i < kSumChunk ? rows - i : kSumChunk);
}

// Calls f.operator()<R>() with R = the number of registers that `columns` floats need. Requires 1 <= columns <= max * kWidth.
template <int max, class F>
void with_registers(Index columns, F f) noexcept {
  if constexpr (max > 1) {
    if (columns <= (max - 1) * Vec::kWidth) return with_registers<max - 1>(columns, f);
  }
  f.template operator()<max>();
}

}  // namespace

float sum(Index n, const float* x) noexcept {
  return reduce16(n, [x](Vec::Reg lane, auto load, Index i) { return Vec::add(lane, load(x + i)); });
}

float sum_squares(Index n, const float* x) noexcept {
  Vec::Reg lanes[16 / Vec::kWidth];
  for (Vec::Reg& lane : lanes) lane = Vec::zero();
  add_squares(lanes, n, x);
  return Vec::tree_sum(lanes);
}

float max(Index n, const float* x) noexcept {
  // The order of comparisons does not change the largest value, so four registers take turns to hide the latency.
  constexpr int kRegs = 4;
  const Vec::Reg lowest = Vec::set1(-__builtin_inff());
  Vec::Reg best[kRegs];
  Vec::Mask numbers = Vec::first(Vec::kWidth);
  for (Vec::Reg& b : best) b = lowest;
  const auto take = [&](Vec::Reg& b, Vec::Reg v) {
    b = Vec::select(Vec::less(b, v), v, b);
    numbers = Vec::mask_and(numbers, Vec::equal(v, v));
  };
  Index i = 0;
  for (; i + kRegs * Vec::kWidth <= n; i += kRegs * Vec::kWidth) {
    for (int r = 0; r < kRegs; ++r) take(best[r], Vec::load(x + i + r * Vec::kWidth));
  }
  for (; i < n; i += Vec::kWidth) {
    const Vec::Mask mask = Vec::first(n - i);
    take(best[0], Vec::select(mask, Vec::load(mask, x + i), lowest));
  }
  if (Vec::any(Vec::mask_not(numbers))) return __builtin_nanf("");
  for (int r = 1; r < kRegs; ++r) take(best[0], best[r]);
  const float largest = Vec::tree_max(best[0]);
  return largest == 0.0f ? first_zero(x) : largest;
}

void sum_rows(Index rows, Index columns, const float* x, Index row_stride, float* y) noexcept {
  constexpr Index kStrip = 8 * Vec::kWidth;
  for (Index j = 0; j < columns; j += kStrip) {
    const Index width = columns - j < kStrip ? columns - j : kStrip;
    with_registers<8>(width, [&]<int R>() {
      const Vec::Mask last = Vec::first(width - (R - 1) * Vec::kWidth);
      Vec::Reg total[R];
      for (Vec::Reg& t : total) t = Vec::zero();
      for_each_chunk<R, R <= 4 ? 8 / R : 1>(rows, last, x + j, row_stride, [&](const Vec::Reg(&sums)[R]) {
        for (int r = 0; r < R; ++r) total[r] = Vec::add(total[r], sums[r]);
      });
      store_registers(total, last, y + j);
    });
  }
}

void sum_row_chunks(Index rows, Index columns, const float* x, Index row_stride, float* sums) noexcept {
  constexpr int kRegisters = 16 / Vec::kWidth < 8 ? 16 / Vec::kWidth : 8;
  for (Index j = 0; j < columns; j += kRegisters * Vec::kWidth) {
    const Index width = columns - j < kRegisters * Vec::kWidth ? columns - j : kRegisters * Vec::kWidth;
    with_registers<kRegisters>(width, [&]<int R>() {
      const Vec::Mask last = Vec::first(width - (R - 1) * Vec::kWidth);
      float* to = sums + j;
      for_each_chunk<R, R <= 4 ? 8 / R : 1>(rows, last, x + j, row_stride, [&](const Vec::Reg(&chunk)[R]) {
        store_registers(chunk, last, to);
        to += columns;
      });
    });
  }
}

}  // namespace vitro::simd::VITRO_VARIANT
