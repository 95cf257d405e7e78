// SPDX-License-Identifier: Apache-2.0
// Gradients of pooling over rectangles of windows.
//
// Windows that lie side by side, of pixels with few channels, are written as rows of dx: neighbouring pixels share a window, so
// a register of dx is a permutation of one register of dy. Other windows are written or added to tap by tap.
#pragma once

#include "pool.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// A register of dx and where it comes from: lane i from lane from[i] of the results, at tap column column[i] of their window.
template <bool whole>  // whether all lanes are used, on both sides
struct Tile {
  Vec::Int from, column;
  Vec::Mask results, lanes;

  Vec::Reg load(const float* dy) const noexcept { return whole ? Vec::load(dy) : Vec::load(results, dy); }
  void store(float* dx, Vec::Reg v) const noexcept { whole ? Vec::store(dx, v) : Vec::store(lanes, dx, v); }
  Vec::Reg permute(Vec::Reg x) const noexcept { return Vec::permute(x, from); }
  Vec::Int permute(Vec::Int x) const noexcept { return Vec::permute(x, from); }
};

// A row of dx that windows fill side by side, cut into registers: lane i belongs to the result start + from[i] and to the tap
// column column[i] of its window. Where windows begin in a register repeats after a group of registers.
class TiledRow {
 public:
  // Whether it can be made for these windows.
  static bool fits(const PoolWindows& w) noexcept {
    return w.channels != 0 && w.channels < Vec::kWidth && w.x_column_step == w.tap_columns * w.channels &&
           group_size(w) <= kMostRegisters;
  }

  explicit TiledRow(const PoolWindows& w) noexcept
      : floats_(w.columns * w.x_column_step), results_(w.columns * w.channels), registers_(group_size(w)) {
    group_results_ = registers_ * Vec::kWidth / w.tap_columns;
    Index window = 0, column = 0, channel = 0;
    for (Index r = 0; r < registers_; ++r) {
      Register& to = register_[r];
      // A window whose last tap column begins here needs only the rest of its channels. Either way no more results are needed
      // than there are lanes.
      to.start = window * w.channels + (column == w.tap_columns - 1 ? channel : 0);
      for (Index lane = 0; lane < Vec::kWidth; ++lane) {
        to.from[lane] = static_cast<std::int32_t>(window * w.channels + channel - to.start);
        to.column[lane] = static_cast<std::int32_t>(column);
        if (++channel == w.channels) channel = 0, ++column;
        if (column == w.tap_columns) column = 0, ++window;
      }
    }
  }

  // Calls body(tile, dx offset, result offset) for each register.
  template <class Body>
  void for_each(Body body) const noexcept {
    Index result = 0, r = 0;
    for (Index x = 0; x < floats_; x += Vec::kWidth) {
      const Register& at = register_[r];
      const Index y = result + at.start, left = floats_ - x;
      const auto call = [&]<bool whole>() {
        body(Tile<whole>{Vec::load_ints(at.from), Vec::load_ints(at.column), Vec::first(results_ - y), Vec::first(left)}, x, y);
      };
      if (left < Vec::kWidth || results_ - y < Vec::kWidth) {
        call.template operator()<false>();
      } else {
        call.template operator()<true>();
      }
      if (++r == registers_) r = 0, result += group_results_;
    }
  }

 private:
  static constexpr Index kMostRegisters = 16;  // enough for two tap columns of any number of channels

  struct Register {
    Index start;
    std::int32_t from[Vec::kWidth], column[Vec::kWidth];
  };

  // The fewest registers that hold whole windows: step / gcd(step, kWidth).
  static Index group_size(const PoolWindows& w) noexcept {
    const Index power = w.x_column_step & -w.x_column_step;
    return w.x_column_step / (power < Vec::kWidth ? power : Vec::kWidth);
  }

  Index floats_, results_, registers_, group_results_;
  Register register_[kMostRegisters];
};

inline void clear(Index n, float* x) noexcept {
  for (Index i = 0; i < n; ++i) x[i] = 0.0f;
}

// All taps = +0. Windows side by side are cleared as one row.
void clear_taps(const PoolWindows& w, float* dx) noexcept {
  const Index tap_row = w.tap_columns * w.channels;
  const bool side_by_side = w.x_column_step == tap_row;
  for (Index row = 0; row < w.rows; ++row) {
    for (Index i = 0; i < w.tap_rows; ++i) {
      float* const first = dx + row * w.x_row_step + w.tap[i * w.tap_columns].offset;
      if (side_by_side) {
        clear(w.columns * tap_row, first);
      } else {
        for (Index column = 0; column < w.columns; ++column) clear(tap_row, first + column * w.x_column_step);
      }
    }
  }
}

// dx at the chosen taps += dy, one element at a time.
void scatter(const PoolWindows& w, const std::uint8_t* argmax, const float* dy, float* dx) noexcept {
  Index offset[256];
  for (Index t = 0; t < w.taps(); ++t) offset[w.tap[t].index] = w.tap[t].offset;
  for (Index row = 0; row < w.rows; ++row) {
    for (Index column = 0; column < w.columns; ++column) {
      float* const window = dx + row * w.x_row_step + column * w.x_column_step;
      const Index at = row * w.y_row_step + column * w.channels;
      for (Index c = 0; c < w.channels; ++c) window[offset[argmax[at + c]] + c] += dy[at + c];
    }
  }
}

