// SPDX-License-Identifier: Apache-2.0
// What a list of times is reduced to: untrimmed, and once more inside of Tukey's fences.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace vitro_bench {

// In seconds. A percentile is the smallest sample that so many are not above.
struct Summary {
  std::size_t samples = 0;
  double mean = 0, deviation = 0;  // standard deviation, of the population
  double min = 0, p50 = 0, p98 = 0, p999 = 0, max = 0;

  double variation() const { return mean > 0 ? deviation / mean : 0; }  // the coefficient of variation
};

// Samples outside of [low, high] = [first quartile - 1.5 IQR, third quartile + 1.5 IQR] are left out (Tukey 1977): the form of
// published tables that drop outliers. It says nothing about a tail, which is what it drops.
struct Fenced {
  double low = 0, high = 0;
  double cut = 0;  // share of the samples that is left out
  Summary inside;
};

Summary summary(std::vector<double> seconds);
Fenced fenced(std::vector<double> seconds);

// Counts over the logarithm of the time: (bin, samples in it) in rising order, without empty bins. Bin b holds the times from
// 10^(b / kBinsPerDecade) microseconds up to the next bin's.
inline constexpr int kBinsPerDecade = 100;
std::vector<std::pair<int, std::size_t>> histogram(const std::vector<double>& seconds);

}  // namespace vitro_bench
