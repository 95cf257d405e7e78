// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients: drawn configurations against the definition, in the contract's order and in double.
#include "../../ops/conv2d.hpp"

#include "../../ops/conv2d_batch_lanes.hpp"
#include "../../ops/conv2d_grad_weight_lanes.hpp"
#include "../../ops/conv2d_pixel_lanes.hpp"
#include "../support/errors.hpp"
#include "reference_conv2d.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Runs forward and both gradients on every context and compares bits with the definition.
void check_problem(const Conv2dProblem& p, Draw& draw, bool awkward, const std::vector<std::unique_ptr<Context>>& contexts) {
  const Tensor x = draw.tensor(x_shape(p), awkward), w = draw.tensor(w_shape(p), awkward),
               dy = draw.tensor(y_shape(p), awkward);
  const Tensor bias = draw.tensor({p.oc}, awkward), residual = draw.tensor(y_shape(p), awkward);
  const bool has_bias = draw.one_in(2), has_residual = draw.one_in(3), relu = draw.one_in(2);
  const Tensor want_y = expected_conv2d(p, x, w, has_bias ? &bias : nullptr, has_residual ? &residual : nullptr, relu);
  const Tensor want_dx = expected_conv2d_grad_input(p, dy, w);
  const Tensor want_dw = expected_conv2d_grad_weight(p, x, dy);
  ops::EpilogueViews epilogue{.relu = relu};
  if (has_bias) epilogue.bias = bias;
  if (has_residual) epilogue.residual = residual;
  for (const std::unique_ptr<Context>& context : contexts) {
    INFO(name_of(*context) << ": " << describe(p));
    Tensor y(y_shape(p)), dx(x_shape(p)), dw(w_shape(p));
    for (Tensor* output : {&y, &dx, &dw}) {
      for (float& value : output->span()) value = kNan;  // whatever is not written shows
    }
    ops::conv2d(*context, p.attrs, x, w, y, epilogue);
    require_same_bits(y, want_y);
    ops::conv2d_grad_input(*context, p.attrs, dy, w, dx);
    require_same_bits(dx, want_dx);
    ops::conv2d_grad_weight(*context, p.attrs, x, dy, dw);
    require_same_bits(dw, want_dw);
  }
}

Conv2dProblem problem_of(const Conv2dAttrs& attrs, const Shape& x, const Shape& w) {
  return ops::conv2d_problem(attrs, x, w).value();
}

std::string shape_error_of(const Conv2dAttrs& attrs, const Shape& x, const Shape& w) {
  const Result<Shape> shape = ops::conv2d_shape(attrs, x, w);
  REQUIRE_FALSE(shape.ok());
  return shape.error().message();
}

}  // namespace

TEST_CASE("a convolution and its gradients have the contract's bits on every instruction set and number of threads") {
  const auto contexts = make_contexts();
  Draw draw(1);
  for (int i = 0; i < 120; ++i) check_problem(draw_conv2d(draw), draw, i % 3 == 0, contexts);
}

TEST_CASE("convolutions of several row batches, bands and chunks have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(2);
  const Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  // More pixels than a batch holds; a band of padded rows that is shorter than the image; whole kernel rows and single taps.
  check_problem(problem_of(same, {1, 30, 31, 3}, {3, 3, 3, 4}), draw, false, contexts);
  check_problem(problem_of(same, {1, 24, 30, 32}, {3, 3, 32, 2}), draw, false, contexts);
  check_problem(problem_of(same, {1, 12, 12, 33}, {3, 3, 33, 5}), draw, false, contexts);
  check_problem(problem_of({}, {5, 9, 9, 2}, {5, 5, 2, 3}), draw, false, contexts);
  // Chunks of the filters' gradient: 20 images of 5x5, 512 images of 1x1, and images of more than 512 pixels.
  for (const Index n : {19, 20, 21, 41}) check_problem(problem_of({}, {n, 6, 6, 1}, {2, 2, 1, 3}), draw, false, contexts);
  for (const Index n : {511, 512, 513}) check_problem(problem_of({}, {n, 1, 2, 2}, {1, 2, 2, 2}), draw, false, contexts);
  check_problem(problem_of({}, {3, 24, 25, 1}, {2, 2, 1, 2}), draw, false, contexts);
  // A chain beyond two blocks of k.
  check_problem(problem_of(same, {1, 3, 3, 130}, {3, 3, 130, 3}), draw, false, contexts);
}

