// SPDX-License-Identifier: Apache-2.0
// Max and average pooling: drawn configurations against the definition, and the windows where libraries usually slip.
#include "../../ops/pool2d.hpp"

#include "../support/errors.hpp"
#include "support.hpp"

#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;
using ops::AverageDivisor;
using ops::Pool2dAttrs;
using ops::Pool2dProblem;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The output size by counting: windows that begin before the trailing padding ends their reach, as far as they fit.
Index counted_windows(Index input, Index before, Index after, Index kernel, Index stride, bool ceil_mode) {
  const Index padded = input + before + after;
  Index count = 0;
  for (Index start = 0; start < padded; start += stride) {
    const bool fits = start + kernel <= padded;
    const bool hangs_over = ceil_mode && start + kernel < padded + stride;
    if (!fits && !hangs_over) break;
    if (ceil_mode && count > 0 && start >= input + before) break;
    ++count;
  }
  return count;
}

// Calls tap(position, input element index) for each valid tap of a window, row by row.
template <class Tap>
void for_each_tap(const Pool2dProblem& p, Index n, Index oh, Index ow, Index c, const Tap& tap) {
  for (Index kh = 0; kh < p.attrs.kernel_h; ++kh) {
    for (Index kw = 0; kw < p.attrs.kernel_w; ++kw) {
      const Index ih = oh * p.attrs.stride_h - p.attrs.pad_top + kh, iw = ow * p.attrs.stride_w - p.attrs.pad_left + kw;
      if (ih < 0 || iw < 0 || ih >= p.h || iw >= p.w) continue;
      tap(kh * p.attrs.kernel_w + kw, ((n * p.h + ih) * p.w + iw) * p.c + c);
    }
  }
}

template <class Window>
void for_each_window(const Pool2dProblem& p, const Window& window) {
  Index element = 0;
  for (Index n = 0; n < p.n; ++n) {
    for (Index oh = 0; oh < p.oh; ++oh) {
      for (Index ow = 0; ow < p.ow; ++ow) {
        for (Index c = 0; c < p.c; ++c) window(element++, n, oh, ow, c);
      }
    }
  }
}

struct MaxPool {
  Tensor y, dx;
  std::vector<Index> argmax;
};

MaxPool expected_max_pool(const Pool2dProblem& p, const Tensor& x, const Tensor& dy) {
  MaxPool want{Tensor({p.n, p.oh, p.ow, p.c}), Tensor(x.shape()), {}};
  for_each_window(p, [&](Index element, Index n, Index oh, Index ow, Index c) {
    float best = 0.0f;
    Index position = -1, chosen = -1;
    for_each_tap(p, n, oh, ow, c, [&](Index tap, Index input) {
      const float value = x.data()[input];
      if (position >= 0 && (value <= best || best != best)) return;
      best = value;
      position = tap;
      chosen = input;
    });
    want.y.data()[element] = best;
    want.argmax.push_back(position);
    want.dx.data()[chosen] += dy.data()[element];
  });
  return want;
}

float divisor(const Pool2dProblem& p, Index oh, Index ow, Index valid) {
  const Pool2dAttrs& a = p.attrs;
  if (a.divisor == AverageDivisor::valid) return static_cast<float>(valid);
  if (a.divisor == AverageDivisor::window) return static_cast<float>(a.kernel_h * a.kernel_w);
  Index inside = 0;  // taps inside the padded input
  for (Index kh = 0; kh < a.kernel_h; ++kh) {
    for (Index kw = 0; kw < a.kernel_w; ++kw) {
      inside += oh * a.stride_h + kh < p.h + a.pad_top + a.pad_bottom && ow * a.stride_w + kw < p.w + a.pad_left + a.pad_right;
    }
  }
  return static_cast<float>(inside);
}

struct AveragePool {
  Tensor y, dx;
};

AveragePool expected_average_pool(const Pool2dProblem& p, const Tensor& x, const Tensor& dy) {
  AveragePool want{Tensor({p.n, p.oh, p.ow, p.c}), Tensor(x.shape())};
  for_each_window(p, [&](Index element, Index n, Index oh, Index ow, Index c) {
    std::vector<Index> taps;
    for_each_tap(p, n, oh, ow, c, [&](Index, Index input) { taps.push_back(input); });
    const Index count = static_cast<Index>(taps.size());
    const float by = divisor(p, oh, ow, count);
    want.y.data()[element] = sum_chunks(count, [&](Index i) { return x.data()[taps[static_cast<std::size_t>(i)]]; }) / by;
    for (const Index input : taps) want.dx.data()[input] += dy.data()[element] / by;
  });
  return want;
}

