// SPDX-License-Identifier: Apache-2.0
// Percentiles, moments, fences, bins.
#include "distribution.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace vitro_bench {
namespace {

double rank(const std::vector<double>& sorted, double share) {
  const double position = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(position, 1.0)) - 1];
}

Summary of_sorted(const std::vector<double>& sorted) {
  if (sorted.empty()) return {};
  const auto count = static_cast<double>(sorted.size());
  double sum = 0, squares = 0;
  for (const double value : sorted) sum += value;
  for (const double value : sorted) squares += (value - sum / count) * (value - sum / count);
  return {sorted.size(),     sum / count,        std::sqrt(squares / count), sorted.front(),
          rank(sorted, 0.5), rank(sorted, 0.98), rank(sorted, 0.999),        sorted.back()};
}

}  // namespace

Summary summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return of_sorted(seconds);
}

Fenced fenced(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const double first = rank(seconds, 0.25), third = rank(seconds, 0.75), reach = 1.5 * (third - first);
  Fenced result{first - reach, third + reach, 0, {}};
  const auto begin = std::lower_bound(seconds.begin(), seconds.end(), result.low);
  const auto end = std::upper_bound(begin, seconds.end(), result.high);
  result.inside = of_sorted({begin, end});
  result.cut = 1.0 - static_cast<double>(result.inside.samples) / static_cast<double>(seconds.size());
  return result;
}

std::vector<std::pair<int, std::size_t>> histogram(const std::vector<double>& seconds) {
  std::map<int, std::size_t> bins;
  for (const double value : seconds) ++bins[static_cast<int>(std::floor(std::log10(value * 1e6) * kBinsPerDecade))];
  return {bins.begin(), bins.end()};
}

}  // namespace vitro_bench