TEST_CASE("few channels of many images, which are computed in other roles, have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(6);
  for (const Index n : {16, 37, 64, 70}) {
    check_problem(problem_of({}, {n, 9, 8, 1}, {5, 5, 1, 6}), draw, false, contexts);
    check_problem(problem_of({}, {n, 7, 7, 3}, {3, 2, 3, 2}), draw, true, contexts);
    check_problem(problem_of({.pad_top = 1, .pad_left = 2, .pad_right = 1}, {n, 5, 6, 2}, {3, 3, 2, 5}), draw, n == 37,
                  contexts);
    check_problem(problem_of({.stride_h = 2, .stride_w = 3, .dilation_h = 2, .dilation_w = 2, .pad_bottom = 3}, {n, 9, 10, 2},
                             {3, 3, 2, 4}),
                  draw, false, contexts);
    // Several taps of a row reach a pixel, but not from outputs and taps that both follow each other; and where they do.
    check_problem(problem_of({.stride_w = 2, .pad_left = 1}, {n, 6, 11, 2}, {2, 5, 2, 4}), draw, false, contexts);
    check_problem(problem_of({.dilation_w = 2}, {n, 4, 9, 2}, {2, 3, 2, 4}), draw, false, contexts);
    check_problem(problem_of({.stride_w = 2, .dilation_w = 2}, {n, 4, 11, 2}, {2, 3, 2, 4}), draw, false, contexts);
    check_problem(problem_of({}, {n, 6, 6, 6}, {5, 5, 6, 16}), draw, false, contexts);
  }
  // Chunks of one image; and several passes of chunks.
  check_problem(problem_of({}, {18, 24, 23, 1}, {3, 3, 1, 2}), draw, false, contexts);
  check_problem(problem_of({.pad_top = 2}, {3, 24, 23, 2}, {2, 3, 2, 3}), draw, false, contexts);
}

TEST_CASE("images with few channels, whose pixels stand in the lanes, have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(9);
  const auto forward = [&](const Conv2dProblem& p, bool awkward) {
    const Context& best = *contexts.back();
    INFO(describe(p));
    CHECK(ops::forward_in_pixel_lanes(best, p));
    check_problem(p, draw, awkward, contexts);
  };
  const auto gradient = [&](const Conv2dProblem& p, bool awkward) {
    const Context& best = *contexts.back();
    INFO(describe(p));
    CHECK(ops::grad_input_in_pixel_lanes(best, p));
    check_problem(p, draw, awkward, contexts);
  };
  const Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  // LeNet-5's; one output row; outputs that end within a vector and with it; several images.
  for (const Index n : {1, 3}) forward(problem_of({}, {n, 28, 28, 1}, {5, 5, 1, 6}), n == 3);
  for (const Index n : {1, 2}) gradient(problem_of({}, {n, 12, 12, 6}, {5, 5, 6, 16}), n == 2);
  gradient(problem_of({}, {1, 28, 28, 1}, {5, 5, 1, 6}), false);
  // Strides, whose phases have planes of their own; rows of dy too long for a band, multiplied a few at a time and one by one.
  gradient(problem_of({.stride_h = 2, .stride_w = 3, .pad_top = 2, .pad_left = 1, .pad_bottom = 3, .pad_right = 2},
                      {2, 15, 40, 3}, {5, 5, 3, 8}),
           true);
  gradient(problem_of({.stride_h = 3, .stride_w = 2, .dilation_h = 2, .dilation_w = 3}, {1, 17, 50, 3}, {3, 3, 3, 8}), false);
  gradient(problem_of({.pad_top = 1}, {1, 9, 90, 3}, {5, 3, 3, 40}), false);
  gradient(problem_of({.stride_h = 2, .stride_w = 2, .pad_top = 3, .pad_left = 3, .pad_bottom = 3, .pad_right = 3},
                      {1, 9, 224, 3}, {7, 7, 3, 64}),
           false);
  for (Index width = 16; width <= 34; width += 3) {
    forward(problem_of({}, {1, 6, width, 3}, {3, 2, 3, 5}), width == 19);
    gradient(problem_of(same, {1, 7, width, 3}, {3, 3, 3, 8}), width == 25);
  }
  forward(problem_of({}, {2, 3, 40, 2}, {3, 3, 2, 7}), true);
  // Bands of rows, the last one shorter; padding that is a whole row of windows; every second row; taps that lie apart.
  forward(problem_of(same, {1, 50, 65, 3}, {3, 3, 3, 4}), true);
  gradient(problem_of(same, {1, 50, 65, 3}, {3, 3, 3, 8}), true);
  gradient(problem_of({.pad_top = 5, .pad_left = 4, .pad_right = 2}, {1, 9, 40, 1}, {4, 5, 1, 6}), true);
  forward(problem_of({.pad_top = 5, .pad_left = 4, .pad_right = 2}, {1, 9, 40, 1}, {4, 5, 1, 6}), true);
  gradient(problem_of({.dilation_h = 3, .dilation_w = 4, .pad_left = 1, .pad_bottom = 2}, {2, 20, 45, 2}, {3, 3, 2, 8}), false);
  forward(problem_of({.dilation_h = 3, .dilation_w = 4, .pad_left = 1, .pad_bottom = 2}, {2, 20, 45, 2}, {3, 3, 2, 8}), false);
  // One pixel column short of what every row needs.
  check_problem(problem_of({.stride_h = 2, .pad_bottom = 1}, {1, 31, 40, 1}, {5, 5, 1, 3}), draw, true, contexts);
  check_problem(problem_of({.stride_h = 3, .dilation_h = 2, .pad_top = 2}, {2, 33, 37, 2}, {4, 3, 2, 8}), draw, true, contexts);
}