template <class Choice>
void check_max_pool(Context& context, const Pool2dProblem& p, const Tensor& x, const Tensor& dy, const MaxPool& want) {
  Tensor y(dy.shape()), alone(dy.shape()), dx(x.shape());
  for (float& value : dx.span()) value = kNan;
  BasicTensor<Choice> argmax(dy.shape());
  ops::max_pool2d(context, p.attrs, x, y, argmax);
  require_same_bits(y, want.y);
  ops::max_pool2d(context, p.attrs, x, alone);
  require_same_bits(alone, want.y);
  for (std::size_t i = 0; i < want.argmax.size(); ++i) REQUIRE(argmax.span()[i] == static_cast<Choice>(want.argmax[i]));
  ops::max_pool2d_grad(context, p.attrs, argmax, dy, dx);
  require_same_bits(dx, want.dx);
}

// A window in a shape that it may not fit.
Pool2dAttrs draw_attrs(Draw& draw, Index kernel) {
  const auto small = [&](Index low, Index high) { return static_cast<std::uint16_t>(draw.range(low, high)); };
  Pool2dAttrs attrs{
      .kernel_h = small(1, kernel), .kernel_w = small(1, kernel), .stride_h = small(1, 4), .stride_w = small(1, 4)};
  if (draw.one_in(2)) {
    attrs.pad_top = small(0, 2), attrs.pad_left = small(0, 2), attrs.pad_bottom = small(0, 3), attrs.pad_right = small(0, 3);
  }
  attrs.ceil_mode = draw.one_in(2);
  attrs.divisor = static_cast<AverageDivisor>(draw.range(0, 2));
  return attrs;
}

Shape draw_image(Draw& draw) {
  return {draw.one_in(10) ? 0 : draw.range(1, 3), draw.range(1, 10), draw.range(1, 10), draw.one_in(4) ? 35 : draw.range(0, 7)};
}

void check_max(const Pool2dAttrs& attrs, const Shape& shape, Draw& draw, bool awkward,
               const std::vector<std::unique_ptr<Context>>& contexts) {
  const Pool2dProblem p = ops::max_pool2d_problem(attrs, shape).value();
  Tensor x = draw.tensor(shape, awkward);
  const Tensor dy = draw.tensor({p.n, p.oh, p.ow, p.c}, awkward);
  for (float& value : x.span()) {
    if (draw.one_in(3)) value = std::trunc(value * 3.0f);  // ties, and zeros of both signs
  }
  const MaxPool want = expected_max_pool(p, x, dy);
  for (const auto& context : contexts) {
    INFO(name_of(*context) << ": " << to_string(shape));
    if (p.argmax_bytes() == 1) {
      check_max_pool<std::uint8_t>(*context, p, x, dy, want);
    } else {
      check_max_pool<std::int32_t>(*context, p, x, dy, want);
    }
  }
}

void check_average(const Pool2dAttrs& attrs, const Shape& shape, Draw& draw, bool awkward,
                   const std::vector<std::unique_ptr<Context>>& contexts) {
  const Pool2dProblem p = ops::average_pool2d_problem(attrs, shape).value();
  const Tensor x = draw.tensor(shape, awkward), dy = draw.tensor({p.n, p.oh, p.ow, p.c}, awkward);
  const AveragePool want = expected_average_pool(p, x, dy);
  for (const auto& context : contexts) {
    INFO(name_of(*context) << ": " << to_string(shape));
    Tensor y(dy.shape()), dx(shape);
    for (float& value : dx.span()) value = kNan;
    ops::average_pool2d(*context, attrs, x, y);
    require_same_bits(y, want.y);
    ops::average_pool2d_grad(*context, attrs, dy, dx);
    require_same_bits(dx, want.dx);
  }
}

}  // namespace

