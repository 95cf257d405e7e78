// SPDX-License-Identifier: Apache-2.0
// Linear layers: drawn sizes and strides against the definition, in the contract's order and in double.
#include "../../ops/linear.hpp"

#include "../support/errors.hpp"
#include "support.hpp"

#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor expected_linear(ConstTensorView x, ConstTensorView w, const Tensor* bias, const Tensor* residual, bool relu) {
  Tensor y({x.dim(0), w.dim(1)});
  for (Index i = 0; i < x.dim(0); ++i) {
    for (Index j = 0; j < w.dim(1); ++j) {
      float chain = 0.0f;
      for (Index k = 0; k < x.dim(1); ++k) chain = std::fma(x(i, k), w(k, j), chain);
      if (bias != nullptr) chain += bias->data()[j];
      if (residual != nullptr) chain += residual->view()(i, j);
      y.view()(i, j) = relu && chain < 0.0f ? 0.0f : chain;
    }
  }
  return y;
}

Tensor expected_grad_weight(ConstTensorView x, ConstTensorView dy) {
  Tensor dw({x.dim(1), dy.dim(1)});
  for (Index i = 0; i < x.dim(1); ++i) {
    for (Index j = 0; j < dy.dim(1); ++j) {
      float& element = dw.view()(i, j);
      for (Index begin = 0; begin < x.dim(0); begin += 512) {
        float chain = 0.0f;
        for (Index n = begin; n < std::min(x.dim(0), begin + 512); ++n) chain = std::fma(x(n, i), dy(n, j), chain);
        element += chain;
      }
    }
  }
  return dw;
}

// With weights that are packed first.
Tensor packed_linear(Context& context, const Tensor& x, const Tensor& w, const ops::EpilogueViews& epilogue) {
  const ops::LinearProblem problem = ops::linear_problem({}, x.shape(), w.shape()).value();
  context.reserve_scratch(ops::linear_packed_scratch(context, problem));
  AlignedArray<std::byte> packed = allocate_array<std::byte>(static_cast<Index>(ops::linear_packed_bytes(context, problem)));
  ops::pack_linear(context, problem, w.data(), reinterpret_cast<float*>(packed.get()));
  Tensor y({problem.rows, problem.out});
  ops::run_linear_packed(
      context, problem, x.data(), reinterpret_cast<float*>(packed.get()),
      {epilogue.bias ? epilogue.bias->data() : nullptr, epilogue.residual ? epilogue.residual->data() : nullptr, epilogue.relu},
      y.data());
  return y;
}

void check_layer(Index rows, Index in, Index out, Draw& draw, bool awkward,
                 const std::vector<std::unique_ptr<Context>>& contexts) {
  const Tensor x = draw.tensor({rows, in}, awkward), w = draw.tensor({in, out}, awkward),
               dy = draw.tensor({rows, out}, awkward);
  const Tensor bias = draw.tensor({out}, awkward), residual = draw.tensor({rows, out}, awkward);
  const bool has_bias = draw.one_in(2), has_residual = draw.one_in(2), relu = draw.one_in(2);
  const Tensor want_y = expected_linear(x, w, has_bias ? &bias : nullptr, has_residual ? &residual : nullptr, relu);
  const Tensor want_dx = expected_linear(dy, w.view().permute({1, 0}), nullptr, nullptr, false);
  const Tensor want_dw = expected_grad_weight(x, dy);
  ops::EpilogueViews epilogue{.relu = relu};
  if (has_bias) epilogue.bias = bias;
  if (has_residual) epilogue.residual = residual;
  for (const auto& context : contexts) {
    INFO(name_of(*context) << ": " << rows << " x " << in << " x " << out);
    Tensor y = draw.tensor({rows, out}), dx = draw.tensor({rows, in}), dw = draw.tensor({in, out});
    ops::linear(*context, {}, x, w, y, epilogue);
    require_same_bits(y, want_y);
    require_same_bits(packed_linear(*context, x, w, epilogue), want_y);
    ops::linear_grad_input(*context, {}, dy, w, dx);
    require_same_bits(dx, want_dx);
    ops::linear_grad_weight(*context, {}, x, dy, dw);
    require_same_bits(dw, want_dw);
  }
}

}  // namespace