TEST_CASE("gradients of few filters, whose chunks of images stand in the lanes, have the contract's bits") {
  const auto contexts = make_contexts();
  const bool vectors = contexts.back()->kernels().isa == Isa::avx2 || contexts.back()->kernels().isa == Isa::avx512;
  Draw draw(11);
  const auto gradient = [&](const Conv2dProblem& p, bool awkward) {
    const Tensor x = draw.tensor(x_shape(p), awkward), dy = draw.tensor(y_shape(p), awkward);
    const Tensor want = expected_conv2d_grad_weight(p, x, dy);
    bool taken = false;
    for (const std::unique_ptr<Context>& context : contexts) {
      INFO(name_of(*context) << ": " << describe(p));
      taken = taken || ops::grad_weight_in_lanes(*context, p);
      Tensor dw(w_shape(p));
      for (float& value : dw.span()) value = kNan;
      ops::conv2d_grad_weight(*context, p.attrs, x, dy, dw);
      require_same_bits(dw, want);
    }
    CHECK(taken == vectors);
  };
  // LeNet-5's; lanes that no image fills; one and several groups of lanes.
  for (const Index n : {12, 16, 45}) gradient(problem_of({}, {n, 28, 28, 1}, {5, 5, 1, 6}), n == 16);
  // Chunks of two images, of which the last has one; of six, the last of five.
  gradient(problem_of({}, {31, 18, 17, 1}, {3, 3, 1, 4}), false);
  gradient(problem_of({}, {77, 10, 11, 2}, {3, 2, 2, 3}), true);
  // Every number of output channels that makes a tile; padding on all sides, strides, taps that lie apart.
  for (Index oc = 1; oc <= 8; ++oc) {
    gradient(problem_of({.pad_top = 1, .pad_left = 2, .pad_bottom = 3, .pad_right = 4}, {16, 19, 15, 1}, {2, 3, 1, oc}),
             oc > 6);
  }
  gradient(
      problem_of({.stride_h = 2, .stride_w = 3, .dilation_h = 3, .dilation_w = 2, .pad_top = 2}, {32, 41, 60, 2}, {3, 2, 2, 3}),
      true);
  // More chunks than the sums of one pass.
  gradient(problem_of({}, {500, 18, 18, 1}, {2, 2, 1, 1}), false);
}

TEST_CASE("gradients of images that go tap by tap have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(7);
  const Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  check_problem(problem_of(same, {1, 7, 7, 5}, {3, 3, 5, 64}), draw, false, contexts);
  check_problem(problem_of(same, {11, 7, 6, 3}, {3, 3, 3, 65}), draw, true, contexts);
  check_problem(problem_of({.stride_h = 2, .stride_w = 3, .pad_top = 2}, {2, 19, 20, 2}, {3, 4, 2, 64}), draw, false, contexts);
  check_problem(problem_of({.stride_w = 2, .dilation_h = 2, .dilation_w = 3, .pad_bottom = 4, .groups = 2}, {3, 9, 12, 4},
                           {3, 3, 2, 128}),
                draw, false, contexts);
  check_problem(problem_of({.pad_right = 1}, {1, 2, 300, 1}, {2, 2, 1, 64}), draw, false, contexts);
}

