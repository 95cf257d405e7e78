// SPDX-License-Identifier: Apache-2.0
// The softmax family over dense rows: divisions, never reciprocals, and the row maximum subtracted first.
#pragma once

#include "elementwise.inl"
#include "exp_log.inl"
#include "reduce.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// What stands over a row's exponentials: m = max(row) and s = sum(exp(row - m)).
struct RowScale {
  float max;
  float sum;
};

// y = exp(x - m) / s for one row of any length. The exponentials rest in y between the two passes.
inline RowScale softmax_row(Index columns, const float* x, float* y) noexcept {
  const float row_max = max(columns, x);
  const Vec::Reg m = Vec::set1(row_max);
  map(columns, x, y, [m](Vec::Reg v) { return exp_lanes(Vec::sub(v, m)); });
  const float s = sum(columns, y);
  map(columns, y, y, [all_s = Vec::set1(s)](Vec::Reg e) { return Vec::div(e, all_s); });
  return {row_max, s};
}

// The same for rows that fit R registers and at most 16 columns: the exponentials stay in registers.
template <int R>
RowScale softmax_row_narrow(Index columns, const float* x, float* y) noexcept {
  constexpr int kRegs = 16 / Vec::kWidth;
  static_assert(R <= kRegs);
  const Vec::Mask last = Vec::first(columns - (R - 1) * Vec::kWidth);
  const auto mask = [last](int r) { return r < R - 1 ? Vec::first(Vec::kWidth) : last; };

  Vec::Reg e[R];
  Vec::Reg best = Vec::set1(-__builtin_inff());
  for (int r = 0; r < R; ++r) {
    e[r] = Vec::select(mask(r), Vec::load(mask(r), x + r * Vec::kWidth), Vec::set1(-__builtin_inff()));
    best = Vec::select(Vec::less(best, e[r]), e[r], best);
  }
  // The sign of a zero maximum, which max() settles, cannot show: exp(+-0) = 1, and log(s) >= +0 absorbs it. Nor can a NaN that
  // this maximum passes over: it is in the sum, and so in every quotient and the loss.
  const float row_max = Vec::tree_max(best);

  Vec::Reg lanes[kRegs];
  for (Vec::Reg& lane : lanes) lane = Vec::zero();
  for (int r = 0; r < R; ++r) {
    e[r] = exp_lanes(Vec::sub(e[r], Vec::set1(row_max)));
    lanes[r] = Vec::select(mask(r), Vec::add(lanes[r], e[r]), lanes[r]);
  }
  const float s = Vec::tree_sum(lanes);
  for (int r = 0; r < R; ++r) Vec::store(mask(r), y + r * Vec::kWidth, Vec::div(e[r], Vec::set1(s)));
  return {row_max, s};
}

// softmax, and the cross-entropy loss too unless `labels` is null.
void softmax_rows(Index rows, Index columns, const float* x, const std::int32_t* labels, float* loss, float* y) noexcept {
  if (columns == 0) return;
  // loss = log(s) - (x_label - m), a register of rows at a time.
  const auto each_row = [&](auto row) {
    for (Index first = 0; first < rows; first += Vec::kWidth) {
      const Index count = rows - first < Vec::kWidth ? rows - first : Vec::kWidth;
      float sum[Vec::kWidth] = {}, shifted[Vec::kWidth] = {};
      for (Index i = 0; i < count; ++i, x += columns, y += columns) {
        const float label_value = labels == nullptr ? 0.0f : x[labels[first + i]];
        const RowScale scale = row(columns, x, y);
        sum[i] = scale.sum;
        shifted[i] = label_value - scale.max;
      }
      if (labels == nullptr) continue;
      Vec::store(Vec::first(count), loss + first, Vec::sub(log_lanes(Vec::load(sum)), Vec::load(shifted)));
    }
  };
  if constexpr (Vec::kWidth > 1) {
    if (columns <= 16) {
      return with_registers<16 / Vec::kWidth>(columns, [&]<int R>() { each_row(softmax_row_narrow<R>); });
    }
  }
  each_row(softmax_row);
}

}  // namespace

void softmax(Index rows, Index columns, const float* x, float* y) noexcept {
  softmax_rows(rows, columns, x, nullptr, nullptr, y);
}

void log_softmax(Index rows, Index columns, const float* x, float* y) noexcept {
  for (Index i = 0; i < rows; ++i, x += columns, y += columns) {
    const Vec::Reg m = Vec::set1(max(columns, x));
    const float s = reduce16(
        columns, [x, m](Vec::Reg lane, auto load, Index j) { return Vec::add(lane, exp_lanes(Vec::sub(load(x + j), m))); });
    map(columns, x, y, [m, log_s = log_lanes(Vec::set1(s))](Vec::Reg v) { return Vec::sub(Vec::sub(v, m), log_s); });
  }
}

void cross_entropy(Index rows, Index columns, const float* x, const std::int32_t* labels, float* loss,
                   float* probabilities) noexcept {
  softmax_rows(rows, columns, x, labels, loss, probabilities);
}

void cross_entropy_grad(Index rows, Index columns, const float* probabilities, const std::int32_t* labels, float scale,
                        float* dx) noexcept {
  for (Index i = 0; i < rows; ++i, probabilities += columns, dx += columns) {
    const float label_probability = probabilities[labels[i]];  // read first: dx may be the same array
    mul_scalar(columns, probabilities, scale, dx);
    dx[labels[i]] = (label_probability - 1.0f) * scale;
  }
}

void softmax_grad(Index rows, Index columns, const float* y, const float* dy, float* dx) noexcept {
  for (Index i = 0; i < rows; ++i, y += columns, dy += columns, dx += columns) {
    const float dot =
        reduce16(columns, [y, dy](Vec::Reg lane, auto load, Index j) { return Vec::fma(load(y + j), load(dy + j), lane); });
    map(columns, y, dy, dx, [all = Vec::set1(dot)](Vec::Reg p, Vec::Reg d) { return Vec::mul(p, Vec::sub(d, all)); });
  }
}

void log_softmax_grad(Index rows, Index columns, const float* y, const float* dy, float* dx) noexcept {
  for (Index i = 0; i < rows; ++i, y += columns, dy += columns, dx += columns) {
    // The sign goes to the sum: a negated factor is the same product, whichever factor it is.
    const Vec::Reg minus_sum = Vec::set1(-sum(columns, dy));
    map(columns, y, dy, dx, [minus_sum](Vec::Reg p, Vec::Reg d) { return Vec::fma(exp_lanes(p), minus_sum, d); });
  }
}

}  // namespace vitro::simd::VITRO_VARIANT