TEST_CASE("a linear layer and its gradients have the contract's bits on every instruction set and number of threads") {
  const auto contexts = make_contexts();
  Draw draw(10);
  for (int i = 0; i < 60; ++i) check_layer(draw.range(0, 20), draw.range(0, 40), draw.range(0, 70), draw, i % 3 == 0, contexts);
  for (const Index rows : {1, 511, 512, 513, 1030}) check_layer(rows, 5, 7, draw, false, contexts);
  check_layer(3, 1100, 18, draw, false, contexts);  // a chain beyond two blocks of k
  // Few rows, and one more; several panels of columns.
  for (const Index rows : {1, 2, 8, 9}) check_layer(rows, 23, 600, draw, true, contexts);
  check_layer(1, 1100, 257, draw, false, contexts);
  // Few rows, whose gradients go by blocks: several of them, the last ones shorter.
  check_layer(3, 200, 1030, draw, true, contexts);
  for (const Index in : {63, 64, 65, 95, 96, 97}) check_layer(2, in, 20, draw, false, contexts);
  // Panels of columns that threads share, or rows where these share better; w in place, and packed by each of them.
  for (const Index rows : {30, 85, 150}) {
    for (const Index out : {64, 100, 460, 1030}) check_layer(rows, 17, out, draw, out == 100, contexts);
  }
  // One row, which w multiplies as it lies.
  for (const Index in : {1, 15, 33, 64, 150}) check_layer(1, in, 7 * in + 3, draw, in == 33, contexts);
  // Many rows and few columns, which change roles on wide vectors; threads get fewer rows than that.
  for (const Index rows : {127, 128, 129, 300}) {
    for (const Index out : {1, 5, 6, 7}) check_layer(rows, 25, out, draw, rows == 129, contexts);
  }
}

TEST_CASE("a linear layer and its gradients are as near to the exact values as their chains allow") {
  Context context;
  Draw draw(11);
  const Index rows = 700, in = 33, out = 21;
  const Tensor x = draw.tensor({rows, in}), w = draw.tensor({in, out}), dy = draw.tensor({rows, out});
  Tensor y({rows, out}), dx({rows, in}), dw({in, out});
  ops::linear(context, {}, x, w, y);
  ops::linear_grad_input(context, {}, dy, w, dx);
  ops::linear_grad_weight(context, {}, x, dy, dw);
  for (Index j = 0; j < out; ++j) {
    for (Index n = 0; n < rows; ++n) {
      Exact want;
      for (Index k = 0; k < in; ++k) want.add(x.view()(n, k), w.view()(k, j));
      require_near(y.view()(n, j), want);
    }
    for (Index k = 0; k < in; ++k) {
      Exact want;
      for (Index n = 0; n < rows; ++n) want.add(x.view()(n, k), dy.view()(n, j));
      require_near(dw.view()(k, j), want);
    }
  }
  for (Index n = 0; n < rows; ++n) {
    for (Index k = 0; k < in; ++k) {
      Exact want;
      for (Index j = 0; j < out; ++j) want.add(dy.view()(n, j), w.view()(k, j));
      require_near(dx.view()(n, k), want);
    }
  }
}

TEST_CASE("linear layers read permuted, reversed and broadcast views as what they show") {
  Draw draw(12);
  const Tensor x = draw.tensor({9, 14}), w = draw.tensor({5, 9}), row = draw.tensor({1, 9}), dy = draw.tensor({14, 5});
  const Tensor wide = draw.tensor({70, 12});
  const ConstTensorView transposed_x = x.view().permute({1, 0}), transposed_w = w.view().permute({1, 0});
  const ConstTensorView reversed_x = x.view().slice(1, 12, -1, -2).permute({1, 0});
  const ConstTensorView repeated = row.view().broadcast_to({14, 9});
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    for (const ConstTensorView& input : {transposed_x, reversed_x, repeated}) {
      Tensor y({input.dim(0), 5});
      ops::linear(*context, {}, input, transposed_w, y);
      require_same_bits(y, expected_linear(input, transposed_w, nullptr, nullptr, false));
    }
    Tensor dx({14, 9}), dw({9, 5});
    ops::linear_grad_input(*context, {}, dy, transposed_w, dx);
    require_same_bits(dx, expected_linear(dy, w, nullptr, nullptr, false));
    for (const Index rows : {1, 2}) {  // few rows, and columns out of a wider w of more than one block
      const ConstTensorView narrow_w = wide.view().slice(1, 3, 8), few_dy = dy.view().slice(0, 0, rows);
      Tensor few_dx({rows, 70});
      ops::linear_grad_input(*context, {}, few_dy, narrow_w, few_dx);
      require_same_bits(few_dx, expected_linear(few_dy, narrow_w.permute({1, 0}), nullptr, nullptr, false));
    }
    ops::linear_grad_weight(*context, {}, transposed_x, dy, dw);
    require_same_bits(dw, expected_grad_weight(transposed_x, dy));
  }
}