TEST_CASE("gradients of filters over many channels, read from a copy by channels, have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(8);
  const Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  check_problem(problem_of(same, {3, 7, 7, 128}, {3, 3, 128, 20}), draw, false, contexts);
  check_problem(problem_of({}, {12, 8, 7, 257}, {1, 1, 257, 20}), draw, true, contexts);
  check_problem(problem_of({.stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_right = 2}, {2, 9, 10, 130}, {3, 3, 130, 17}),
                draw, false, contexts);
  check_problem(problem_of({.stride_h = 3, .stride_w = 2, .dilation_h = 2, .dilation_w = 3, .pad_left = 7, .groups = 2},
                           {2, 11, 9, 128}, {3, 3, 64, 34}),
                draw, false, contexts);
  check_problem(problem_of({.pad_top = 3, .pad_left = 4}, {1, 1, 2, 128}, {2, 3, 128, 18}), draw, false, contexts);
}

TEST_CASE("gradients of images under 35 to 48 taps, of which fewer reach an edge, keep to their scratch") {
  const auto contexts = make_contexts();
  Draw draw(10);
  const Conv2dAttrs same{.pad_top = 3, .pad_left = 3, .pad_bottom = 3, .pad_right = 3, .groups = 2};
  check_problem(problem_of(same, {1, 38, 40, 4}, {7, 7, 2, 4}), draw, false, contexts);
}

TEST_CASE("a convolution and its gradients are as near to the exact values as their chains allow") {
  Context context;
  Draw draw(3);
  for (int i = 0; i < 60; ++i) {
    const Conv2dProblem p = draw_conv2d(draw);
    INFO(describe(p));
    const Tensor x = draw.tensor(x_shape(p)), w = draw.tensor(w_shape(p)), dy = draw.tensor(y_shape(p));
    Tensor y(y_shape(p)), dx(x_shape(p)), dw(w_shape(p));
    ops::conv2d(context, p.attrs, x, w, y);
    ops::conv2d_grad_input(context, p.attrs, dy, w, dx);
    ops::conv2d_grad_weight(context, p.attrs, x, dy, dw);
    for_each_element(y, [&](float got, Index n, Index oh, Index ow, Index oc) {
      Exact want;
      forward_terms(p, x, w, n, oh, ow, oc, [&](double a, double b) { want.add(a, b); });
      require_near(got, want);
    });
    for_each_element(dx, [&](float got, Index n, Index ih, Index iw, Index c) {
      Exact want;
      grad_input_terms(p, dy, w, n, ih, iw, c, [&](double a, double b) { want.add(a, b); });
      require_near(got, want);
    });
    for_each_element(dw, [&](float got, Index kh, Index kw, Index ic, Index oc) {
      Exact want;
      grad_weight_terms(p, x, dy, 0, p.n, kh, kw, ic, oc, [&](double a, double b) { want.add(a, b); });
      require_near(got, want);
    });
  }
}

TEST_CASE("filters that were packed before give the bits of filters packed on the way") {
  Draw draw(4);
  for (const auto& context : make_contexts()) {
    const Conv2dProblem p = problem_of({.pad_left = 1, .groups = 2}, {2, 7, 6, 6}, {3, 2, 3, 8});
    const Tensor x = draw.tensor(x_shape(p)), w = draw.tensor(w_shape(p));
    Tensor want(y_shape(p)), got(y_shape(p));
    ops::conv2d(*context, p.attrs, x, w, want);
    const AlignedArray<std::byte> packed = allocate_array<std::byte>(static_cast<Index>(ops::conv2d_packed_bytes(*context, p)));
    float* const filters = reinterpret_cast<float*>(packed.get());
    ops::pack_conv2d(*context, p, w.data(), filters);
    ops::run_conv2d_packed(*context, p, x.data(), filters, {}, got.data());
    require_same_bits(got, want);

    const Conv2dProblem plain = problem_of({.pad_left = 1}, {2, 7, 6, 6}, {3, 2, 6, 8});
    const Conv2dProblem many = problem_of({.pad_left = 1}, {40, 7, 6, 6}, {3, 2, 6, 8});
    const Conv2dProblem deep = problem_of({.stride_h = 2, .pad_top = 1}, {2, 7, 6, 5}, {3, 2, 5, 64});
    for (const Conv2dProblem& q : {p, plain, many, deep}) {
      const Tensor dy = draw.tensor(y_shape(q)), v = draw.tensor(w_shape(q));
      Tensor want_dx(x_shape(q)), got_dx(x_shape(q));
      ops::conv2d_grad_input(*context, q.attrs, dy, v, want_dx);
      const auto packed_v = allocate_array<std::byte>(static_cast<Index>(ops::conv2d_grad_input_packed_bytes(*context, q)));
      ops::pack_conv2d_grad_input(*context, q, v.data(), reinterpret_cast<float*>(packed_v.get()));
      ops::run_conv2d_grad_input_packed(*context, q, dy.data(), reinterpret_cast<float*>(packed_v.get()), got_dx.data());
      require_same_bits(got_dx, want_dx);
    }
  }
}