TEST_CASE("the number of pooling windows is what counting them gives") {
  Draw draw(20);
  int legal = 0;
  for (int i = 0; i < 3000; ++i) {
    const Pool2dAttrs a = draw_attrs(draw, 4);
    const Shape x{1, draw.range(0, 9), draw.range(0, 9), 1};
    Pool2dAttrs window = a;
    window.divisor = AverageDivisor::window;  // whose windows may be empty
    const Result<Shape> y = ops::average_pool2d_shape(window, x);
    const Index oh = counted_windows(x[1], a.pad_top, a.pad_bottom, a.kernel_h, a.stride_h, a.ceil_mode);
    const Index ow = counted_windows(x[2], a.pad_left, a.pad_right, a.kernel_w, a.stride_w, a.ceil_mode);
    const bool fits = a.kernel_h <= x[1] + a.pad_top + a.pad_bottom && a.kernel_w <= x[2] + a.pad_left + a.pad_right;
    CAPTURE(to_string(x), a.kernel_h, a.stride_h, a.pad_top, a.pad_bottom, a.ceil_mode);
    REQUIRE(y.ok() == fits);
    if (!fits) continue;
    ++legal;
    REQUIRE(y.value() == Shape{1, oh, ow, 1});
    // Max pooling takes exactly the shapes whose windows all have a tap.
    const Pool2dProblem p{1, x[1], x[2], 1, oh, ow, a};
    bool all_have_taps = true;
    for_each_window(p, [&](Index, Index n, Index row, Index column, Index c) {
      bool any = false;
      for_each_tap(p, n, row, column, c, [&](Index, Index) { any = true; });
      all_have_taps = all_have_taps && any;
    });
    REQUIRE(ops::max_pool2d_shape(a, x).ok() == all_have_taps);
  }
  CHECK(legal > 1000);
}

TEST_CASE("max pooling and its gradient have the contract's bits on every instruction set and number of threads") {
  const auto contexts = make_contexts();
  Draw draw(21);
  for (int i = 0; i < 80;) {
    const Pool2dAttrs attrs = draw_attrs(draw, 4);
    const Shape shape = draw_image(draw);
    if (!ops::max_pool2d_problem(attrs, shape)) continue;
    check_max(attrs, shape, draw, i % 3 == 0, contexts);
    ++i;
  }
  // The last window whose taps fit a byte, and windows beyond it.
  check_max({.kernel_h = 16, .kernel_w = 16}, {2, 17, 18, 3}, draw, true, contexts);
  check_max({.kernel_h = 1, .kernel_w = 257}, {2, 2, 300, 3}, draw, true, contexts);
  check_max({.kernel_h = 17, .kernel_w = 17, .pad_top = 5, .pad_right = 4}, {2, 17, 18, 3}, draw, false, contexts);
}

TEST_CASE("average pooling and its gradient have the contract's bits on every instruction set and number of threads") {
  const auto contexts = make_contexts();
  Draw draw(22);
  for (int i = 0; i < 80;) {
    const Pool2dAttrs attrs = draw_attrs(draw, 4);
    const Shape shape = draw_image(draw);
    if (!ops::average_pool2d_problem(attrs, shape)) continue;
    check_average(attrs, shape, draw, i % 3 == 0, contexts);
    ++i;
  }
  // Global pooling over more than one chunk of 512 taps.
  check_average({.kernel_h = 24, .kernel_w = 23}, {2, 24, 23, 5}, draw, false, contexts);
}

TEST_CASE("a NaN in a window gives NaN, and a window of minus infinity gives that and its gradient to the first element") {
  Tensor x({1, 2, 4, 1}), dy({1, 1, 2, 1}), y({1, 1, 2, 1}), dx({1, 2, 4, 1});
  for (float& value : x.span()) value = -kInfinity;
  x.data()[3] = 1.0f;
  x.data()[6] = kNan;
  dy.data()[0] = 5.0f;
  dy.data()[1] = 7.0f;
  const Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  for (const auto& context : make_contexts()) {
    BasicTensor<std::uint8_t> argmax(y.shape());
    ops::max_pool2d(*context, attrs, x, y, argmax);
    CHECK(y.data()[0] == -kInfinity);
    CHECK(std::isnan(y.data()[1]));
    CHECK(argmax.data()[0] == 0);
    CHECK(argmax.data()[1] == 2);
    ops::max_pool2d_grad(*context, attrs, argmax, dy, dx);
    CHECK(dx.data()[0] == 5.0f);
    CHECK(dx.data()[6] == 7.0f);
  }
}