// Calls body(rows, tile, x, y) for each register of dx, which stands there and in rows - 1 rows below: what the permutation
// needs is loaded once for all of them. x and y are the offsets in dx and in the results.
template <class Body>
void for_each_tile(const PoolWindows& w, Body body) noexcept {
  constexpr Index kRows = 4;
  const TiledRow tiled(w);
  for (Index row = 0; row < w.rows; row += kRows) {
    const Index rows = w.rows - row < kRows ? w.rows - row : kRows;
    tiled.for_each(
        [&](const auto& tile, Index x, Index y) { body(rows, tile, row * w.x_row_step + x, row * w.y_row_step + y); });
  }
}

void max_pool_grad_tiled(const PoolWindows& w, const std::uint8_t* argmax, const float* dy, float* dx) noexcept {
  const Index results = (w.rows - 1) * w.y_row_step + w.columns * w.channels;
  for_each_tile(w, [&](Index rows, const auto& tile, Index x, Index y) {
    // Masked bytes are slow on AVX2; bytes beyond the row, but of the array, do no harm.
    const bool whole = y + (rows - 1) * w.y_row_step + Vec::kWidth <= results;
    for (Index i = 0; i < rows; ++i) {
      const Index from = y + i * w.y_row_step;
      const Vec::Reg d = tile.permute(Vec::add(Vec::zero(), tile.load(dy + from)));
      const Vec::Int bytes = whole ? Vec::load_bytes(argmax + from) : Vec::load_bytes(tile.results, argmax + from);
      const Vec::Int at = Vec::sub_int(tile.permute(bytes), tile.column);
      float* const to = dx + x + i * w.x_row_step;
      for (Index t = 0; t < w.tap_rows; ++t) {
        const PoolTap& tap = w.tap[t * w.tap_columns];
        tile.store(to + tap.offset, Vec::select(Vec::equal_int(at, Vec::set1_int(tap.index)), d, Vec::zero()));
      }
    }
  });
}

void average_pool_grad_tiled(const PoolWindows& w, Divisor divide, const float* dy, float* dx) noexcept {
  for_each_tile(w, [&](Index rows, const auto& tile, Index x, Index y) {
    for (Index i = 0; i < rows; ++i) {
      const Vec::Reg share = tile.permute(Vec::add(Vec::zero(), divide(tile.load(dy + y + i * w.y_row_step))));
      float* const to = dx + x + i * w.x_row_step;
      for (Index t = 0; t < w.tap_rows; ++t) tile.store(to + w.tap[t * w.tap_columns].offset, share);
    }
  });
}

// Calls each(pixel, dx offset, result offset) for all windows, in rising order where they overlap.
template <class Each>
void for_each_pixel(const PoolWindows& w, bool overlapping, Each each) noexcept {
  if (overlapping) return for_each_strip(w, each);
  for_each_result(w, each);
}

}  // namespace

void max_pool_grad(const PoolWindows& w, bool overlapping, const std::uint8_t* argmax, const float* dy, float* dx) noexcept {
  // To write every tap beats finding the chosen one where registers are full and taps few.
  if (Vec::kWidth == 1 || w.taps() > Vec::kWidth || (overlapping && w.channels < Vec::kWidth)) {
    if (!overlapping) clear_taps(w, dx);
    return scatter(w, argmax, dy, dx);
  }
  if (!overlapping && TiledRow::fits(w)) return max_pool_grad_tiled(w, argmax, dy, dx);
  for_each_pixel(w, overlapping, [&](const auto pixel, Index to, Index from) {
    constexpr int R = decltype(pixel)::kRegisters;
    Vec::Reg d[R];
    Vec::Int at[R];
    for (int r = 0; r < R; ++r) {
      d[r] = Vec::add(Vec::zero(), Vec::load(pixel.mask(r), dy + from + r * Vec::kWidth));
      at[r] = Vec::load_bytes(pixel.mask(r), argmax + from + r * Vec::kWidth);
    }
    for (Index t = 0; t < w.taps(); ++t) {
      float* const tap = dx + to + w.tap[t].offset;
      const Vec::Int here = Vec::set1_int(w.tap[t].index);
      for (int r = 0; r < R; ++r) {
        const Vec::Reg chosen = Vec::select(Vec::equal_int(at[r], here), d[r], Vec::zero());
        // A sum that began at +0 is never -0, so that adding +0 changes nothing.
        pixel.store(r, tap, overlapping ? Vec::add(pixel.load(r, tap), chosen) : chosen);
      }
    }
  });
}

void average_pool_grad(const PoolWindows& w, bool overlapping, float divisor, const float* dy, float* dx) noexcept {
  const Divisor divide(divisor);
  if (!overlapping && TiledRow::fits(w)) return average_pool_grad_tiled(w, divide, dy, dx);
  for_each_pixel(w, overlapping, [&](const auto pixel, Index to, Index from) {
    constexpr int R = decltype(pixel)::kRegisters;
    Vec::Reg share[R];
    for (int r = 0; r < R; ++r) {
      share[r] = Vec::add(Vec::zero(), divide(Vec::load(pixel.mask(r), dy + from + r * Vec::kWidth)));
    }
    for (Index t = 0; t < w.taps(); ++t) {
      float* const tap = dx + to + w.tap[t].offset;
      for (int r = 0; r < R; ++r) pixel.store(r, tap, overlapping ? Vec::add(pixel.load(r, tap), share[r]) : share[r]);
    }
  });
}

}  // namespace vitro::simd::VITRO_VARIANT
