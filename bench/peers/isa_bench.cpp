// SPDX-License-Identifier: Apache-2.0
// Is the widest instruction set the best one here? Every row of the comparison on AVX2 and on AVX-512, in alternation, and what
// 512-bit work does to the clock of the code that follows it. Usage: isa_bench [seconds for each side of a row], 0.3 by
// default.
#include "../fma_peak.hpp"
#include "../machine.hpp"
#include "rows.hpp"
#include "sampler.hpp"
#include "vitro_peer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace vitro_bench {
namespace {

using vitro::simd::Isa;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// fma_loop of `isa` in slices of some 10 microseconds for `seconds` of wall time; the median of their rates, in loops a second
// of processor time.
double rate_over(Isa isa, double seconds) {
  constexpr long kCount = 2000;
  std::vector<double> rates;
  for (const double end = wall_seconds() + seconds; wall_seconds() < end;) {
    const double start = processor_seconds();
    fma_loop(isa, kCount);
    rates.push_back(kCount / (processor_seconds() - start));
  }
  return median(rates);
}

// A processor that slows its clock for 512-bit work keeps it low for some time (Intel's frequency licences: about 0.7 ms):
// 256-bit code would show it.
void print_clock() {
  std::vector<double> before, during, soon, later;
  for (int round = 0; round < 15; ++round) {
    before.push_back(rate_over(Isa::avx2, 0.02));
    during.push_back(rate_over(Isa::avx512, 0.02));
    soon.push_back(rate_over(Isa::avx2, 0.0005));
    later.push_back(rate_over(Isa::avx2, 0.02));
  }
  const double base = median(before);
  std::printf(
      "fma instructions a second, over those of 256 bits before: 512 bits %.2f; 256 bits in the 0.5 ms after it %.2f, later "
      "%.2f\n",
      median(during) / base, median(soon) / base, median(later) / base);
}

// p50 on AVX2 over p50 on AVX-512.
double ratio(const Row& row, double seconds, Peer& avx2, Peer& avx512) {
  const RowData data(row);
  std::vector<Contestant> contestants;
  for (Peer* const peer : {&avx2, &avx512}) contestants.push_back({peer, 1, peer->make(data.problem())});
  const SamplerOptions options{.clock = Clock::processor, .seconds = seconds};
  const std::vector<Timed> timed = measure(contestants, options, [] {});
  const double p50[] = {timed[0].distribution.p50, timed[1].distribution.p50};
  std::printf("  %-20s %-28s %12.2f %12.2f %8.2f\n", row.group.c_str(), row.name.c_str(), p50[0] * 1e6, p50[1] * 1e6,
              p50[0] / p50[1]);
  std::fflush(stdout);
  return p50[0] / p50[1];
}

int run(double seconds) {
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  if (vitro::simd::find_kernels(Isa::avx512, here) == nullptr) {
    std::puts("This machine lacks AVX-512: nothing to compare.");
    return 0;
  }
  pin(1);
  std::printf("%s, %s, %s, one thread, processor time\n", processor_name(), compiler_version(), utc_now().c_str());
  print_clock();
  const std::unique_ptr<Peer> avx2 = make_vitro_peer(Isa::avx2), avx512 = make_vitro_peer(Isa::avx512);
  std::printf("  %-49s %12s %12s %8s\n", "p50 in microseconds", "avx2", "avx512", "ratio");
  std::map<std::string, std::vector<std::pair<double, std::string>>> groups;
  for (const Row& row : all_rows()) {
    if (row.conv.batch > 1 && row.flops() > 1e9) continue;  // as at batch 1
    groups[row.group].push_back({ratio(row, seconds, *avx2, *avx512), row.name});
  }
  print_clock();
  for (const auto& [group, ratios] : groups) {
    double log_sum = 0;
    for (const auto& [value, name] : ratios) log_sum += std::log(value);
    const auto [worst, where] = *std::min_element(ratios.begin(), ratios.end());
    std::printf("%s: AVX-512 is %.2f times as fast as AVX2 (geometric mean of %zu), at least %.2f (%s)\n", group.c_str(),
                std::exp(log_sum / static_cast<double>(ratios.size())), ratios.size(), worst, where.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace vitro_bench

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  if (argc > 2 || !(seconds > 0)) return std::fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]), 2;
  return vitro_bench::run(seconds);
}