TEST_CASE("a batch may be split: pixels do not change, filter gradients add up chunk by chunk") {
  Draw draw(5);
  for (const auto& context : make_contexts()) {
    const Conv2dProblem p = problem_of({}, {40, 6, 6, 2}, {2, 2, 2, 3});  // chunks of 20 images
    REQUIRE(ops::conv2d_grad_weight_images(p) == 20);
    const Tensor x = draw.tensor(x_shape(p)), w = draw.tensor(w_shape(p)), dy = draw.tensor(y_shape(p));
    Tensor y(y_shape(p)), dw(w_shape(p)), split_y(y_shape(p)), split_dw(w_shape(p));
    ops::conv2d(*context, p.attrs, x, w, y);
    ops::conv2d_grad_weight(*context, p.attrs, x, dy, dw);
    for (const Index begin : {0, 20}) {
      const ConstTensorView part_x = x.view().slice(0, begin, begin + 20), part_dy = dy.view().slice(0, begin, begin + 20);
      ops::conv2d(*context, p.attrs, part_x, w, split_y.view().slice(0, begin, begin + 20));
      Tensor part_dw(w_shape(p));
      ops::conv2d_grad_weight(*context, p.attrs, part_x, part_dy, part_dw);
      for (Index i = 0; i < dw.elements(); ++i) split_dw.data()[i] += part_dw.data()[i];
    }
    require_same_bits(split_y, y);
    require_same_bits(split_dw, dw);
  }
}

TEST_CASE("padding multiplies by zero in the forward pass and in the filters' gradient, and is left out of the image's") {
  const Conv2dProblem p = problem_of({.pad_top = 1}, {1, 1, 1, 1}, {2, 1, 1, 1});  // y = w0 * 0 + w1 * x
  for (const auto& context : make_contexts()) {
    Tensor x({1, 1, 1, 1}), w({2, 1, 1, 1}), y({1, 1, 1, 1}), dx({1, 1, 1, 1}), dw({2, 1, 1, 1});
    x.data()[0] = 3.0f;
    w.data()[0] = kNan;
    w.data()[1] = 2.0f;
    ops::conv2d(*context, p.attrs, x, w, y);
    CHECK(std::isnan(y.data()[0]));
    y.data()[0] = 5.0f;
    ops::conv2d_grad_input(*context, p.attrs, y, w, dx);
    CHECK(dx.data()[0] == 10.0f);
    y.data()[0] = std::numeric_limits<float>::infinity();
    ops::conv2d_grad_weight(*context, p.attrs, x, y, dw);
    CHECK(std::isnan(dw.data()[0]));  // 0 * inf
    CHECK(std::isinf(dw.data()[1]));
  }
}

TEST_CASE("padding that no window reaches has the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(31);
  check_problem(problem_of({.stride_h = 2, .pad_bottom = 1}, {2, 7, 4, 4}, {3, 3, 4, 6}), draw, true, contexts);
  check_problem(problem_of({.stride_w = 2, .pad_right = 1}, {2, 4, 7, 40}, {3, 3, 40, 24}), draw, true, contexts);
  check_problem(problem_of({.stride_h = 3, .stride_w = 3, .pad_bottom = 2, .pad_right = 1}, {1, 5, 6, 3}, {2, 2, 3, 33}), draw,
                true, contexts);
}

