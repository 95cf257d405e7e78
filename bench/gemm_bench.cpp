// SPDX-License-Identifier: Apache-2.0
// Speed of the matrix products of every table this machine can run: GFLOP/s over processor time, and the fraction of the FMA
// peak that is measured before and after each row. Names are table/form/MxNxK; in the form, T means that the operand is
// transposed.
#include "fma_peak.hpp"
#include "machine.hpp"

#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using vitro::simd::Gemm;
using vitro::simd::GemmRows;
using vitro::simd::Index;
using vitro::simd::Isa;
using vitro::simd::KernelTable;

struct Shape {
  Index m, n, k;
};

// Squares; LeNet-5 at batch 64 (fully connected, then convolutions as products) and one image; a classifier; ResNet-18's 3x3
// convolutions at 56, 28, 14 and 7 pixels.
constexpr Shape kShapes[] = {
    {64, 64, 64},   {128, 128, 128}, {256, 256, 256},  {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {64, 120, 256},
    {64, 84, 120},  {64, 10, 84},    {36864, 6, 25},   {4096, 16, 150},  {1, 120, 256},      {1, 84, 120},       {1, 10, 84},
    {1, 1000, 512}, {3136, 64, 576}, {784, 128, 1152}, {196, 256, 2304}, {49, 512, 4608},
};

struct FreeDeleter {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeDeleter>;

// Numbers in [-0.5, 0.5): without denormals, which would be another benchmark.
Floats make_floats(Index count) {
  const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(float) + 64) / 64 * 64;
  Floats floats(static_cast<float*>(std::aligned_alloc(64, bytes)));
  for (Index i = 0; i < count; ++i) floats[static_cast<std::size_t>(i)] = static_cast<float>(i * 7919 % 1000) / 1000.0f - 0.5f;
  return floats;
}

template <class Run>
void measure(benchmark::State& state, Isa isa, const Shape& shape, const Run& run) {
  run();
  double peak = vitro_bench::fma_peak(isa);
  for (auto _ : state) {
    run();
    benchmark::ClobberMemory();
  }
  peak = 0.5 * (peak + vitro_bench::fma_peak(isa));
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  state.counters["peak"] = benchmark::Counter(peak);
  if (peak > 0) state.counters["of_peak"] = benchmark::Counter(total * 1e-9 / peak, benchmark::Counter::kIsRate);
}

void gemm(benchmark::State& state, const KernelTable& table, const Shape& shape, bool a_transposed, bool b_transposed) {
  const auto [m, n, k] = shape;
  const Floats a = make_floats(m * k), b = make_floats(k * n), c = make_floats(m * n);
  const Floats scratch = make_floats(table.gemm_scratch(m, n, k));
  Gemm args;
  args.m = m, args.n = n, args.k = k;
  args.a = a.get(), args.a_row_stride = a_transposed ? 1 : k, args.a_column_stride = a_transposed ? m : 1;
  args.b = b.get(), args.b_row_stride = b_transposed ? 1 : n, args.b_column_stride = b_transposed ? k : 1;
  args.c = c.get(), args.c_stride = n, args.scratch = scratch.get();
  measure(state, table.isa, shape, [&] { table.gemm(args); });
}

// B packed before; each row of A in `segments` parts, as a convolution's rows are.
void gemm_rows(benchmark::State& state, const KernelTable& table, const Shape& shape, Index segments) {
  const auto [m, n, k] = shape;
  const Floats a = make_floats(m * k), b = make_floats(k * n), c = make_floats(m * n);
  const Floats packed = make_floats(table.packed_b_size(k, n));
  table.pack_b({k, n, b.get(), n, 1, packed.get(), 0, k});
  std::vector<const float*> a_rows;
  std::vector<float*> c_rows;
  for (Index i = 0; i < m; ++i) {
    c_rows.push_back(c.get() + i * n);
    for (Index s = 0; s < segments; ++s) a_rows.push_back(a.get() + i * k + s * (k / segments));
  }
  GemmRows args;
  args.rows = m, args.n = n;
  args.a = a_rows.data(), args.segments = segments, args.segment_length = k / segments;
  args.packed_b = packed.get(), args.packed_k = k;
  args.c = c_rows.data();
  measure(state, table.isa, shape, [&] { table.gemm_rows(args); });
}

std::string row_name(const KernelTable& table, const char* form, const Shape& shape) {
  return std::string(table.name) + "/" + form + "/" + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" +
         std::to_string(shape.k);
}

void register_table(const KernelTable& table) {
  // An emulated fma takes minutes on the large shapes and nobody runs it for speed.
  const bool slow = table.isa == Isa::scalar || !table.required.fma;
  for (const Shape& shape : kShapes) {
    if (slow && shape.m * shape.n * shape.k > Index{1} << 24) continue;
    const KernelTable* const kernels = &table;
    benchmark::RegisterBenchmark(row_name(table, "NN", shape).c_str(),
                                 [=](benchmark::State& state) { gemm(state, *kernels, shape, false, false); });
    if (!slow && shape.m >= 49) {
      benchmark::RegisterBenchmark(row_name(table, "TN", shape).c_str(),
                                   [=](benchmark::State& state) { gemm(state, *kernels, shape, true, false); });
      benchmark::RegisterBenchmark(row_name(table, "NT", shape).c_str(),
                                   [=](benchmark::State& state) { gemm(state, *kernels, shape, false, true); });
    }
    for (const Index segments : {1, 5, 9}) {
      if (slow || shape.k % segments != 0) continue;
      const std::string form = "rows" + std::to_string(segments);
      benchmark::RegisterBenchmark(row_name(table, form.c_str(), shape).c_str(),
                                   [=](benchmark::State& state) { gemm_rows(state, *kernels, shape, segments); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  benchmark::AddCustomContext("processor", vitro_bench::processor_name());
  benchmark::AddCustomContext("compiler", vitro_bench::compiler_version());
  for (const KernelTable* table : vitro::simd::kernel_tables()) {
    if (!here.contains(table->required)) continue;
    char peak[32];
    std::snprintf(peak, sizeof peak, "%.1f GFLOP/s", vitro_bench::fma_peak(table->isa));
    benchmark::AddCustomContext(std::string("fma_peak_") + table->name, peak);
    register_table(*table);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
