// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's filters where it is computed in ways that the drawn configurations are too small for.
#include "../../ops/conv2d.hpp"
#include "../../ops/conv2d_chunks.hpp"
#include "../../ops/conv2d_grad_weight_columns.hpp"
#include "../../ops/conv2d_grad_weight_pixels.hpp"
#include "../../ops/conv2d_grad_weight_planes.hpp"
#include "reference_conv2d.hpp"

using namespace vitro_test;

namespace {

Conv2dProblem problem_of(const Conv2dAttrs& attrs, const Shape& x, const Shape& w) {
  return ops::conv2d_problem(attrs, x, w).value();
}

void check_gradient(const Conv2dProblem& p, const Tensor& x, const Tensor& dy,
                    const std::vector<std::unique_ptr<Context>>& contexts) {
  const Tensor want = expected_conv2d_grad_weight(p, x, dy);
  for (const std::unique_ptr<Context>& context : contexts) {
    INFO(name_of(*context) << ": " << describe(p));
    Tensor dw(w_shape(p));
    for (float& value : dw.span()) value = std::numeric_limits<float>::quiet_NaN();  // whatever is not written shows
    ops::conv2d_grad_weight(*context, p.attrs, x, dy, dw);
    require_same_bits(dw, want);
  }
}

void check_gradient(const Conv2dProblem& p, Draw& draw, bool awkward, const std::vector<std::unique_ptr<Context>>& contexts) {
  check_gradient(p, draw.tensor(x_shape(p), awkward), draw.tensor(y_shape(p), awkward), contexts);
}

}  // namespace

TEST_CASE("gradients of filters of one tap, with dy as it lies, have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(21);
  const auto check = [&](const Conv2dAttrs& attrs, const Shape& x, Index filters, bool awkward) {
    const Conv2dProblem p = problem_of(attrs, x, {1, 1, x[3], filters});
    INFO(describe(p));
    CHECK(ops::grad_weight_by_pixels(p));
    check_gradient(p, draw, awkward, contexts);
  };
  // The last product has 6 columns, changes the roles of its operands and needs more scratch than the others (hence first).
  check({.stride_h = 2, .stride_w = 2}, {3, 27, 14, 128}, 134, false);
  // x in place: chunks of one image; of 20, of which the last has one; a chain of two blocks of k, twice.
  check({}, {3, 18, 17, 20}, 24, false);
  check({}, {21, 5, 5, 9}, 70, true);
  check({}, {2, 30, 31, 17}, 40, false);
  // A copy of what the tap sees.
  check({.stride_h = 2, .stride_w = 2}, {11, 9, 8, 64}, 70, true);
  check({.stride_h = 3}, {2, 8, 9, 50}, 65, false);
  check({.stride_w = 2}, {1, 7, 13, 256}, 66, true);
  check({}, {3, 6, 7, 64}, 16, false);
}

TEST_CASE("gradients of filters over blocks of channels have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(22);
  const Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  check_gradient(problem_of(same, {3, 9, 8, 64}, {3, 3, 64, 17}), draw, true, contexts);
  // The last block has 8 channels; chunks of several images, the last one of fewer.
  check_gradient(problem_of(same, {12, 7, 7, 72}, {3, 3, 72, 20}), draw, false, contexts);
  // Phases of the stride; of which a dilation leaves out one; taps that see padding only.
  check_gradient(problem_of({.stride_h = 2, .stride_w = 3, .pad_top = 1, .pad_right = 2}, {3, 11, 13, 64}, {3, 2, 64, 24}),
                 draw, false, contexts);
  check_gradient(problem_of({.stride_h = 2, .dilation_h = 2, .dilation_w = 3, .pad_left = 1}, {2, 11, 14, 65}, {3, 2, 65, 30}),
                 draw, true, contexts);
  check_gradient(problem_of({.pad_top = 7, .pad_left = 9, .pad_bottom = 2, .pad_right = 8}, {1, 3, 4, 64}, {3, 3, 64, 24}),
                 draw, true, contexts);
  // One row of taps: the images of a chunk are one run of pixels.
  check_gradient(problem_of({.pad_left = 1}, {25, 5, 5, 64}, {1, 3, 64, 33}), draw, false, contexts);
  check_gradient(problem_of({.stride_h = 2}, {3, 9, 6, 144}, {1, 1, 144, 70}), draw, false, contexts);
  // Groups of whole blocks; and groups that are none.
  check_gradient(problem_of({.pad_top = 1, .groups = 2}, {3, 8, 8, 64}, {3, 3, 32, 40}), draw, false, contexts);
  check_gradient(problem_of({.pad_top = 1, .groups = 3}, {3, 8, 8, 72}, {2, 3, 24, 60}), draw, true, contexts);
}

TEST_CASE("gradients of filters over bands of large images have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(23);
  // One image, whose chain goes on from band to band; several, whose chains are added. The last band is shorter.
  for (const Index n : {1, 3}) {
    check_gradient(problem_of({.pad_top = 1}, {n, 46, 47, 64}, {2, 1, 64, 18}), draw, n == 3, contexts);
    check_gradient(problem_of({.pad_top = 2, .pad_left = 1}, {n, 59, 58, 3}, {3, 3, 3, 20}), draw, n == 1, contexts);
    check_gradient(problem_of({}, {n, 50, 61, 5}, {2, 2, 5, 20}), draw, false, contexts);
  }
  check_gradient(problem_of({.stride_h = 2, .pad_bottom = 3, .groups = 2}, {2, 95, 47, 64}, {3, 1, 32, 34}), draw, false,
                 contexts);
}

