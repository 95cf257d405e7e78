// SPDX-License-Identifier: Apache-2.0
// Measures the peak rate of fused multiply-adds.
#include "fma_peak.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

namespace vitro_bench {

namespace {

#if defined(__x86_64__)
// Twelve chains hide the latency of 4 cycles at 2 instructions a cycle. Assembly, so that no compiler flag decides what is
// measured and nothing is optimised away; all operands are +0, because denormals would slow the loop down.
#define VITRO_FMA(chain) "vfmadd231ps %%" VITRO_WIDTH "mm15, %%" VITRO_WIDTH "mm14, %%" VITRO_WIDTH "mm" #chain "\n"
#define VITRO_FMA_LOOP                                                                                                     \
  "vzeroall\n1:\n" VITRO_FMA(0) VITRO_FMA(1) VITRO_FMA(2) VITRO_FMA(3) VITRO_FMA(4) VITRO_FMA(5) VITRO_FMA(6) VITRO_FMA(7) \
      VITRO_FMA(8) VITRO_FMA(9) VITRO_FMA(10) VITRO_FMA(11) "dec %0\njnz 1b\nvzeroupper\n"
#define VITRO_CLOBBERED                                                                                                        \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
      "xmm15", "cc"

constexpr int kChains = 12;

void loop_512(long count) {
#define VITRO_WIDTH "z"
  __asm__ volatile(VITRO_FMA_LOOP : "+r"(count) : : VITRO_CLOBBERED);
#undef VITRO_WIDTH
}

void loop_256(long count) {
#define VITRO_WIDTH "y"
  __asm__ volatile(VITRO_FMA_LOOP : "+r"(count) : : VITRO_CLOBBERED);
#undef VITRO_WIDTH
}

// The instruction on one lane: what code without vectors could reach if its compiler found none either.
void loop_scalar(long count) {
#define VITRO_WIDTH "x"
  __asm__ volatile(VITRO_FMA_LOOP : "+r"(count) : : VITRO_CLOBBERED);
#undef VITRO_WIDTH
}

// Asked once: under a hypervisor the instruction takes tens of microseconds.
bool has_fma() {
  static const bool has = vitro::simd::features(vitro::simd::read_cpuid()).fma;
  return has;
}
#endif

}  // namespace

double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void fma_loop(vitro::simd::Isa isa, long count) {
#if defined(__x86_64__)
  using vitro::simd::Isa;
  if (!has_fma()) return;
  if (isa == Isa::avx512) {
    loop_512(count);
  } else if (isa == Isa::avx2) {
    loop_256(count);
  } else {
    loop_scalar(count);
  }
#else
  static_cast<void>(isa), static_cast<void>(count);
#endif
}

double fma_peak(vitro::simd::Isa isa) {
#if defined(__x86_64__)
  using vitro::simd::Isa;
  if (!has_fma()) return 0;
  const int lanes = isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 1;
  constexpr long kCount = 20000;
  std::array<double, 15> rates{};
  for (double& rate : rates) {
    const double start = processor_seconds();
    fma_loop(isa, kCount);
    rate = 2.0 * kChains * lanes * static_cast<double>(kCount) / (processor_seconds() - start) * 1e-9;
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
#else
  static_cast<void>(isa);
  return 0;
#endif
}

double fma_peak_together(vitro::simd::Isa isa, int threads) {
  std::barrier start(threads);
  std::vector<double> rates(static_cast<std::size_t>(threads));
  const auto measure = [&](double& rate) {
    start.arrive_and_wait();
    rate = fma_peak(isa);
  };
  std::vector<std::jthread> others;
  for (double& rate : rates) {
    if (&rate != &rates.front()) others.emplace_back([&] { measure(rate); });
  }
  measure(rates.front());
  others.clear();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace vitro_bench
