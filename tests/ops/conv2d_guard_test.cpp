// SPDX-License-Identifier: Apache-2.0
// Convolutions of arrays that end where a page begins that must not be touched.
#include "../../ops/conv2d.hpp"
#include "../simd/guarded.hpp"

#include <catch2/catch_test_macros.hpp>
#include <tuple>

using namespace vitro;

TEST_CASE("convolutions and their gradients touch nothing behind their arrays") {
  const ops::Conv2dAttrs around{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  // Images in the lanes, pixels in the lanes, kernel rows in the lanes; pixels in rows, with padding and at every second pixel.
  for (const auto& [attrs, x, w] :
       {std::tuple{ops::Conv2dAttrs{}, Shape{1, 12, 12, 6}, Shape{5, 5, 6, 16}},
        {ops::Conv2dAttrs{}, Shape{9, 12, 12, 6}, Shape{5, 5, 6, 16}},
        {ops::Conv2dAttrs{}, Shape{64, 12, 12, 1}, Shape{5, 5, 1, 6}},
        {around, Shape{2, 9, 11, 7}, Shape{3, 3, 7, 5}},
        {around, Shape{2, 9, 11, 33}, Shape{3, 3, 33, 35}},
        {ops::Conv2dAttrs{.stride_h = 2, .stride_w = 2}, Shape{2, 9, 11, 20}, Shape{1, 1, 20, 37}}}) {
    const ops::Conv2dProblem p = ops::conv2d_problem(attrs, x, w).value();
    const Index outputs = p.n * p.oh * p.ow * p.oc;
    for (const Isa isa : {Isa::scalar, Isa::blocked, Isa::avx2, Isa::avx512}) {
      const auto context = Context::try_make({.isa = isa});
      if (!context) continue;  // this machine lacks it
      Context& c = *context.value();
      const vitro_test::Guarded<float> images(x.elements()), filters(w.elements()), y(outputs);
      c.reserve_scratch(ops::conv2d_scratch(c, p));
      ops::run_conv2d(c, p, images.data(), filters.data(), {}, y.data());
      CHECK(y[outputs - 1] == 0.0f);
      c.reserve_scratch(ops::conv2d_grad_input_scratch(c, p));
      ops::run_conv2d_grad_input(c, p, y.data(), filters.data(), images.data());
      CHECK(images[x.elements() - 1] == 0.0f);
      c.reserve_scratch(ops::conv2d_grad_weight_scratch(c, p));
      ops::run_conv2d_grad_weight(c, p, images.data(), y.data(), filters.data());
      CHECK(filters[w.elements() - 1] == 0.0f);
    }
  }
}