TEST_CASE("gradients of few filters over images of one channel have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(24);
  const auto check = [&](const Conv2dAttrs& attrs, const Shape& x, const Shape& w, bool awkward) {
    const Conv2dProblem p = problem_of(attrs, x, w);
    bool taken = false, wide = false;
    for (const auto& context : contexts) {
      taken = taken || ops::grad_weight_by_columns(*context, p);
      wide = wide || context->kernels().isa == vitro::Isa::avx512;
    }
    CHECK(taken == wide);
    check_gradient(p, draw, awkward, contexts);
  };
  for (const Index n : {1, 3}) check({}, {n, 28, 28, 1}, {5, 5, 1, 6}, n == 3);
  // Filters higher and wider than a vector's half; padding; rows apart; and columns apart, which are copied otherwise.
  check({.pad_top = 2, .pad_left = 1, .pad_bottom = 1, .pad_right = 3}, {2, 19, 21, 1}, {2, 15, 1, 4}, true);
  check({.stride_h = 2, .dilation_h = 2, .pad_top = 1}, {1, 31, 26, 1}, {9, 3, 1, 5}, false);
  check({.stride_w = 2, .dilation_h = 2}, {1, 20, 26, 1}, {4, 5, 1, 3}, false);
  check({.dilation_w = 2}, {1, 20, 26, 1}, {4, 5, 1, 3}, true);
}

TEST_CASE("gradients of few filters whose kernel rows fill vectors have the contract's bits") {
  const auto contexts = make_contexts();
  Draw draw(25);
  const auto check = [&](const Conv2dAttrs& attrs, const Shape& x, const Shape& w, bool awkward) {
    const Conv2dProblem p = problem_of(attrs, x, w);
    bool taken = false, wide = false;
    for (const auto& context : contexts) {
      taken = taken || ops::grad_weight_in_planes(*context, p);
      wide = wide || context->kernels().isa == vitro::Isa::avx512;
    }
    INFO(describe(p));
    CHECK(taken == wide);
    check_gradient(p, draw, awkward, contexts);
  };
  // LeNet-5's: the last image alone, more of them than are multiplied at once, a chunk more.
  for (const Index n : {1, 2, 7, 9}) check({}, {n, 12, 12, 6}, {5, 5, 6, 16}, n == 7);
  // Padding; rows apart; every second pixel; a kernel row of one tap; images that are hardly larger than a vector.
  check({.pad_top = 2, .pad_left = 1, .pad_bottom = 1, .pad_right = 3}, {3, 9, 11, 7}, {3, 2, 7, 6}, true);
  check({.stride_h = 2, .stride_w = 2, .dilation_h = 2}, {3, 15, 17, 5}, {3, 3, 5, 7}, false);
  check({.dilation_w = 3}, {2, 6, 7, 13}, {4, 1, 13, 5}, true);
  check({}, {40, 1, 1, 16}, {1, 1, 16, 3}, false);
  check({}, {40, 2, 2, 8}, {1, 2, 8, 3}, true);
}

TEST_CASE("the sums of chunks are added in order, a few at a time") {
  constexpr Index kChunks = 5, kSize = 3;
  for (const auto& context : make_contexts()) {
    for (const Index pass : {1, 2, 5, 7}) {
      std::vector<float> memory(ops::chunk_sum_bytes(pass, kSize) / sizeof(float));
      const float* const total =
          ops::add_chunks(*context, kChunks, pass, kSize, 1 << 20, memory.data(), [](Index begin, Index end, int, float* sums) {
            // 1e8 swallows what comes after it and nothing before.
            for (Index chunk = begin; chunk < end; ++chunk) {
              for (Index i = 0; i < kSize; ++i) {
                *sums++ = chunk == i + 1 ? 1e8f : static_cast<float>(chunk + 1);
              }
            }
          });
      for (Index i = 0; i < kSize; ++i) {
        float want = 0.0f;
        for (Index chunk = 0; chunk < kChunks; ++chunk) want += chunk == i + 1 ? 1e8f : static_cast<float>(chunk + 1);
        CHECK(total[i] == want);
      }
    }
  }
}

TEST_CASE("a chain of the filters' gradient that underflows to -0 is added to +0") {
  const auto contexts = make_contexts();
  for (const Conv2dProblem& p : {problem_of({}, {1, 4, 4, 20}, {1, 1, 20, 17}), problem_of({}, {1, 5, 5, 64}, {2, 2, 64, 17}),
                                 problem_of({}, {1, 46, 47, 64}, {1, 2, 64, 17})}) {
    Tensor x(x_shape(p)), dy(y_shape(p));
    for (float& value : x.span()) value = 1e-30f;
    for (float& value : dy.span()) value = -1e-30f;
    check_gradient(p, x, dy, contexts);
    Tensor dw(w_shape(p));
    ops::conv2d_grad_weight(*contexts.front(), p.attrs, x, dy, dw);
    CHECK(std::bit_cast<std::uint32_t>(dw.data()[0]) == 0);
  }
}
