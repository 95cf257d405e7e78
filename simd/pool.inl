// SPDX-License-Identifier: Apache-2.0
// Pooling over rectangles of windows: results in registers, the taps in the inner loop.
//
// Where a pixel fills registers, these are strips of one window's channels. Where it has fewer channels than a register lanes,
// a register holds the results of several windows as they lie in y. Where the windows are near enough, two loads have all of
// its lanes, and a permutation brings them to their places; elsewhere it is loaded in runs, one masked load for each window
// that it touches: LeNet's 6 channels would take up to 4 such loads into 16 lanes.
#pragma once

#include "pool.hpp"

#include "reduce.inl"

namespace vitro::simd::VITRO_VARIANT {

namespace {

// Four registers of running values (and for max as many of positions) leave room for the operands on every ISA.
constexpr int kPoolRegisters = 4;

inline Vec::Mask all_lanes() noexcept { return Vec::first(Vec::kWidth); }

// R registers of one pixel, only the last of which may be partial.
template <int R>
struct Strip {
  static constexpr int kRegisters = R;
  Vec::Mask last;

  Vec::Mask mask(int r) const noexcept { return r < R - 1 ? all_lanes() : last; }
  Vec::Reg load(int r, const float* x) const noexcept { return Vec::load(mask(r), x + r * Vec::kWidth); }
  void store(int r, float* x, Vec::Reg v) const noexcept { Vec::store(mask(r), x + r * Vec::kWidth, v); }
};

// Lanes that belong to one window: lane i of the mask is x[start + i].
struct LaneRun {
  Vec::Mask mask;
  Index start;
};

// One register over several windows; N runs, or for N = 0 as many as `count` says.
template <int N>
struct Runs {
  static constexpr int kRegisters = 1;
  const LaneRun* run;
  int count;
  Vec::Mask last;

  int runs() const noexcept { return N > 0 ? N : count; }
  Vec::Mask mask(int) const noexcept { return last; }
  Vec::Reg load(int, const float* x) const noexcept {
    Vec::Reg all = Vec::load(run[0].mask, x + run[0].start);
    for (int i = 1; i < runs(); ++i) all = Vec::fill(all, run[i].mask, x + run[i].start);
    return all;
  }
  void store(int, float* x, Vec::Reg v) const noexcept {
    for (int i = 0; i < runs(); ++i) Vec::store(run[i].mask, x + run[i].start, v);
  }
};

// Calls body(pixel, x_offset, y_offset) for Strips that cover all channels of each window.
template <class Body>
void for_each_strip(const PoolWindows& w, Body body) noexcept {
  constexpr Index kStrip = kPoolRegisters * Vec::kWidth;
  for (Index row = 0; row < w.rows; ++row) {
    for (Index column = 0; column < w.columns; ++column) {
      const Index x = row * w.x_row_step + column * w.x_column_step, y = row * w.y_row_step + column * w.channels;
      for (Index c = 0; c < w.channels; c += kStrip) {
        const Index width = w.channels - c < kStrip ? w.channels - c : kStrip;
        with_registers<kPoolRegisters>(
            width, [&]<int R>() { body(Strip<R>{Vec::first(width - (R - 1) * Vec::kWidth)}, x + c, y + c); });
      }
    }
  }
}

// The results of a row of windows of 1 <= channels < kWidth channels, cut into registers. Where windows begin in a register
// repeats after a group of registers.
struct WindowRow {
  explicit WindowRow(const PoolWindows& w) noexcept
      : offset_step(w.channels & -w.channels),
        floats(w.columns * w.channels),
        registers(w.channels / offset_step),
        group_step(Vec::kWidth / offset_step * w.x_column_step) {}

  Index offset_step;  // channels' greatest common divisor with the width, a power of two
  Index floats, registers, group_step;
};

// Such a row in runs: those of one group serve the whole rectangle; the register that the end of the row cuts has its own.
class RowOfRuns {
 public:
  // 1 <= channels < kWidth.
  explicit RowOfRuns(const PoolWindows& w) noexcept : row_(w) {
    // At worst offset_step lanes of a window, then as many windows as begin in the rest.
    count_ = static_cast<int>(1 + (Vec::kWidth - row_.offset_step + w.channels - 1) / w.channels);
    Index window = 0, channel = 0;
    LaneRun* run = runs_;
    for (Index r = 0; r < row_.registers; ++r) {
      Index lane = 0;
      for (int i = 0; i < count_; ++i) {
        const Index room = Vec::kWidth - lane, left = w.channels - channel;
        const Index lanes = room < left ? room : left;
        *run++ = {Vec::mask_and(Vec::first(lane + lanes), Vec::mask_not(Vec::first(lane))),
                  window * w.x_column_step + channel - lane};
        lane += lanes;
        channel += lanes;
        if (channel == w.channels) channel = 0, ++window;
      }
    }
    const Index whole = row_.floats / Vec::kWidth;
    const Vec::Mask rest = Vec::first(row_.floats - whole * Vec::kWidth);
    for (int i = 0; i < count_; ++i) {
      const LaneRun& cut = runs_[whole % row_.registers * count_ + i];
      *run++ = {Vec::mask_and(cut.mask, rest), cut.start};
    }
  }