TEST_CASE("average pooling divides by what was chosen") {
  Context context;
  Tensor x({1, 1, 3, 1}), y({1, 1, 2, 1});
  for (float& value : x.span()) value = 12.0f;
  // Windows of three at stride 3 over one padding and three pixels: {pad, 12, 12} and {12, beyond, beyond}.
  const auto second = [&](AverageDivisor divisor_choice) {
    ops::average_pool2d(context, {.kernel_w = 3, .stride_w = 3, .pad_left = 1, .ceil_mode = true, .divisor = divisor_choice}, x,
                        y);
    return y.data()[1];
  };
  CHECK(second(AverageDivisor::valid) == 12.0f);
  CHECK(y.data()[0] == 12.0f);
  CHECK(second(AverageDivisor::padded) == 12.0f);
  CHECK(y.data()[0] == 8.0f);
  CHECK(second(AverageDivisor::window) == 4.0f);
  CHECK(y.data()[0] == 8.0f);
}

TEST_CASE("a window altogether in the padding averages to zero where padding counts, and is an error elsewhere") {
  Context context;
  const Pool2dAttrs padded{.kernel_h = 2, .stride_h = 2, .pad_top = 2, .divisor = AverageDivisor::padded};
  Tensor x({1, 2, 1, 1}), y({1, 2, 1, 1});
  x.data()[0] = x.data()[1] = 6.0f;
  y.data()[0] = 1.0f;
  ops::average_pool2d(context, padded, x, y);
  CHECK(y.data()[0] == 0.0f);
  CHECK(y.data()[1] == 6.0f);
  Pool2dAttrs valid = padded;
  valid.divisor = AverageDivisor::valid;
  for (const Result<Shape>& shape : {ops::average_pool2d_shape(valid, x.shape()), ops::max_pool2d_shape(padded, x.shape())}) {
    REQUIRE_FALSE(shape.ok());
    CHECK_THAT(shape.error().message(), ContainsSubstring("[2, 0, 0, 0]") && ContainsSubstring("in the padding altogether"));
  }
}

TEST_CASE("pooling's wrong operands are errors that name them") {
  const auto message_of = [](const Pool2dAttrs& attrs, const Shape& x) {
    const Result<Shape> shape = ops::max_pool2d_shape(attrs, x);
    REQUIRE_FALSE(shape.ok());
    return shape.error().message();
  };
  CHECK_THAT(message_of({}, {2, 3}), ContainsSubstring("[2, 3]") && ContainsSubstring("[N, H, W, C]"));
  CHECK_THAT(message_of({.stride_h = 0}, {1, 2, 3, 4}), ContainsSubstring("at least 1"));
  CHECK_THAT(message_of({.kernel_h = 4}, {1, 2, 3, 4}), ContainsSubstring("[4, 1]") && ContainsSubstring("[2, 3]"));
  CHECK_THAT(message_of({.kernel_h = 65535, .kernel_w = 65535}, {1, 2, 3, 4}), ContainsSubstring("2^31"));

  Context context;
  Tensor x({1, 4, 4, 2}), y({1, 2, 2, 2}), long_x({1, 1, 300, 1}), long_y({1, 1, 1, 1});
  const Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  BasicTensor<std::int32_t> wide(y.shape());
  BasicTensor<std::uint8_t> narrow(long_y.shape());
  CHECK_THAT(message([&] { ops::max_pool2d(context, attrs, x, y, wide); }), ContainsSubstring("std::uint8_t"));
  CHECK_THAT(message([&] { ops::max_pool2d(context, {.kernel_w = 300}, long_x, long_y, narrow); }),
             ContainsSubstring("std::int32_t"));
  CHECK_THAT(message([&] {
               ops::max_pool2d(context, attrs, x, y, BasicTensor<std::uint8_t>({1, 2, 2, 3}));
             }),
             ContainsSubstring("argmax"));
  CHECK_THAT(message([&] {
               ops::max_pool2d(context, attrs, x.view().permute({0, 2, 1, 3}), y);
             }),
             ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] { ops::average_pool2d(context, attrs, x, TensorView(x.data(), y.shape())); }),
             ContainsSubstring("overlaps"));
  CHECK_THAT(message([&] { ops::average_pool2d_grad(context, attrs, Tensor({1, 2, 1, 2}), x); }), ContainsSubstring("dy"));
}
