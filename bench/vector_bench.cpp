// SPDX-License-Identifier: Apache-2.0
// Speed of every kernel that is not a matrix product, for each table of this machine, beside the bandwidth measured in the same
// process: GB/s of the arrays that the kernel reads and writes, and the fraction of that bandwidth.
//
// Two sizes: 64 KB arrays, which stay in cache, and 64 MB arrays, which come from memory and are what the fraction is about.
// Kernels that write are compared with memcpy, kernels that only read with a reading loop.
#include "../simd/kernels.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace {

using vitro::simd::Index;
using vitro::simd::KernelTable;

constexpr Index kSmall = Index{1} << 14, kLarge = Index{1} << 24;  // floats

struct Arrays {
  std::vector<float> a, b, c;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> labels;

  Arrays()
      : a(static_cast<std::size_t>(kLarge)),
        b(static_cast<std::size_t>(kLarge)),
        c(static_cast<std::size_t>(kLarge)),
        bytes(static_cast<std::size_t>(kLarge)),
        labels(static_cast<std::size_t>(kLarge / 6)) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i * 2654435761u % 4096) / 2048.0f - 0.9f;
      b[i] = a[i] * 0.5f + 1.5f;
      bytes[i] = static_cast<std::uint8_t>(i * 7);
    }
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 6);
  }
};

Arrays& arrays() {
  static Arrays all;
  return all;
}

// The best of several runs, in bytes per second of processor time (which is what Google Benchmark's rates are over).
template <class F>
double best_rate(double bytes, F run) {
  double best = 0;
  for (int i = 0; i < 7; ++i) {
    const std::clock_t start = std::clock();
    run();
    best = std::max(best, bytes * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start));
  }
  return best;
}

// Of 64 MB arrays: memcpy (read and write counted), and a sum of integers that the compiler may order as it likes.
struct Bandwidth {
  double copy = best_rate(8.0 * kLarge, [] {
    std::memcpy(arrays().c.data(), arrays().a.data(), sizeof(float) * static_cast<std::size_t>(kLarge));
    benchmark::ClobberMemory();
  });
  double read = best_rate(4.0 * kLarge, [] {
    const std::uint64_t* p = reinterpret_cast<const std::uint64_t*>(arrays().a.data());
    std::uint64_t sum = 0;
    for (Index i = 0; i < kLarge / 2; ++i) sum += p[i];
    benchmark::DoNotOptimize(sum);
  });
};

const Bandwidth& bandwidth() {
  static const Bandwidth measured;
  return measured;
}

std::string slash(const std::string& name, Index size) {
  std::string joined = name;
  joined += '/';
  joined += std::to_string(size);
  return joined;
}

// `run(n)` works on arrays of about n floats and returns the bytes it read and wrote.
void add_benchmark(const std::string& name, bool writes, std::function<double(Index)> run) {
  for (const Index n : {kSmall, kLarge}) {
    benchmark::RegisterBenchmark((name + (n == kSmall ? "/cache" : "/memory")).c_str(), [=](benchmark::State& state) {
      double bytes = 0;
      for (auto _ : state) {
        bytes += run(n);
        benchmark::ClobberMemory();
      }
      state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsRate);
      const double peak = writes ? bandwidth().copy : bandwidth().read;
      state.counters["of_bandwidth"] = benchmark::Counter(bytes / peak, benchmark::Counter::kIsRate);
    });
  }
}

void add_elementwise(const KernelTable& k) {
  const std::string table = std::string(k.name) + "/";
  float* a = arrays().a.data();
  float* b = arrays().b.data();
  float* c = arrays().c.data();
  const std::uint8_t* bytes = arrays().bytes.data();
  const auto two = [](Index n) { return 8.0 * static_cast<double>(n); };
  const auto three = [](Index n) { return 12.0 * static_cast<double>(n); };
  add_benchmark(table + "add", true, [=, &k](Index n) { return k.add(n, a, b, c), three(n); });
  add_benchmark(table + "mul_scalar", true, [=, &k](Index n) { return k.mul_scalar(n, a, 0.5f, c), two(n); });
  add_benchmark(table + "relu", true, [=, &k](Index n) { return k.relu(n, a, c), two(n); });
  add_benchmark(table + "relu_grad", true, [=, &k](Index n) { return k.relu_grad(n, a, b, c), three(n); });
  add_benchmark(table + "exp", true, [=, &k](Index n) { return k.exp(n, a, c), two(n); });
  add_benchmark(table + "log", true, [=, &k](Index n) { return k.log(n, b, c), two(n); });
  add_benchmark(table + "bytes_to_unit", true,
                [=, &k](Index n) { return k.bytes_to_unit(n, bytes, c), 5.0 * static_cast<double>(n); });
  add_benchmark(table + "sgd_update", true, [=, &k](Index n) {
    k.sgd_update(n, 1e-6f, 0.9f, 1e-4f, a, c, b);
    return 20.0 * static_cast<double>(n);
  });
}