  int count() const noexcept { return count_; }

  // Calls body(pixel, x_offset, y_offset) for each register of the row. N = count(), or 0 for any.
  template <int N, class Body>
  void for_each(Index x, Index y, Body body) const noexcept {
    Index phase = 0, first = 0;
    for (; first + Vec::kWidth <= row_.floats; first += Vec::kWidth) {
      body(Runs<N>{runs_ + phase * count_, count_, all_lanes()}, x, y + first);
      if (++phase == row_.registers) phase = 0, x += row_.group_step;
    }
    if (first == row_.floats) return;
    body(Runs<N>{runs_ + row_.registers * count_, count_, Vec::first(row_.floats - first)}, x, y + first);
  }

 private:
  WindowRow row_;
  int count_;
  // (row_.registers + 1) * count_ at most: 14 * 3 for 13 channels in 16 lanes.
  LaneRun runs_[4 * Vec::kWidth];
};

// One register over several windows, lane i of which is element from[i] of two loads.
template <bool whole>  // whether all lanes are used
struct Spread {
  static constexpr int kRegisters = 1;
  Vec::Int from;
  Index second;  // where the second load begins, the first one at 0
  Vec::Mask loaded, lanes;

  Vec::Mask mask(int) const noexcept { return whole ? all_lanes() : lanes; }
  Vec::Reg load(int, const float* x) const noexcept {
    if constexpr (whole) return Vec::permute(Vec::load(x), Vec::load(x + second), from);
    return Vec::permute(Vec::load(loaded, x), Vec::load(loaded, x + second), from);
  }
};

// A row of windows as above, cut into registers of two loads each.
class RowOfSpreads {
 public:
  // 1 <= channels < kWidth.
  explicit RowOfSpreads(const PoolWindows& w) noexcept : row_(w) {
    Index x = 0, channel = 0;  // where the register begins in x, and in its pixel
    for (Index r = 0; r < row_.registers; ++r) {
      register_[r] = spread(w, x, channel, Vec::kWidth);
      x += Vec::kWidth;
      channel += Vec::kWidth;
      for (; channel >= w.channels; channel -= w.channels) x += w.x_column_step - w.channels;
    }
    const Index whole = row_.floats / Vec::kWidth;
    const Register& cut = register_[whole % row_.registers];
    rest_ = spread(w, cut.start, cut.channel, row_.floats - whole * Vec::kWidth);
  }

  // Whether two loads have all lanes of each register.
  bool fits() const noexcept { return fits_; }

  // Calls body(pixel, x_offset, y_offset) for each register of the row.
  template <class Body>
  void for_each(Index x, Index y, Body body) const noexcept {
    Index phase = 0, first = 0;
    for (; first + Vec::kWidth <= row_.floats; first += Vec::kWidth) {
      const Register& at = register_[phase];
      body(Spread<true>{at.from, at.second, all_lanes(), all_lanes()}, x + at.start, y + first);
      if (++phase == row_.registers) phase = 0, x += row_.group_step;
    }
    if (first == row_.floats) return;
    const Vec::Mask lanes = Vec::first(row_.floats - first);
    body(Spread<false>{rest_.from, rest_.second, Vec::first(rest_.reach), lanes}, x + rest_.start, y + first);
  }

 private:
  struct Register {
    Vec::Int from;
    Index start, second, reach;  // where the loads begin, and how far from the first one's beginning the lanes reach
    Index channel;               // of the first lane
  };

  // The register that begins at `channel` of the pixel at x - channel.
  Register spread(const PoolWindows& w, Index x, Index channel, Index lanes) noexcept {
    static constexpr std::int32_t kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const Index gap = w.x_column_step - w.channels;  // what each window is farther away than in y
    const Vec::Int more = Vec::set1_int(static_cast<std::int32_t>(gap));
    Vec::Int from = Vec::load_ints(kLanes);
    Index reach = lanes;
    for (Index begin = w.channels - channel; begin < lanes; begin += w.channels, reach += gap) {
      from = Vec::select(Vec::first(begin), from, Vec::add_int(from, more));
    }
    const Index second = reach > Vec::kWidth ? reach - Vec::kWidth : 0;
    const auto before = [&](Index end) { return Vec::less(Vec::to_float(from), Vec::set1(static_cast<float>(end))); };
    const Vec::Mask in_first = before(Vec::kWidth), used = Vec::first(lanes);
    const bool near = 0 <= gap && gap < 1 << 16;  // as far as floats count
    fits_ = fits_ && near && !Vec::any(Vec::mask_and(used, Vec::mask_and(Vec::mask_not(in_first), before(second))));
    const Vec::Int in_second = Vec::add_int(from, Vec::set1_int(static_cast<std::int32_t>(Vec::kWidth - second)));
    from = Vec::select(used, Vec::select(in_first, from, in_second), Vec::set1_int(0));
    return {from, x, second, reach, channel};
  }