TEST_CASE("weights that were packed before give the bits of weights packed on the way") {
  Draw draw(13);
  const Tensor x = draw.tensor({7, 30}), w = draw.tensor({30, 19});
  const ops::LinearProblem problem = ops::linear_problem({}, x.shape(), w.shape()).value();
  // Many rows and few columns, with w transposed in memory.
  const Tensor many = draw.tensor({200, 30}), few = draw.tensor({6, 30});
  ops::LinearProblem tall = ops::linear_problem({}, many.shape(), {30, 6}).value();
  tall.w_row_stride = 1, tall.w_column_stride = 30;
  const auto packed_weights = [](Context& context, const ops::LinearProblem& p, const Tensor& weights) {
    AlignedArray<std::byte> packed = allocate_array<std::byte>(static_cast<Index>(ops::linear_packed_bytes(context, p)));
    ops::pack_linear(context, p, weights.data(), reinterpret_cast<float*>(packed.get()));
    return packed;
  };
  for (const auto& context : make_contexts()) {
    Tensor want({7, 19}), got({7, 19});
    ops::linear(*context, {}, x, w, want);
    const auto packed = packed_weights(*context, problem, w);
    ops::run_linear_packed(*context, problem, x.data(), reinterpret_cast<float*>(packed.get()), {}, got.data());
    require_same_bits(got, want);
    Tensor want_tall({200, 6}), got_tall({200, 6});
    ops::linear(*context, {}, many, few.view().permute({1, 0}), want_tall);
    const auto packed_few = packed_weights(*context, tall, few);
    ops::run_linear_packed(*context, tall, many.data(), reinterpret_cast<float*>(packed_few.get()), {}, got_tall.data());
    require_same_bits(got_tall, want_tall);
  }
}

TEST_CASE("a weight gradient that underflows is +0, as it is a sum that begins with +0") {
  for (const auto& context : make_contexts()) {
    for (const Index rows : {1, 20, 600}) {  // by blocks, packed, in two chunks
      Tensor x({rows, 3}), dy({rows, 20}), dw({3, 20});
      for (float& value : x.span()) value = -1e-30f;
      for (float& value : dy.span()) value = 1e-30f;  // the chain, fma(x, dy, +0), rounds to -0
      ops::linear_grad_weight(*context, {}, x, dy, dw);
      for (const float value : dw.span()) REQUIRE(std::bit_cast<std::uint32_t>(value) == 0);
    }
  }
}

TEST_CASE("linear layers of nothing are legal") {
  Context context;
  Tensor bias({2}), y({3, 2}), dw({4, 2});
  bias.data()[1] = 5.0f;
  ops::linear(context, {}, Tensor({3, 0}), Tensor({0, 2}), y, {.bias = bias});
  CHECK(y.data()[0] == 0.0f);
  CHECK(y.data()[5] == 5.0f);
  dw.data()[3] = 1.0f;
  ops::linear_grad_weight(context, {}, Tensor({0, 4}), Tensor({0, 2}), dw);
  CHECK(dw.data()[3] == 0.0f);
  Tensor dx({3, 4});
  dx.data()[0] = 1.0f;
  ops::linear_grad_input(context, {}, Tensor({3, 0}), Tensor({4, 0}), dx);
  CHECK(dx.data()[0] == 0.0f);
}

TEST_CASE("a linear layer's wrong operands are errors that name them") {
  const Result<Shape> shape = ops::linear_shape({}, {2, 3}, {4, 5});
  REQUIRE_FALSE(shape.ok());
  CHECK_THAT(shape.error().message(),
             ContainsSubstring("[2, 3]") && ContainsSubstring("[4, 5]") && ContainsSubstring("same in"));
  CHECK_FALSE(ops::linear_shape({}, {2, 3, 4}, {4, 5}).ok());

  Context context;
  Tensor x({2, 3}), w({3, 4}), y({2, 4});
  const auto message = [&](const auto& call) { return error_of(call).message(); };
  CHECK_THAT(message([&] { ops::linear(context, {}, x, w, Tensor({4, 2})); }), ContainsSubstring("y has shape [4, 2]"));
  CHECK_THAT(message([&] {
               ops::linear(context, {}, x, w, Tensor({4, 2}).view().permute({1, 0}));
             }),
             ContainsSubstring("contiguous()"));
  CHECK_THAT(message([&] { ops::linear(context, {}, x, w, TensorView(w.data() + 4, y.shape())); }),
             ContainsSubstring("overlaps"));
  CHECK_THAT(message([&] { ops::linear(context, {}, x, w, y, {.residual = y}); }), ContainsSubstring("residual"));
  // A view that runs backwards reaches below its first element.
  Tensor block({4, 3});
  const ConstTensorView upward = block.view().slice(0, 3, 1, -1);
  CHECK_THAT(message([&] { ops::linear(context, {}, upward, w, TensorView(block.data(), y.shape())); }),
             ContainsSubstring("overlaps"));
}