TEST_CASE("padding shows by no sign of a zero, and by every infinite or NaN weight") {
  // Pixels in rows with gaps and copied, pixels in the lanes, images in the lanes; padding on all sides, and above alone.
  const Conv2dAttrs around{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}, above{.pad_top = 2};
  for (const Conv2dProblem& p :
       {problem_of(around, {1, 4, 5, 40}, {3, 3, 40, 24}), problem_of(above, {2, 4, 5, 40}, {3, 3, 40, 24}),
        problem_of(around, {1, 4, 5, 3}, {3, 3, 3, 24}), problem_of(around, {1, 9, 9, 2}, {3, 3, 2, 2}),
        problem_of(around, {64, 4, 4, 2}, {3, 3, 2, 2})}) {
    for (const auto& context : make_contexts()) {
      Tensor x(x_shape(p)), w(w_shape(p)), y(y_shape(p)), bias({p.oc});
      for (float& value : x.span()) value = -1e-30f;
      for (float& value : w.span()) value = 1e-30f;  // fma(x, w, +0) rounds to -0, which a later 0 * w would make +0
      for (float& value : bias.span()) value = -0.0f;
      ops::conv2d(*context, p.attrs, x, w, y);
      for (const float value : y.span()) REQUIRE((value == 0.0f && !std::signbit(value)));
      ops::conv2d(*context, p.attrs, x, w, y, {.bias = bias});
      for (const float value : y.span()) REQUIRE((value == 0.0f && !std::signbit(value)));
      w.data()[0] =
          std::numeric_limits<float>::infinity();  // under the first tap, which lies in the padding of the first pixel
      w.data()[w.elements() - 1] = kNan;
      ops::conv2d(*context, p.attrs, x, w, y);
      require_same_bits(y, expected_conv2d(p, x, w, nullptr, nullptr, false));
    }
  }
}

TEST_CASE("a filter gradient that underflows is +0, as it is a sum that begins with +0") {
  // The usual way, and with chunks in the lanes.
  for (const Conv2dProblem& p : {problem_of({}, {1, 1, 1, 1}, {1, 1, 1, 20}), problem_of({}, {17, 17, 17, 1}, {1, 1, 1, 2})}) {
    for (const auto& context : make_contexts()) {
      Tensor x(x_shape(p)), dy(y_shape(p)), dw(w_shape(p));
      for (float& value : x.span()) value = -1e-30f;
      for (float& value : dy.span()) value = 1e-30f;  // the chain, fma(x, dy, +0), rounds to -0
      ops::conv2d_grad_weight(*context, p.attrs, x, dy, dw);
      for (const float value : dw.span()) REQUIRE(!std::signbit(value));
    }
  }
}

TEST_CASE("convolutions of nothing are legal") {
  for (const auto& context : make_contexts()) {
    Tensor bias({2});
    bias.data()[0] = 4.0f;
    Tensor y({2, 3, 3, 2});
    // No channels: the bias alone. No image rows: padding alone.
    ops::conv2d(*context, {}, Tensor({2, 3, 3, 0}), Tensor({1, 1, 0, 2}), y, {.bias = bias});
    for (Index i = 0; i < y.elements(); ++i) REQUIRE(y.data()[i] == (i % 2 == 0 ? 4.0f : 0.0f));
    Tensor all_padding({1, 2, 1, 2});
    ops::conv2d(*context, {.pad_top = 1, .pad_bottom = 1}, Tensor({1, 0, 1, 3}), Tensor({1, 1, 3, 2}), all_padding,
                {.bias = bias});
    CHECK(all_padding.data()[2] == 4.0f);
    Tensor dx({1, 0, 1, 3}), dw({1, 1, 3, 2}), no_dw({3, 3, 2, 4});
    ops::conv2d_grad_input(*context, {.pad_top = 1, .pad_bottom = 1}, all_padding, Tensor({1, 1, 3, 2}), dx);
    dw.data()[0] = 7.0f;
    ops::conv2d_grad_weight(*context, {.pad_top = 1, .pad_bottom = 1}, Tensor({1, 0, 1, 3}), all_padding, dw);
    CHECK(dw.data()[0] == 0.0f);
    // No images: zero gradients.
    no_dw.data()[5] = 7.0f;
    Tensor no_y({0, 2, 2, 4}), no_dx({0, 4, 4, 2});
    ops::conv2d(*context, {}, no_dx, no_dw, no_y);
    ops::conv2d_grad_input(*context, {}, no_y, no_dw, no_dx);
    ops::conv2d_grad_weight(*context, {}, no_dx, no_y, no_dw);
    for (const float value : no_dw.span()) REQUIRE(value == 0.0f);
    // No filters.
    Tensor no_filters({2, 2, 3, 0}), images({1, 4, 4, 3}), no_channels({1, 3, 3, 0});
    ops::conv2d(*context, {}, images, no_filters, no_channels);
    images.data()[0] = 7.0f;
    ops::conv2d_grad_input(*context, {}, no_channels, no_filters, images);
    CHECK(images.data()[0] == 0.0f);
    ops::conv2d_grad_weight(*context, {}, images, no_channels, no_filters);
  }
}

