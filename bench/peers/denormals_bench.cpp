// SPDX-License-Identifier: Apache-2.0
// How much slower a layer gets when its weights, or the gradients that reach it, are denormal (1e-40), here and in other
// libraries, and so does the update of a unit that no gradient reaches any more. Ordinary and denormal runs alternate; medians
// of processor time.
#include "../fma_peak.hpp"
#include "../machine.hpp"
#include "load.hpp"
#include "rows.hpp"
#include "vitro_peer.hpp"

#include <algorithm>
#include <cstdio>

namespace vitro_bench {
namespace {

constexpr int kRuns = 11;

// Medians of both, in seconds. Each timed run comes after one that is not, which finds its operands in the caches again.
template <class First, class Second>
std::pair<double, double> alternate(const First& first, const Second& second) {
  std::vector<double> times[2];
  for (int run = 0; run < kRuns; ++run) {
    first();
    double start = processor_seconds();
    first();
    times[0].push_back(processor_seconds() - start);
    second();
    start = processor_seconds();
    second();
    times[1].push_back(processor_seconds() - start);
  }
  for (std::vector<double>& list : times) std::sort(list.begin(), list.end());
  return {times[0][kRuns / 2], times[1][kRuns / 2]};
}

void print(const char* what, const char* who, std::pair<double, double> seconds) {
  std::printf("  %-44s %-12s %10.1f us %12.1f us %8.0f times\n", what, who, seconds.first * 1e6, seconds.second * 1e6,
              seconds.second / seconds.first);
  std::fflush(stdout);
}

void layers(const std::vector<Peer*>& peers) {
  constexpr ConvShape kConv{.batch = 64, .size = 12, .in = 6, .kernel = 5, .out = 16};
  constexpr std::pair<const char*, Operation> kOperations[] = {
      {"linear 256 to 120, batch 64", Operation::gemm_packed},
      {"conv2d 12x12x6 to 16, 5x5, batch 64", Operation::conv},
      {"its gradient of the input (weights)", Operation::conv_grad_input},
      {"its gradient of the weights (gradients)", Operation::conv_grad_weight}};
  for (const auto& [name, operation] : kOperations) {
    Row ordinary;
    ordinary.operation = operation;
    ordinary.gemm = {64, 120, 256};
    ordinary.conv = kConv;
    Row denormal = ordinary;
    denormal.b_size = 1e-40f;
    const RowData ordinary_data(ordinary), denormal_data(denormal);
    for (Peer* const peer : peers) {
      peer->set_threads(1);
      const auto first = peer->make(ordinary_data.problem()), second = peer->make(denormal_data.problem());
      if (first == nullptr) continue;
      first->run();
      print(name, peer->name(), alternate([&] { first->run(); }, [&] { second->run(); }));
    }
  }
}

// With momentum 0.9 and no weight decay a velocity without gradients falls to 4 times the smallest denormal, whose tenth rounds
// to nothing, and stays there.
void update() {
  constexpr Index kCount = 44426;  // LeNet-5's parameters
  const vitro::simd::KernelTable& kernels =
      *vitro::simd::find_kernels(vitro_isa(), vitro::simd::features(vitro::simd::read_cpuid()));
  const Floats gradient(kCount), parameter(kCount), alive(kCount), dead(kCount);
  const auto step = [&](const Floats& velocity, float decay) {
    kernels.sgd_update(kCount, 0.01f, 0.9f, decay, gradient.data(), velocity.data(), parameter.data());
  };
  for (const Floats* const floats : {&parameter, &alive, &dead}) std::fill_n(floats->data(), kCount, 0.1f);
  for (int i = 0; i < 1200; ++i) step(dead, 0);
  print("update of 44426 parameters, velocity stuck", "vitro", alternate([&] { step(alive, 5e-4f); }, [&] { step(dead, 0); }));
  std::printf("  (the velocity after 1200 updates without gradient: %g)\n", static_cast<double>(dead.data()[0]));
}

void run() {
  pin(1);
  LoadedPeers loaded = load_peers(".", {"onednn", "onnxruntime"});
  loaded.peers.insert(loaded.peers.begin(), &vitro_peer());
  std::printf("%s, %s, vitro %s, one thread\n  %-44s %-12s %13s %15s\n", processor_name(), utc_now().c_str(),
              vitro_peer().version().c_str(), "", "", "of 0.5", "of 1e-40");
  layers(loaded.peers);
  update();
}

}  // namespace
}  // namespace vitro_bench

int main() { vitro_bench::run(); }