void add_reductions(const KernelTable& k) {
  const std::string table = std::string(k.name) + "/";
  const float* a = arrays().a.data();
  float* c = arrays().c.data();
  const auto one = [](Index n) { return 4.0 * static_cast<double>(n); };
  add_benchmark(table + "sum", false, [=, &k](Index n) { return benchmark::DoNotOptimize(k.sum(n, a)), one(n); });
  add_benchmark(table + "sum_squares", false,
                [=, &k](Index n) { return benchmark::DoNotOptimize(k.sum_squares(n, a)), one(n); });
  add_benchmark(table + "max", false, [=, &k](Index n) { return benchmark::DoNotOptimize(k.max(n, a)), one(n); });
  for (const Index columns : {6, 10, 16, 84, 120, 1000}) {
    add_benchmark(slash(table + "sum_rows", columns), false, [=, &k](Index n) {
      k.sum_rows(n / columns, columns, a, columns, c);
      return one(n / columns * columns);
    });
  }
}

void add_softmax(const KernelTable& k) {
  const std::string table = std::string(k.name) + "/";
  const float* a = arrays().a.data();
  const float* b = arrays().b.data();
  const std::int32_t* labels = arrays().labels.data();
  float* c = arrays().c.data();
  for (const Index columns : {10, 1000}) {
    const auto two = [=](Index n) { return 8.0 * static_cast<double>(n / columns * columns); };
    add_benchmark(slash(table + "softmax", columns), true,
                  [=, &k](Index n) { return k.softmax(n / columns, columns, a, c), two(n); });
    add_benchmark(slash(table + "log_softmax", columns), true,
                  [=, &k](Index n) { return k.log_softmax(n / columns, columns, a, c), two(n); });
    std::vector<float> loss(static_cast<std::size_t>(kLarge / columns));
    add_benchmark(slash(table + "cross_entropy", columns), true, [=, &k](Index n) mutable {
      k.cross_entropy(n / columns, columns, a, labels, loss.data(), c);
      return two(n);
    });
    add_benchmark(slash(table + "cross_entropy_grad", columns), true,
                  [=, &k](Index n) { return k.cross_entropy_grad(n / columns, columns, a, labels, 0.5f, c), two(n); });
    add_benchmark(slash(table + "softmax_grad", columns), true,
                  [=, &k](Index n) { return k.softmax_grad(n / columns, columns, a, b, c), 1.5 * two(n); });
  }
}

// 2x2 windows at stride 2 over images 24 pixels wide.
void add_pooling(const KernelTable& k) {
  const std::string table = std::string(k.name) + "/";
  float* a = arrays().a.data();
  float* c = arrays().c.data();
  std::uint8_t* argmax = arrays().bytes.data();
  for (const Index channels : {6, 16, 64}) {
    const auto pool = [=](Index n, auto call) {
      constexpr Index kWidth = 24;
      const Index row = kWidth * channels;
      const vitro::simd::PoolTap taps[4] = {{0, 0}, {channels, 1}, {row, 2}, {row + channels, 3}};
      const vitro::simd::PoolWindows windows{.rows = n / (2 * row),
                                             .columns = kWidth / 2,
                                             .channels = channels,
                                             .x_row_step = 2 * row,
                                             .x_column_step = 2 * channels,
                                             .y_row_step = row / 2,
                                             .tap_rows = 2,
                                             .tap_columns = 2,
                                             .tap = taps};
      call(windows);
      return static_cast<double>(windows.rows * windows.columns * channels);
    };
    add_benchmark(slash(table + "max_pool", channels), true, [=, &k](Index n) {
      return 21.0 * pool(n, [=, &k](const auto& windows) { k.max_pool(windows, a, c, argmax); });
    });
    add_benchmark(slash(table + "average_pool", channels), true, [=, &k](Index n) {
      return 20.0 * pool(n, [=, &k](const auto& windows) { k.average_pool(windows, a, 4.0f, c); });
    });
    add_benchmark(slash(table + "average_pool_grad", channels), true, [=, &k](Index n) {
      return 20.0 * pool(n, [=, &k](const auto& windows) { k.average_pool_grad(windows, false, 4.0f, a, c); });
    });
    add_benchmark(slash(table + "max_pool_grad", channels), true, [=, &k](Index n) {
      return 21.0 * pool(n, [=, &k](const auto& windows) { k.max_pool_grad(windows, false, argmax, a, c); });
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  for (const KernelTable* k : vitro::simd::kernel_tables()) {
    // The blocked tables hold the scalar ones' kernels.
    if (!here.contains(k->required) || k->isa == vitro::simd::Isa::blocked) continue;
    add_elementwise(*k);
    add_reductions(*k);
    add_softmax(*k);
    add_pooling(*k);
  }
  benchmark::AddCustomContext("compiler", __VERSION__);
  benchmark::AddCustomContext("memcpy_GB/s", std::to_string(bandwidth().copy / 1e9));
  benchmark::AddCustomContext("read_GB/s", std::to_string(bandwidth().read / 1e9));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
