// SPDX-License-Identifier: Apache-2.0
// How many times faster each table multiplies two square matrices than the naive three loops at -O2: medians of processor
// time over runs in one process, alternating. Usage: gemm_vs_naive [size [rounds]], by default 1024 and 9.
#include "fma_peak.hpp"
#include "machine.hpp"
#include "naive_gemm.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using vitro::simd::Index;
using vitro::simd::KernelTable;

struct Contestant {
  const KernelTable* table;  // null: the naive loops
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool parse(const char* text, Index& value) {
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  return error == std::errc() && stopped == end && value >= 1 && value <= 8192;
}

class Product {
 public:
  explicit Product(Index size) : size_(size), a_(count()), b_(count()), c_(count()), expected_(count()) {
    for (std::size_t i = 0; i < a_.size(); ++i) {
      a_[i] = static_cast<float>(i * 7919 % 1000) / 1000.0f - 0.5f;
      b_[i] = static_cast<float>(i * 6007 % 1000) / 1000.0f - 0.5f;
    }
  }

  void run(const KernelTable* table) {
    if (table == nullptr) {
      vitro_bench::naive_gemm(size_, a_.data(), b_.data(), expected_.data());
      return;
    }
    scratch_.resize(static_cast<std::size_t>(table->gemm_scratch(size_, size_, size_)) + 16);
    vitro::simd::Gemm args;
    args.m = args.n = args.k = size_;
    args.a = a_.data(), args.a_row_stride = size_, args.a_column_stride = 1;
    args.b = b_.data(), args.b_row_stride = size_, args.b_column_stride = 1;
    args.c = c_.data(), args.c_stride = size_;
    args.scratch = scratch_.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch_.data()) % 64) % 64 / sizeof(float);
    table->gemm(args);
  }

  // The naive loops round twice a step: the results agree, but not to the bit.
  bool agrees() const {
    for (std::size_t i = 0; i < c_.size(); ++i) {
      if (!(std::abs(c_[i] - expected_[i]) <= 1e-6f * static_cast<float>(size_))) return false;
    }
    return true;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(size_ * size_); }

  Index size_;
  std::vector<float> a_, b_, c_, expected_, scratch_;
};

}  // namespace

int main(int argc, char** argv) {
  Index size = 1024, rounds = 9;
  if (argc > 3 || (argc > 1 && !parse(argv[1], size)) || (argc > 2 && !parse(argv[2], rounds))) {
    std::fprintf(stderr, "usage: %s [size [rounds]]\n", argv[0]);
    return 2;
  }
  std::printf("%s, %s, %td x %td x %td, medians over %td rounds\n", vitro_bench::processor_name(),
              vitro_bench::compiler_version(), size, size, size, rounds);
  std::vector<Contestant> contestants{{nullptr, {}}};
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  for (const KernelTable* table : vitro::simd::kernel_tables()) {
    if (here.contains(table->required) && table->required.fma) contestants.push_back({table, {}});
  }
  Product product(size);
  for (Index round = 0; round < rounds; ++round) {
    for (Contestant& contestant : contestants) {
      // At least a tenth of a second each: a single fast run would mostly show the caches and the clock that the one before
      // left.
      for (double spent = 0; spent < 0.1;) {
        const double start = vitro_bench::processor_seconds();
        product.run(contestant.table);
        contestant.seconds.push_back(vitro_bench::processor_seconds() - start);
        spent += contestant.seconds.back();
      }
      if (round == 0 && contestant.table != nullptr && !product.agrees()) {
        std::fprintf(stderr, "%s and the naive loops disagree\n", contestant.table->name);
        return 1;
      }
    }
  }
  const double naive = median(contestants.front().seconds);
  for (const Contestant& contestant : contestants) {
    const double seconds = median(contestant.seconds);
    const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
    std::printf("%-16s %9.3f ms %8.2f GFLOP/s %7.1f x naive\n", contestant.table == nullptr ? "naive" : contestant.table->name,
                1e3 * seconds, 1e-9 * flops / seconds, naive / seconds);
  }
  return 0;
}