TEST_CASE("shapes that do not convolve are errors that name them") {
  CHECK_THAT(shape_error_of({}, {2, 5, 5}, {3, 3, 1, 2}), ContainsSubstring("[2, 5, 5]") && ContainsSubstring("[N, H, W, C]"));
  CHECK_THAT(shape_error_of({}, {1, 5, 5, 3}, {3, 3, 2, 2}),
             ContainsSubstring("reads 2 channels") && ContainsSubstring("read 3"));
  CHECK_THAT(shape_error_of({.groups = 2}, {1, 5, 5, 3}, {3, 3, 1, 2}), ContainsSubstring("2 groups"));
  CHECK_THAT(shape_error_of({.groups = 0}, {1, 5, 5, 3}, {3, 3, 1, 2}), ContainsSubstring("at least 1"));
  CHECK_THAT(shape_error_of({.stride_w = 0}, {1, 5, 5, 3}, {3, 3, 3, 2}), ContainsSubstring("at least 1"));
  CHECK_THAT(shape_error_of({}, {1, 5, 5, 3}, {0, 3, 3, 2}), ContainsSubstring("at least 1 x 1"));
  CHECK_THAT(shape_error_of({.dilation_h = 3}, {1, 6, 6, 1}, {3, 3, 1, 2}),
             ContainsSubstring("kernel [3, 3]") && ContainsSubstring("[3, 1]") && ContainsSubstring("padded image [6, 6]"));
  CHECK_THAT(shape_error_of({}, {1, 0, 5, 1}, {1, 1, 1, 2}), ContainsSubstring("padded image [0, 5]"));
  // One pixel less and it would not fit; with padding it does.
  CHECK(ops::conv2d_shape({.dilation_h = 3, .pad_bottom = 1}, {1, 6, 6, 1}, {3, 3, 1, 2}).value() == Shape{1, 1, 4, 2});
  CHECK(ops::conv2d_shape({.stride_h = 2, .stride_w = 3}, {7, 28, 28, 1}, {5, 5, 1, 6}).value() == Shape{7, 12, 8, 6});
}

TEST_CASE("the checked convolutions reject views that they would misread") {
  Context context;
  Tensor x({1, 4, 4, 2}), w({3, 3, 2, 2}), y({1, 2, 2, 2}), bias({2});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] {
               ops::conv2d(context, {}, x.view().permute({0, 2, 1, 3}), w, y);
             }),
             ContainsSubstring("conv2d: x") && ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] { ops::conv2d(context, {}, x, w, x.view().slice(1, 0, 2).slice(2, 0, 2)); }),
             ContainsSubstring("conv2d: y") && ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] { ops::conv2d(context, {}, x, w, Tensor({1, 2, 2, 3})); }), ContainsSubstring("[1, 2, 2, 2]"));
  CHECK_THAT(message([&] { ops::conv2d(context, {}, x, w, TensorView(x.data() + 3, y.shape())); }),
             ContainsSubstring("overlaps"));
  CHECK_THAT(message([&] { ops::conv2d(context, {}, x, w, y, {.residual = y}); }), ContainsSubstring("residual"));
  CHECK_THAT(message([&] { ops::conv2d(context, {}, x, w, y, {.bias = Tensor({3})}); }),
             ContainsSubstring("bias has shape [3]"));
  CHECK_THAT(message([&] {
               ops::conv2d_grad_input(context, {}, y, w, x.view().permute({0, 2, 1, 3}));
             }),
             ContainsSubstring("dx"));
  CHECK_THAT(message([&] { ops::conv2d_grad_weight(context, {}, x, Tensor({1, 2, 1, 2}), w); }), ContainsSubstring("dy"));
}
