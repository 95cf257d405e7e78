// SPDX-License-Identifier: Apache-2.0
// Every differentiable operation's gradient against central differences of its forward value.
//
// The scalar that is differentiated is sum(weights * y) with fixed random weights, summed in double, so that the only error of
// the difference is the rounding of y (about eps * |y| / h) and, where y is curved, the third derivative times h^2 / 6. Each
// case states its step h; operations that are linear in each argument take a large one, since their differences are exact but
// for rounding.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <vitro/autograd/functions.hpp>
#include <vitro/core/random.hpp>

using namespace vitro;

namespace {

using Function = std::function<Var(const std::vector<Var>&)>;

struct Case {
  const char* name;
  std::vector<Shape> inputs;
  Function function;
  double step = 0.25;
  double tolerance = 2e-4;  // of the largest gradient of each input
};

// Values in [-1, 1) that lie `gap` apart, in random order: away from the kinks of relu and max when the step is under gap / 2.
void fill_spread(Tensor& tensor, std::uint64_t stream) {
  const Index count = tensor.elements();
  const std::vector<std::uint32_t> order = permutation(count, Philox(7, stream));
  for (Index i = 0; i < count; ++i) {
    tensor.data()[i] = static_cast<float>((2.0 * order[static_cast<std::size_t>(i)] + 1.0) / static_cast<double>(count) - 1.0);
  }
}

double weighted_sum(ConstTensorView y, const Tensor& weights) {
  double sum = 0;
  for (Index i = 0; i < y.elements(); ++i) sum += static_cast<double>(y.data()[i]) * static_cast<double>(weights.data()[i]);
  return sum;
}

void check(Context& context, const Case& test) {
  INFO(test.name);
  std::vector<Tensor> inputs;
  for (const Shape& shape : test.inputs) {
    inputs.emplace_back(shape);
    fill_spread(inputs.back(), inputs.size());
  }
  Tape tape(context);
  const auto record = [&] {
    tape.clear();
    std::vector<Var> vars;
    for (Tensor& input : inputs) vars.push_back(tape.input(input.view(), true));
    return std::pair(test.function(vars), vars);
  };

  const Shape output = record().first.shape();
  Tensor weights(output);
  fill_uniform(weights, -1.0F, 1.0F, Philox(11, 1));
  const auto value = [&] { return weighted_sum(tape.value(record().first), weights); };

  const auto [y, vars] = record();
  tape.backward(sum_to(mul(y, tape.input(weights.view())), Shape()));
  std::vector<Tensor> gradients;
  for (Var var : vars) gradients.push_back(contiguous(tape.value(tape.gradient(var))));

  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("input " << i << " of shape " << to_string(inputs[i].shape()));
    REQUIRE(gradients[i].shape() == inputs[i].shape());
    double largest = 0;
    for (float g : gradients[i].span()) largest = std::max(largest, std::abs(static_cast<double>(g)));
    if (inputs[i].elements() > 0 && output.elements() > 0) REQUIRE(largest > 0);
    for (Index e = 0; e < inputs[i].elements(); ++e) {
      float& x = inputs[i].data()[e];
      const float saved = x;
      const float high = static_cast<float>(static_cast<double>(saved) + test.step);
      const float low = static_cast<float>(static_cast<double>(saved) - test.step);
      x = high;
      const double above = value();
      x = low;
      const double below = value();
      x = saved;
      const double expected = (above - below) / (static_cast<double>(high) - static_cast<double>(low));
      INFO("element " << e << ": expected " << expected << ", gradient " << gradients[i].data()[e]);
      REQUIRE(std::abs(static_cast<double>(gradients[i].data()[e]) - expected) <= test.tolerance * std::max(largest, 1e-3));
    }
  }
}

Var one(const std::vector<Var>& v, Var (*function)(Var)) { return function(v[0]); }

