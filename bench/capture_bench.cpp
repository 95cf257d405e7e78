// SPDX-License-Identifier: Apache-2.0
// Time to capture a chain of n elementwise nodes, and one with its gradients, for growing n: nanoseconds a node should not
// grow.
#include "../autograd/functions.hpp"
#include "../autograd/plan.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace vitro;

void capture_chain(benchmark::State& state, bool train, CaptureOptions options) {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor p({16}), v({16}), x({16}), hyper({3});
  const Var parameter = tape.parameter(p);
  Var y = tape.input(x.view());
  for (std::int64_t i = 0; i < state.range(0) / 2; ++i) y = relu(add(y, parameter));
  std::vector<Var> outputs = {y};
  if (train) {
    tape.backward(sum_to(y, Shape()));
    sgd_update(parameter, tape.state(v), tape.gradient(parameter), tape.input(hyper.view()));
  }
  for (auto _ : state) benchmark::DoNotOptimize(Plan::capture(tape, outputs, options));
  const auto nodes = static_cast<double>(tape.nodes().size());
  state.counters["per_node"] =
      benchmark::Counter(nodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void inference(benchmark::State& state) { capture_chain(state, false, {}); }
void inference_by_single_nodes(benchmark::State& state) { capture_chain(state, false, {.fuse = false, .reuse_memory = false}); }
void training(benchmark::State& state) { capture_chain(state, true, {}); }

BENCHMARK(inference)->RangeMultiplier(4)->Range(400, 102400)->Unit(benchmark::kMillisecond);
BENCHMARK(inference_by_single_nodes)->RangeMultiplier(4)->Range(400, 102400)->Unit(benchmark::kMillisecond);
BENCHMARK(training)->RangeMultiplier(4)->Range(400, 102400)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
