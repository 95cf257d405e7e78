// SPDX-License-Identifier: Apache-2.0
// What was measured, as a table and as JSON.
#include "report.hpp"

#include "../machine.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace vitro_bench {
namespace {

const Entry* find_vitro(const RowResult& row, int threads) {
  for (const Entry& entry : row.entries) {
    if (entry.peer == "vitro" && entry.threads == threads) return &entry;
  }
  return nullptr;
}

const char* clock_name(const Machine& machine) { return machine.clock == Clock::wall ? "wall" : "processor"; }

void write_entry(std::FILE* file, const Entry& e) {
  const Distribution& d = e.timed.distribution;
  std::fprintf(file,
               "{\"peer\": %s, \"threads\": %d, \"samples\": %zu, \"p50\": %.9g, \"p98\": %.9g, \"p99.9\": %.9g, "
               "\"max\": %.9g, \"processor_share\": %.3g, \"error\": %.3g, \"agrees\": %s}",
               quoted(e.peer).c_str(), e.threads, d.samples, d.p50, d.p98, d.p999, d.max, e.timed.processor_share,
               std::isfinite(e.error) ? e.error : -1, e.agrees ? "true" : "false");
}

void write_list(std::FILE* file, const char* name, const std::vector<std::string>& items) {
  std::fprintf(file, "  \"%s\": [", name);
  for (std::size_t i = 0; i < items.size(); ++i) std::fprintf(file, "%s%s", i == 0 ? "" : ", ", quoted(items[i]).c_str());
  std::fputs("],\n", file);
}

}  // namespace

double best_ratio(const RowResult& row, int threads) {
  const Entry* const ours = find_vitro(row, threads);
  double best = 0;
  for (const Entry& entry : row.entries) {
    if (&entry == ours || entry.threads != threads || !entry.agrees) continue;
    const double p50 = entry.timed.distribution.p50;
    best = best == 0 ? p50 : std::min(best, p50);
  }
  return ours == nullptr ? 0 : best / ours->timed.distribution.p50;
}

void print_head(const Machine& machine, const Versions& versions) {
  std::printf("%s; %s; %s\n%d thread%s on core", machine.processor.c_str(), machine.compiler.c_str(), machine.date.c_str(),
              machine.threads, machine.threads == 1 ? "" : "s");
  for (const int core : machine.cores) std::printf(" %d", core);
  std::printf("; about %g s for each line; caches warm; %s time, nothing trimmed\n", machine.seconds, clock_name(machine));
  for (const auto& [name, version] : versions.peers) std::printf("%s: %s\n", name.c_str(), version.c_str());
  for (const std::string& missing : versions.missing) std::printf("MISSING %s\n", missing.c_str());
  std::puts(
      "ratio: p50 of the peer / p50 of vitro with as many threads, over 1 where vitro is faster. peak: FMA peak, measured in "
      "each round, of as\nmany threads at once. cpu: processor time / (wall time x threads); far under 1, something else ran "
      "here or threads had no work.\n");
  std::printf("%-20s %3s %12s %12s %12s %12s %8s %8s %6s %7s %7s %5s\n", "", "thr", "p50 us", "p98", "p99.9", "max", "samples",
              "GFLOP/s", "peak", "of peak", "ratio", "cpu");
}

void print_row(const RowResult& row) {
  std::printf("%s: %s\n", row.group.c_str(), row.name.c_str());
  for (const Entry& entry : row.entries) {
    const Distribution& d = entry.timed.distribution;
    const Entry* const ours = find_vitro(row, entry.threads);
    const double rate = row.flops / d.p50 * 1e-9, peak = entry.threads == 1 ? row.peak : row.peak_together;
    std::printf("  %-18s %3d %12.2f %12.2f %12.2f %12.2f %8zu %8.1f %6.1f %7.2f", entry.peer.c_str(), entry.threads,
                d.p50 * 1e6, d.p98 * 1e6, d.p999 * 1e6, d.max * 1e6, d.samples, rate, peak, peak > 0 ? rate / peak : 0);
    if (ours == &entry || ours == nullptr) {
      std::printf(" %7s", "");
    } else if (entry.agrees) {
      std::printf(" %7.2f", d.p50 / ours->timed.distribution.p50);
    } else {
      std::printf(" %7s", "WRONG");
    }
    std::printf(" %5.2f\n", entry.timed.processor_share);
  }
  const Entry* const one = find_vitro(row, 1);
  for (const Entry& entry : row.entries) {
    if (entry.peer != "vitro" || entry.threads == 1 || one == nullptr) continue;
    std::printf("  vitro: %d threads %.2f times as fast as one, the peak %.2f times\n", entry.threads,
                one->timed.distribution.p50 / entry.timed.distribution.p50, row.peak > 0 ? row.peak_together / row.peak : 0);
  }
  std::fflush(stdout);
}

void print_summary(const std::vector<RowResult>& rows, int threads) {
  std::printf("\nratio to the best peer of each row, %d thread%s\n", threads, threads == 1 ? "" : "s");
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    double log_sum = 0, smallest = HUGE_VAL;
    int count = 0;
    std::string worst;
    for (; end < rows.size() && rows[end].group == rows[begin].group; ++end) {
      const double ratio = best_ratio(rows[end], threads);
      if (ratio <= 0) continue;
      log_sum += std::log(ratio);
      ++count;
      if (ratio < smallest) smallest = ratio, worst = rows[end].name;
    }
    if (count > 0) {
      std::printf("  %-28s geometric mean %.2f over %d rows, smallest %.2f (%s)\n", rows[begin].group.c_str(),
                  std::exp(log_sum / count), count, smallest, worst.c_str());
    }
    begin = end;
  }
}

bool write_json(const std::string& path, const Machine& machine, const Versions& versions, const std::vector<RowResult>& rows) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\n  \"processor\": %s,\n  \"compiler\": %s,\n  \"date\": %s,\n  \"threads\": %d,\n  \"seconds\": %g,\n  "
               "\"clock\": \"%s\",\n",
               quoted(machine.processor).c_str(), quoted(machine.compiler).c_str(), quoted(machine.date).c_str(),
               machine.threads, machine.seconds, clock_name(machine));
  std::fputs("  \"versions\": {", file);
  const char* separator = "";
  for (const auto& [name, version] : versions.peers) {
    std::fprintf(file, "%s%s: %s", separator, quoted(name).c_str(), quoted(version).c_str());
    separator = ", ";
  }
  std::fputs("},\n", file);
  write_list(file, "missing", versions.missing);
  std::fputs("  \"rows\": [", file);
  separator = "\n";
  for (const RowResult& row : rows) {
    std::fprintf(
        file, "%s    {\"group\": %s, \"name\": %s, \"flops\": %.17g, \"peak\": %.6g, \"peak_together\": %.6g, \"entries\": [",
        separator, quoted(row.group).c_str(), quoted(row.name).c_str(), row.flops, row.peak, row.peak_together);
    for (std::size_t i = 0; i < row.entries.size(); ++i) {
      std::fputs(i == 0 ? "\n      " : ",\n      ", file);
      write_entry(file, row.entries[i]);
    }
    std::fputs("]}", file);
    separator = ",\n";
  }
  std::fputs("\n  ]\n}\n", file);
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace vitro_bench
