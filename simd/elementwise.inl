// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels over the vector vocabulary: whole registers, then one masked register for the tail.
#pragma once

#include "exp_log.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// y[i] = f(x[i]) and y[i] = f(a[i], b[i]). An output may start where an input does: each element is read before it is written.
template <class F>
void map(Index n, const float* x, float* y, F f) noexcept {
  Index i = 0;
  for (; i + Vec::kWidth <= n; i += Vec::kWidth) Vec::store(y + i, f(Vec::load(x + i)));
  if (i < n) {
    const Vec::Mask mask = Vec::first(n - i);
    Vec::store(mask, y + i, f(Vec::load(mask, x + i)));
  }
}

template <class F>
void map(Index n, const float* a, const float* b, float* y, F f) noexcept {
  Index i = 0;
  for (; i + Vec::kWidth <= n; i += Vec::kWidth) Vec::store(y + i, f(Vec::load(a + i), Vec::load(b + i)));
  if (i < n) {
    const Vec::Mask mask = Vec::first(n - i);
    Vec::store(mask, y + i, f(Vec::load(mask, a + i), Vec::load(mask, b + i)));
  }
}

}  // namespace

void add(Index n, const float* a, const float* b, float* y) noexcept {
  map(n, a, b, y, [](Vec::Reg p, Vec::Reg q) { return Vec::add(p, q); });
}

void add_scalar(Index n, const float* a, float b, float* y) noexcept {
  map(n, a, y, [all_b = Vec::set1(b)](Vec::Reg p) { return Vec::add(p, all_b); });
}

void mul(Index n, const float* a, const float* b, float* y) noexcept {
  map(n, a, b, y, [](Vec::Reg p, Vec::Reg q) { return Vec::mul(p, q); });
}

void mul_scalar(Index n, const float* a, float b, float* y) noexcept {
  map(n, a, y, [all_b = Vec::set1(b)](Vec::Reg p) { return Vec::mul(p, all_b); });
}

void relu(Index n, const float* x, float* y) noexcept {
  map(n, x, y, [](Vec::Reg p) { return Vec::select(Vec::less(p, Vec::zero()), Vec::zero(), p); });
}

void relu_grad(Index n, const float* y, const float* dy, float* dx) noexcept {
  map(n, y, dy, dx, [](Vec::Reg p, Vec::Reg d) { return Vec::select(Vec::less_equal(p, Vec::zero()), Vec::zero(), d); });
}

void exp(Index n, const float* x, float* y) noexcept {
  map(n, x, y, [](Vec::Reg p) { return exp_lanes(p); });
}

void log(Index n, const float* x, float* y) noexcept {
  map(n, x, y, [](Vec::Reg p) { return log_lanes(p); });
}

void bytes_to_unit(Index n, const std::uint8_t* x, float* y) noexcept {
  // The quotient's bits without the division, which takes three times as long: a product with the rounded reciprocal, and one
  // step of correction. Its 256 values are tested against the division.
  const auto unit = [](Vec::Int bytes) {
    if constexpr (Vec::kWidth == 1) return Vec::div(Vec::to_float(bytes), Vec::set1(255.0f));  // fma may be emulated
    const Vec::Reg v = Vec::to_float(bytes), reciprocal = Vec::set1(1.0f / 255.0f);
    const Vec::Reg near = Vec::mul(v, reciprocal);
    return Vec::fma(Vec::fma(Vec::set1(-255.0f), near, v), reciprocal, near);
  };
  Index i = 0;
  for (; i + Vec::kWidth <= n; i += Vec::kWidth) Vec::store(y + i, unit(Vec::load_bytes(x + i)));
  if (i < n) {
    const Vec::Mask mask = Vec::first(n - i);
    Vec::store(mask, y + i, unit(Vec::load_bytes(mask, x + i)));
  }
}

void sgd_update(Index n, float rate, float momentum, float weight_decay, const float* g, float* v, float* p) noexcept {
  const Vec::Reg minus_rate = Vec::set1(-rate), all_momentum = Vec::set1(momentum), decay = Vec::set1(weight_decay);
  const auto velocity = [=](Vec::Reg old_g, Vec::Reg old_v, Vec::Reg old_p) {
    return Vec::fma(all_momentum, old_v, Vec::fma(decay, old_p, old_g));
  };
  Index i = 0;
  for (; i + Vec::kWidth <= n; i += Vec::kWidth) {
    const Vec::Reg old_p = Vec::load(p + i);
    const Vec::Reg new_v = velocity(Vec::load(g + i), Vec::load(v + i), old_p);
    Vec::store(v + i, new_v);
    Vec::store(p + i, Vec::fma(minus_rate, new_v, old_p));
  }
  if (i < n) {
    const Vec::Mask mask = Vec::first(n - i);
    const Vec::Reg old_p = Vec::load(mask, p + i);
    const Vec::Reg new_v = velocity(Vec::load(mask, g + i), Vec::load(mask, v + i), old_p);
    Vec::store(mask, v + i, new_v);
    Vec::store(mask, p + i, Vec::fma(minus_rate, new_v, old_p));
  }
}

}  // namespace vitro::simd::VITRO_VARIANT
