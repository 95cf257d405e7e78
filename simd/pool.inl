// SPDX-License-Identifier: Apache-2.0
// Pooling over one window: strips of channels in registers, the taps in the inner loop.
#pragma once

#include "reduce.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// Four registers of running values (and for max as many of positions) leave room for the operands on every ISA.
constexpr int kPoolRegisters = 4;

// The masks of a strip of R registers, only the last of which may be partial.
template <int R>
Vec::Mask strip_mask(Index channels, int r) noexcept {
  return r < R - 1 ? Vec::first(Vec::kWidth) : Vec::first(channels - (R - 1) * Vec::kWidth);
}

template <int R>
void max_pool_strip(Index taps, Index channels, Index offset, const float* const* x, const std::uint8_t* index, float* y,
                    std::uint8_t* argmax) noexcept {
  Vec::Reg best[R];
  Vec::Int at[R];
  for (int r = 0; r < R; ++r) {
    best[r] = Vec::load(strip_mask<R>(channels, r), x[0] + offset + r * Vec::kWidth);
    at[r] = Vec::set1_int(index[0]);
  }
  for (Index t = 1; t < taps; ++t) {
    const float* tap = x[t] + offset;
    const Vec::Int here = Vec::set1_int(index[t]);
    for (int r = 0; r < R; ++r) {
      const Vec::Reg v = Vec::load(strip_mask<R>(channels, r), tap + r * Vec::kWidth);
      // A larger value or a NaN takes over, but nothing takes over from a NaN.
      const Vec::Mask replace = Vec::mask_and(Vec::mask_not(Vec::less_equal(v, best[r])), Vec::equal(best[r], best[r]));
      best[r] = Vec::select(replace, v, best[r]);
      at[r] = Vec::select(replace, here, at[r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    Vec::store(strip_mask<R>(channels, r), y + offset + r * Vec::kWidth, best[r]);
    Vec::store_bytes(strip_mask<R>(channels, r), argmax + offset + r * Vec::kWidth, at[r]);
  }
}

template <int R>
void average_pool_strip(Index taps, Index channels, Index offset, const float* const* x, float divisor, float* y) noexcept {
  constexpr Index kChunk = 512;
  Vec::Reg total[R];
  for (Vec::Reg& s : total) s = Vec::zero();
  for (Index begin = 0; begin < taps; begin += kChunk) {
    const Index end = taps - begin < kChunk ? taps : begin + kChunk;
    Vec::Reg chain[R];
    for (Vec::Reg& s : chain) s = Vec::zero();
    for (Index t = begin; t < end; ++t) {
      const float* tap = x[t] + offset;
      for (int r = 0; r < R; ++r) {
        chain[r] = Vec::add(chain[r], Vec::load(strip_mask<R>(channels, r), tap + r * Vec::kWidth));
      }
    }
    for (int r = 0; r < R; ++r) total[r] = Vec::add(total[r], chain[r]);
  }
  for (int r = 0; r < R; ++r) {
    Vec::store(strip_mask<R>(channels, r), y + offset + r * Vec::kWidth, Vec::div(total[r], Vec::set1(divisor)));
  }
}

// Calls strip.operator()<R>(offset, width) for strips of at most kPoolRegisters registers that cover all channels.
template <class Strip>
void for_each_strip(Index channels, Strip strip) noexcept {
  constexpr Index kStrip = kPoolRegisters * Vec::kWidth;
  for (Index offset = 0; offset < channels; offset += kStrip) {
    const Index width = channels - offset < kStrip ? channels - offset : kStrip;
    with_registers<kPoolRegisters>(width, [&]<int R>() { strip.template operator()<R>(offset, width); });
  }
}

}  // namespace

void max_pool(Index taps, Index channels, const float* const* x, const std::uint8_t* index, float* y,
              std::uint8_t* argmax) noexcept {
  for_each_strip(channels,
                 [&]<int R>(Index offset, Index width) { max_pool_strip<R>(taps, width, offset, x, index, y, argmax); });
}

void average_pool(Index taps, Index channels, const float* const* x, float divisor, float* y) noexcept {
  for_each_strip(channels,
                 [&]<int R>(Index offset, Index width) { average_pool_strip<R>(taps, width, offset, x, divisor, y); });
}

}  // namespace vitro::simd::VITRO_VARIANT