  WindowRow row_;
  bool fits_ = true;
  Register rest_;
  Register register_[Vec::kWidth];
};

// Calls body(pixel, x_offset, y_offset) for Strips or Runs that cover all results.
template <class Body>
void for_each_result(const PoolWindows& w, Body body) noexcept {
  if constexpr (Vec::kWidth > 1) {
    if (w.channels == 0) return;
    if (w.channels < Vec::kWidth) {
      const RowOfRuns registers(w);
      const auto each_row = [&]<int N>() {
        for (Index row = 0; row < w.rows; ++row) registers.for_each<N>(row * w.x_row_step, row * w.y_row_step, body);
      };
      switch (registers.count()) {
        case 2: return each_row.template operator()<2>();
        case 3: return each_row.template operator()<3>();
        case 4: return each_row.template operator()<4>();
        default: return each_row.template operator()<0>();
      }
    }
  }
  for_each_strip(w, body);
}

// The same where results are only read from windows: Spreads, too.
template <class Body>
void for_each_read(const PoolWindows& w, Body body) noexcept {
  // With 8 lanes, of which runs have to load fewer at once, 1.1 to 1.3 times as long as those.
  if constexpr (Vec::kWidth == 16) {
    if (w.channels == 0) return;
    if (w.channels < Vec::kWidth) {
      const RowOfSpreads registers(w);
      if (registers.fits()) {
        for (Index row = 0; row < w.rows; ++row) registers.for_each(row * w.x_row_step, row * w.y_row_step, body);
        return;
      }
    }
  }
  for_each_result(w, body);
}

// Division by one number. By a power of two it is a product with the reciprocal, which is exact: the same bits in a quarter of
// the time.
struct Divisor {
  Vec::Reg divisor, reciprocal;
  bool exact;

  explicit Divisor(float d) noexcept
      : divisor(Vec::set1(d)), reciprocal(Vec::set1(1.0f / d)), exact((__builtin_bit_cast(std::uint32_t, d) & 0x7FFFFF) == 0) {}
  Vec::Reg operator()(Vec::Reg x) const noexcept { return exact ? Vec::mul(x, reciprocal) : Vec::div(x, divisor); }
};

template <bool choose>
void max_pool_windows(const PoolWindows& w, const float* x, float* y, std::uint8_t* argmax) noexcept {
  // Outside of `w`, which the compiler would read again after each store.
  const Index taps = w.taps();
  const PoolTap* const tap_of = w.tap;
  for_each_read(w, [=](const auto pixel, Index from, Index to) {
    constexpr int R = decltype(pixel)::kRegisters;
    Vec::Reg best[R];
    Vec::Int at[R];
    for (int r = 0; r < R; ++r) {
      best[r] = pixel.load(r, x + from + tap_of[0].offset);
      at[r] = Vec::set1_int(tap_of[0].index);
    }
    for (Index t = 1; t < taps; ++t) {
      const float* tap = x + from + tap_of[t].offset;
      const Vec::Int here = Vec::set1_int(tap_of[t].index);
      for (int r = 0; r < R; ++r) {
        // A larger value or a NaN takes over, but nothing takes over from a NaN.
        const Vec::Reg v = pixel.load(r, tap);
        const Vec::Mask replace = Vec::mask_and(Vec::not_less_equal(v, best[r]), Vec::equal(best[r], best[r]));
        best[r] = Vec::select(replace, v, best[r]);
        if constexpr (choose) at[r] = Vec::select(replace, here, at[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      Vec::store(pixel.mask(r), y + to + r * Vec::kWidth, best[r]);
      if constexpr (choose) Vec::store_bytes(pixel.mask(r), argmax + to + r * Vec::kWidth, at[r]);
    }
  });
}

}  // namespace

void max_pool(const PoolWindows& w, const float* x, float* y, std::uint8_t* argmax) noexcept {
  if (argmax != nullptr) return max_pool_windows<true>(w, x, y, argmax);
  max_pool_windows<false>(w, x, y, nullptr);
}

void average_pool(const PoolWindows& w, const float* x, float divisor, float* y) noexcept {
  const Divisor divide(divisor);
  for_each_read(w, [&](const auto pixel, Index from, Index to) {
    constexpr int R = decltype(pixel)::kRegisters;
    const Index taps = w.taps();
    Vec::Reg total[R];
    for (Vec::Reg& s : total) s = Vec::zero();
    for (Index begin = 0; begin < taps; begin += kSumChunk) {
      const Index end = taps - begin < kSumChunk ? taps : begin + kSumChunk;
      Vec::Reg chain[R];
      for (Vec::Reg& s : chain) s = Vec::zero();
      for (Index t = begin; t < end; ++t) {
        const float* tap = x + from + w.tap[t].offset;
        for (int r = 0; r < R; ++r) chain[r] = Vec::add(chain[r], pixel.load(r, tap));
      }
      for (int r = 0; r < R; ++r) total[r] = Vec::add(total[r], chain[r]);
    }
    for (int r = 0; r < R; ++r) Vec::store(pixel.mask(r), y + to + r * Vec::kWidth, divide(total[r]));
  });
}

}  // namespace vitro::simd::VITRO_VARIANT