std::vector<Case> cases() {
  const ops::Conv2dAttrs strided{.stride_h = 2,
                                 .stride_w = 1,
                                 .dilation_h = 1,
                                 .dilation_w = 2,
                                 .pad_top = 1,
                                 .pad_left = 0,
                                 .pad_bottom = 0,
                                 .pad_right = 2};
  const ops::Conv2dAttrs grouped{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .groups = 2};
  const ops::Conv2dAttrs depthwise{.stride_h = 2, .stride_w = 2, .groups = 3};
  const ops::Pool2dAttrs pool{.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_top = 1, .pad_right = 1};
  const ops::Pool2dAttrs ceil{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .ceil_mode = true};
  const ops::Pool2dAttrs padded{
      .kernel_h = 2, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .divisor = ops::AverageDivisor::padded};
  const ops::Pool2dAttrs window{
      .kernel_h = 2, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .divisor = ops::AverageDivisor::window};
  const auto conv = [](const ops::Conv2dAttrs& attrs) -> Function {
    return [attrs](const auto& v) { return v.size() == 3 ? conv2d(v[0], v[1], v[2], attrs) : conv2d(v[0], v[1], attrs); };
  };
  const auto max_pool = [](const ops::Pool2dAttrs& attrs) -> Function {
    return [attrs](const auto& v) { return max_pool2d(v[0], attrs); };
  };
  const auto average = [](const ops::Pool2dAttrs& attrs) -> Function {
    return [attrs](const auto& v) { return average_pool2d(v[0], attrs); };
  };
  const auto unary = [](Var (*function)(Var)) -> Function { return [function](const auto& v) { return one(v, function); }; };
  const double kink = 1e-3;  // under half the distance of two values in up to 900 elements
  return {
      {"linear", {{5, 7}, {7, 3}}, [](const auto& v) { return linear(v[0], v[1]); }},
      {"linear with bias", {{5, 7}, {7, 3}, {3}}, [](const auto& v) { return linear(v[0], v[1], v[2]); }},
      {"linear of a permuted input",
       {{7, 5}, {7, 3}},
       [](const auto& v) {
         return linear(permute(v[0], {1, 0}), v[1]);
       }},
      {"linear of an empty batch", {{0, 7}, {7, 3}, {3}}, [](const auto& v) { return linear(v[0], v[1], v[2]); }},
      {"linear without inputs", {{4, 0}, {0, 3}, {3}}, [](const auto& v) { return linear(v[0], v[1], v[2]); }},
      {"conv2d", {{2, 6, 5, 3}, {3, 2, 3, 4}}, conv({})},
      {"conv2d with bias", {{2, 5, 5, 1}, {3, 3, 1, 2}, {2}}, conv({})},
      {"conv2d strided, dilated, padded", {{2, 6, 7, 2}, {3, 2, 2, 3}, {3}}, conv(strided)},
      {"conv2d in groups", {{1, 4, 5, 4}, {3, 3, 2, 6}, {6}}, conv(grouped)},
      {"conv2d depthwise", {{2, 5, 5, 3}, {2, 2, 1, 3}}, conv(depthwise)},
      {"conv2d 1x1", {{2, 3, 3, 5}, {1, 1, 5, 4}}, conv({})},
      {"conv2d of an empty batch", {{0, 5, 5, 2}, {3, 3, 2, 4}, {4}}, conv({})},
      {"add_bias", {{2, 3, 4}, {4}}, [](const auto& v) { return add_bias(v[0], v[1]); }},
      {"relu", {{4, 9}}, unary(relu), kink},
      {"relu of nothing", {{0, 9}}, unary(relu), kink},
      {"max_pool2d", {{2, 5, 6, 3}}, max_pool(pool), kink},
      {"max_pool2d with ceil_mode", {{1, 5, 5, 2}}, max_pool(ceil), kink},
      {"max_pool2d over a window of more than 256", {{1, 17, 17, 1}}, max_pool({.kernel_h = 17, .kernel_w = 17}), kink},
      {"average_pool2d", {{2, 5, 6, 3}}, average(pool)},
      {"average_pool2d with ceil_mode", {{1, 5, 5, 2}}, average(ceil)},
      {"average_pool2d counting padding", {{1, 4, 4, 2}}, average(padded)},
      {"average_pool2d with the window's divisor", {{1, 4, 4, 2}}, average(window)},
      {"softmax", {{4, 6}}, unary(softmax), 1e-2, 1e-3},
      {"softmax of one class", {{4, 1, 2}}, unary(softmax), 1e-2, 1e-3},
      {"log_softmax", {{2, 3, 5}}, unary(log_softmax), 1e-2, 1e-3},
      {"add", {{3, 4}, {3, 4}}, [](const auto& v) { return add(v[0], v[1]); }},
      {"add broadcast both ways", {{3, 1, 4}, {2, 1}}, [](const auto& v) { return add(v[0], v[1]); }},
      {"add a scalar", {{3, 4}, Shape()}, [](const auto& v) { return add(v[0], v[1]); }},
      {"add nothing", {{3, 0}, {1, 1}}, [](const auto& v) { return add(v[0], v[1]); }},
      {"mul", {{3, 4}, {3, 4}}, [](const auto& v) { return mul(v[0], v[1]); }},
      {"mul broadcast", {{2, 3, 4}, {3, 1}}, [](const auto& v) { return mul(v[0], v[1]); }},
      {"a tensor used three times", {{3, 4}}, [](const auto& v) { return add(mul(v[0], v[0]), v[0]); }, 1e-2, 1e-3},
      {"dropout",
       {{3, 5}},
       [](const auto& v) {
         static const std::int32_t step = 3;
         return dropout(v[0], v[0].tape->input(LabelView(&step, Shape())), {.seed_low = 4, .rate = 0.4F});
       }},
      {"sum_to",
       {{2, 3, 4}},
       [](const auto& v) {
         return sum_to(v[0], {3, 1});
       }},
      {"broadcast_to",
       {{3, 1}},
       [](const auto& v) {
         return broadcast_to(v[0], {2, 3, 4});
       }},
      {"reshape",
       {{3, 4}},
       [](const auto& v) {
         return mul(reshape(v[0], {2, -1}), reshape(v[0], {2, 6}));
       },
       1e-2,
       1e-3},
      {"flatten", {{2, 3, 2}, {6, 2}}, [](const auto& v) { return linear(flatten(v[0]), v[1]); }},
      {"permute",
       {{2, 3, 4}},
       [](const auto& v) {
         return permute(v[0], {2, 0, 1});
       }},
  };
}

}  // namespace

TEST_CASE("Every differentiable operation's gradient is its difference quotient") {
  Context context;
  for (const Case& test : cases()) check(context, test);
}

TEST_CASE("The gradient of cross-entropy is its difference quotient") {
  Context context;
  const std::vector<std::int32_t> labels = {2, 0, 3, 3, 1};
  check(context,
        {"cross_entropy",
         {{5, 4}},
         [&](const std::vector<Var>& v) { return cross_entropy(v[0], v[0].tape->input(LabelView(labels.data(), Shape({5})))); },
         1e-2,
         1e-3});
}

TEST_CASE("A gradient through a network of all layers is its difference quotient") {
  Context context;
  const std::vector<std::int32_t> labels = {2, 0};
  const ops::Pool2dAttrs halve{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  check(context, {"network",
                  {{2, 6, 6, 1}, {3, 3, 1, 2}, {2}, {8, 3}, {3}},
                  [&](const std::vector<Var>& v) {
                    const Var h = max_pool2d(relu(conv2d(v[0], v[1], v[2])), halve);
                    return cross_entropy(linear(flatten(h), v[3], v[4]),
                                         v[0].tape->input(LabelView(labels.data(), Shape({2}))));
                  },
                  1e-3,
                  1e-2});
}
