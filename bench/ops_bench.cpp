// SPDX-License-Identifier: Apache-2.0
// Speed of the operations of LeNet-5 at batch 64, forward and gradients, for each instruction set of this machine: time,
// GFLOP/s for the matrix products and GB/s (arrays read and written once) for the others. Names are operation/size/isa. One
// thread, unless VITRO_BENCH_THREADS says otherwise.
#include "../core/tensor.hpp"
#include "../ops/bias.hpp"
#include "../ops/conv2d.hpp"
#include "../ops/cross_entropy.hpp"
#include "../ops/linear.hpp"
#include "../ops/pool2d.hpp"
#include "../ops/relu.hpp"
#include "../ops/sgd.hpp"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace vitro;

constexpr Index kBatch = 64;

Tensor numbers(const Shape& shape) {
  Tensor tensor(shape);
  for (Index i = 0; i < tensor.elements(); ++i) tensor.data()[i] = static_cast<float>(i * 7919 % 2048) / 1024.0f - 1.0f;
  return tensor;
}

// Runs `call` on memory that stays where it is; `flops` or `bytes` is what one call does (0 for the other).
void add_benchmark(const std::string& name, const std::shared_ptr<Context>& context, double flops, double bytes,
                   const std::function<void(Context&)>& call) {
  benchmark::RegisterBenchmark((name + "/" + context->kernels().name).c_str(),
                               [=](benchmark::State& state) {
                                 for (auto _ : state) call(*context);
                                 const auto rate = [&](double amount) {
                                   return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
                                 };
                                 if (flops > 0) state.counters["FLOP/s"] = rate(flops);
                                 if (bytes > 0) state.counters["B/s"] = rate(bytes);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_conv2d(const std::string& size, const std::shared_ptr<Context>& context, const ops::Conv2dAttrs& attrs,
                const Shape& x_shape, const Shape& w_shape) {
  const ops::Conv2dProblem p = ops::conv2d_problem(attrs, x_shape, w_shape).value();
  const auto x = std::make_shared<Tensor>(numbers(x_shape)), w = std::make_shared<Tensor>(numbers(w_shape));
  const auto y = std::make_shared<Tensor>(numbers({p.n, p.oh, p.ow, p.oc})), bias = std::make_shared<Tensor>(Shape{p.oc});
  const double flops = 2.0 * static_cast<double>(y->elements() * p.kh * p.kw * p.group_in());
  context->reserve_scratch(ops::conv2d_scratch(*context, p));
  context->reserve_scratch(ops::conv2d_grad_input_scratch(*context, p));
  context->reserve_scratch(ops::conv2d_grad_weight_scratch(*context, p));
  add_benchmark("conv2d/" + size, context, flops, 0, [=](Context& c) {
    ops::run_conv2d(c, p, x->data(), w->data(), {.bias = bias->data(), .relu = true}, y->data());
  });
  add_benchmark("conv2d_grad_input/" + size, context, flops, 0,
                [=](Context& c) { ops::run_conv2d_grad_input(c, p, y->data(), w->data(), x->data()); });
  add_benchmark("conv2d_grad_weight/" + size, context, flops, 0,
                [=](Context& c) { ops::run_conv2d_grad_weight(c, p, x->data(), y->data(), w->data()); });
}

void add_linear(const std::shared_ptr<Context>& context, Index rows, Index in, Index out) {
  const ops::LinearProblem p = ops::linear_problem({}, {rows, in}, {in, out}).value();
  const auto x = std::make_shared<Tensor>(numbers({rows, in})), w = std::make_shared<Tensor>(numbers({in, out}));
  const auto y = std::make_shared<Tensor>(numbers({rows, out}));
  const std::string size = std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in);
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  context->reserve_scratch(ops::linear_scratch(*context, p));
  context->reserve_scratch(ops::linear_grad_input_scratch(*context, p));
  context->reserve_scratch(ops::linear_grad_weight_scratch(*context, p));
  add_benchmark("linear/" + size, context, flops, 0,
                [=](Context& c) { ops::run_linear(c, p, x->data(), w->data(), {}, y->data()); });
  if (rows == 1) return;
  add_benchmark("linear_grad_input/" + size, context, flops, 0,
                [=](Context& c) { ops::run_linear_grad_input(c, p, y->data(), w->data(), x->data()); });
  add_benchmark("linear_grad_weight/" + size, context, flops, 0,
                [=](Context& c) { ops::run_linear_grad_weight(c, p, x->data(), y->data(), w->data()); });
}

// Memory for packed weights, and the weights in it.
template <class Pack>
std::shared_ptr<Tensor> packed(std::size_t bytes, const Pack& pack) {
  auto memory = std::make_shared<Tensor>(Shape{static_cast<Index>(bytes / sizeof(float))});
  pack(memory->data());
  return memory;
}

// LeNet-5 for one image with weights packed before, without a tape: what an embedded program pays for its kernels.
void add_lenet_inference(const std::shared_ptr<Context>& context) {
  std::vector<std::function<void(Context&)>> layers;
  double flops = 0;
  auto x = std::make_shared<Tensor>(numbers({1, 28, 28, 1}));
  const auto add_conv = [&](const Shape& w_shape) {
    const ops::Conv2dProblem p = ops::conv2d_problem({}, x->shape(), w_shape).value();
    const Tensor w = numbers(w_shape);
    const auto bias = std::make_shared<Tensor>(numbers({p.oc})), y = std::make_shared<Tensor>(Shape{p.n, p.oh, p.ow, p.oc});
    context->reserve_scratch(ops::conv2d_scratch(*context, p));
    const auto filters =
        packed(ops::conv2d_packed_bytes(*context, p), [&](float* to) { ops::pack_conv2d(*context, p, w.data(), to); });
    layers.push_back([=](Context& c) {
      ops::run_conv2d_packed(c, p, x->data(), filters->data(), {.bias = bias->data(), .relu = true}, y->data());
    });
    flops += 2.0 * static_cast<double>(y->elements() * p.kh * p.kw * p.c);
    x = y;
  };
  const auto add_halving = [&] {
    const ops::Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    const ops::Pool2dProblem p = ops::max_pool2d_problem(attrs, x->shape()).value();
    const auto y = std::make_shared<Tensor>(Shape{p.n, p.oh, p.ow, p.c});
    context->reserve_scratch(ops::pool2d_scratch(*context, p));
    std::uint8_t* const no_argmax = nullptr;
    layers.push_back([=](Context& c) { ops::run_max_pool2d(c, p, x->data(), y->data(), no_argmax); });
    x = y;
  };
  const auto add_dense = [&](Index out, bool relu) {
    const Index in = x->elements();
    const ops::LinearProblem p = ops::linear_problem({}, {1, in}, {in, out}).value();
    const Tensor w = numbers({in, out});
    const auto bias = std::make_shared<Tensor>(numbers({out})), y = std::make_shared<Tensor>(Shape{1, out});
    context->reserve_scratch(ops::linear_scratch(*context, p));
    const auto weights =
        packed(ops::linear_packed_bytes(*context, p), [&](float* to) { ops::pack_linear(*context, p, w.data(), to); });
    layers.push_back([=](Context& c) {
      ops::run_linear_packed(c, p, x->data(), weights->data(), {.bias = bias->data(), .relu = relu}, y->data());
    });
    flops += 2.0 * static_cast<double>(in * out);
    x = y;
  };
  add_conv({5, 5, 1, 6}), add_halving(), add_conv({5, 5, 6, 16}), add_halving();
  add_dense(120, true), add_dense(84, true), add_dense(10, false);
  add_benchmark("lenet_inference/1", context, flops, 0, [=](Context& c) {
    for (const auto& layer : layers) layer(c);
  });
}

void add_pool(const std::string& size, const std::shared_ptr<Context>& context, const Shape& shape,
              const ops::Pool2dAttrs& attrs) {
  const ops::Pool2dProblem p = ops::max_pool2d_problem(attrs, shape).value();
  const auto x = std::make_shared<Tensor>(numbers(shape)), y = std::make_shared<Tensor>(Shape{p.n, p.oh, p.ow, p.c});
  const auto argmax = std::make_shared<BasicTensor<std::uint8_t>>(y->shape());
  const double bytes = 4.0 * static_cast<double>(x->elements() + y->elements());
  context->reserve_scratch(ops::pool2d_scratch(*context, p));
  add_benchmark("max_pool2d/" + size, context, 0, bytes,
                [=](Context& c) { ops::run_max_pool2d(c, p, x->data(), y->data(), argmax->data()); });
  add_benchmark("max_pool2d_grad/" + size, context, 0, bytes,
                [=](Context& c) { ops::run_max_pool2d_grad(c, p, argmax->data(), y->data(), x->data()); });
  add_benchmark("average_pool2d/" + size, context, 0, bytes,
                [=](Context& c) { ops::run_average_pool2d(c, p, x->data(), y->data()); });
  add_benchmark("average_pool2d_grad/" + size, context, 0, bytes,
                [=](Context& c) { ops::run_average_pool2d_grad(c, p, y->data(), x->data()); });
}

void add_elementwise(const std::string& size, const std::shared_ptr<Context>& context, Index rows, Index channels) {
  const auto x = std::make_shared<Tensor>(numbers({rows, channels})), y = std::make_shared<Tensor>(Shape{rows, channels});
  const auto b = std::make_shared<Tensor>(numbers({channels}));
  const ops::BiasProblem p{rows, channels};
  const double bytes = 4.0 * static_cast<double>(x->elements());
  context->reserve_scratch(ops::bias_scratch(*context, p));
  context->reserve_scratch(ops::bias_grad_scratch(*context, p));
  add_benchmark("bias/" + size, context, 0, 2 * bytes,
                [=](Context& c) { ops::run_bias(c, p, x->data(), b->data(), y->data()); });
  add_benchmark("bias_grad/" + size, context, 0, bytes, [=](Context& c) { ops::run_bias_grad(c, p, x->data(), b->data()); });
  add_benchmark("relu/" + size, context, 0, 2 * bytes,
                [=](Context& c) { ops::run_relu(c, {x->elements()}, x->data(), y->data()); });
  add_benchmark("relu_grad/" + size, context, 0, 3 * bytes,
                [=](Context& c) { ops::run_relu_grad(c, {x->elements()}, y->data(), x->data(), y->data()); });
}

void add_loss_and_update(const std::shared_ptr<Context>& context) {
  const auto x = std::make_shared<Tensor>(numbers({kBatch, 10})), y = std::make_shared<Tensor>(Shape{kBatch, 10});
  const auto loss = std::make_shared<Tensor>(Shape{});
  const auto labels = std::make_shared<LabelTensor>(Shape{kBatch});
  const ops::CrossEntropyProblem p{kBatch, 10};
  context->reserve_scratch(ops::cross_entropy_scratch(*context, p));
  add_benchmark("cross_entropy/64x10", context, 0, 0,
                [=](Context& c) { ops::run_cross_entropy(c, p, x->data(), labels->data(), loss->data(), y->data()); });
  constexpr Index kParameters = 44426;  // of the whole network
  const auto hyper = std::make_shared<Tensor>(numbers({3})), g = std::make_shared<Tensor>(numbers({kParameters}));
  const auto v = std::make_shared<Tensor>(Shape{kParameters}), weights = std::make_shared<Tensor>(Shape{kParameters});
  add_benchmark("sgd/44426", context, 0, 20.0 * kParameters,
                [=](Context& c) { ops::run_sgd(c, {kParameters}, hyper->data(), g->data(), v->data(), weights->data()); });
}

}  // namespace

int main(int argc, char** argv) {
  const char* const text = std::getenv("VITRO_BENCH_THREADS");
  const int threads = text == nullptr ? 1 : std::atoi(text);
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::blocked, Isa::scalar}) {
    Result<std::unique_ptr<Context>> made = Context::try_make({.isa = isa, .threads = threads});
    if (!made) continue;
    const std::shared_ptr<Context> context = std::move(made).value();
    add_conv2d("28x28x1->6k5", context, {}, {kBatch, 28, 28, 1}, {5, 5, 1, 6});
    add_conv2d("12x12x6->16k5", context, {}, {kBatch, 12, 12, 6}, {5, 5, 6, 16});
    add_conv2d("28x28x1->6k5n1", context, {}, {1, 28, 28, 1}, {5, 5, 1, 6});
    add_conv2d("12x12x6->16k5n1", context, {}, {1, 12, 12, 6}, {5, 5, 6, 16});
    add_lenet_inference(context);
    for (const Index c : {4, 16, 32, 64}) {
      const ops::Conv2dAttrs same{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
      add_conv2d("28x28x" + std::to_string(c) + "->" + std::to_string(c) + "k3p1", context, same, {4, 28, 28, c}, {3, 3, c, c});
    }
    for (const Index rows : {kBatch, Index{1}}) {
      add_linear(context, rows, 256, 120);
      add_linear(context, rows, 120, 84);
      add_linear(context, rows, 84, 10);
    }
    const ops::Pool2dAttrs halving{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    add_pool("24x24x6", context, {kBatch, 24, 24, 6}, halving);
    add_pool("8x8x16", context, {kBatch, 8, 8, 16}, halving);
    // ResNet's two: after its first convolution, and over the whole of its last images.
    const ops::Pool2dAttrs padded{.kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride_h = 2,
                                  .stride_w = 2,
                                  .pad_top = 1,
                                  .pad_left = 1,
                                  .pad_bottom = 1,
                                  .pad_right = 1};
    add_pool("112x112x64k3s2p1", context, {1, 112, 112, 64}, padded);
    add_pool("7x7x512k7", context, {16, 7, 7, 512}, {.kernel_h = 7, .kernel_w = 7});
    add_elementwise("24x24x6", context, kBatch * 24 * 24, 6);
    add_elementwise("8x8x16", context, kBatch * 8 * 8, 16);
    add_loss_and_update(context);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
