// SPDX-License-Identifier: Apache-2.0
// Tables and JSON.
#include "report.hpp"

#include "../machine.hpp"

#include <algorithm>
#include <numeric>

namespace vitro_bench {
namespace {

constexpr double kMicro = 1e6;

void print_summary(const char* name, const Summary& s) {
  std::printf("  %-14s %8zu %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %7.3f", name, s.samples, s.min * kMicro, s.p50 * kMicro,
              s.p98 * kMicro, s.p999 * kMicro, s.max * kMicro, s.mean * kMicro, s.variation());
}

double mean_of_last(const std::vector<float>& values, std::size_t count) {
  return std::accumulate(values.end() - static_cast<std::ptrdiff_t>(count), values.end(), 0.0) / static_cast<double>(count);
}

void write_summary(std::FILE* file, const Summary& s) {
  std::fprintf(file,
               "\"samples\": %zu, \"min\": %.9g, \"p50\": %.9g, \"p98\": %.9g, \"p99.9\": %.9g, \"max\": %.9g, \"mean\": %.9g, "
               "\"variation\": %.6g",
               s.samples, s.min, s.p50, s.p98, s.p999, s.max, s.mean, s.variation());
}

void write_record(std::FILE* file, const Record& record) {
  const Fenced fence = fenced(record.seconds);
  std::fprintf(file, "{\"runner\": %s, \"wrong\": %s, ", quoted(record.name).c_str(), quoted(record.wrong).c_str());
  write_summary(file, summary(record.seconds));
  std::fprintf(file, ", \"first_of_turn_p50\": %.9g,\n       \"fenced\": {\"low\": %.9g, \"high\": %.9g, \"cut\": %.6g, ",
               summary(record.first_seconds).p50, fence.low, fence.high, fence.cut);
  write_summary(file, fence.inside);
  std::fputs("},\n       \"histogram\": [", file);
  const char* separator = "";
  for (const auto& [bin, count] : histogram(record.seconds)) {
    std::fprintf(file, "%s[%d, %zu]", separator, bin, count);
    separator = ", ";
  }
  std::fputs("]}", file);
}

}  // namespace

void print_head(const Head& head) {
  std::printf("%s; %s; %s\nvitro: %s, one thread on core %d; data: %s\n", head.processor.c_str(), head.compiler.c_str(),
              head.date.c_str(), head.kernels.c_str(), head.core, head.data.c_str());
  for (const auto& [name, version] : head.versions) std::printf("%s: %s\n", name.c_str(), version.c_str());
  for (const std::string& missing : head.missing) std::printf("MISSING %s\n", missing.c_str());
  std::printf(
      "Turns of %td timed steps alternate, each after %td steps that are not timed. Every timed step counts: steady_clock, "
      "read "
      "before and after\n(%.0f ns between two readings, included); work is done when a call returns. Microseconds. arithmetic: "
      "a "
      "loop of fma instructions in registers,\nin each turn as long as the first line's p50 in the turn before: what this "
      "machine does to anybody. fenced: "
      "without what is outside of [q1 - 1.5 IQR, q3 + 1.5 IQR].\n",
      head.block, head.warm, head.clock_p50 * 1e9);
}

void print_workload(const WorkloadResult& result) {
  std::printf(
      "\n%s (making a batch takes %.2f more; %.1f %% of the wall time was ours)\n  %-14s %8s %10s %10s %10s %10s %10s %10s %7s "
      "%7s %7s %8s\n",
      result.workload.name.c_str(), result.assembly_p50 * kMicro, result.processor_share * 100, "", "steps", "min", "p50",
      "p98", "p99.9", "max", "mean", "cv", "p50 /", "p99.9 /", "first");
  const Summary ours = summary(result.records.front().seconds);
  for (const Record& record : result.records) {
    const Summary s = summary(record.seconds);
    print_summary(record.name.c_str(), s);
    std::printf(" %7.2f %7.2f %8.2f\n", s.p50 / ours.p50, s.p999 / ours.p999, summary(record.first_seconds).p50 * kMicro);
  }
  for (const Record& record : result.records) {
    const Fenced fence = fenced(record.seconds);
    print_summary(record.name.c_str(), fence.inside);
    std::printf("  fenced to [%.2f, %.2f], %.2f %% cut\n", fence.low * kMicro, fence.high * kMicro, fence.cut * 100);
  }
  for (const Record& record : result.records) {
    if (!record.losses.empty()) {
      const std::size_t last = std::min<std::size_t>(record.losses.size(), 1000);
      std::printf("  %s: first loss %.6f, mean of the last %zu %.6f\n", record.name.c_str(),
                  static_cast<double>(record.losses.front()), last, mean_of_last(record.losses, last));
    }
    if (!record.wrong.empty()) std::printf("  WRONG %s: %s\n", record.name.c_str(), record.wrong.c_str());
  }
  std::fflush(stdout);
}

bool write_json(const std::string& path, const Head& head, const std::vector<WorkloadResult>& results) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file, "{\"processor\": %s, \"compiler\": %s, \"date\": %s, \"kernels\": %s, \"data\": %s, \"core\": %d,\n",
               quoted(head.processor).c_str(), quoted(head.compiler).c_str(), quoted(head.date).c_str(),
               quoted(head.kernels).c_str(), quoted(head.data).c_str(), head.core);
  std::fprintf(file, " \"block\": %td, \"warm\": %td, \"clock\": \"steady_clock\", \"clock_p50\": %.9g, \"versions\": {",
               head.block, head.warm, head.clock_p50);
  const char* separator = "";
  for (const auto& [name, version] : head.versions) {
    std::fprintf(file, "%s%s: %s", separator, quoted(name).c_str(), quoted(version).c_str());
    separator = ", ";
  }
  std::fprintf(file, "},\n \"bins_per_decade\": %d, \"workloads\": [", kBinsPerDecade);
  separator = "";
  for (const WorkloadResult& result : results) {
    std::fprintf(file, "%s\n  {\"name\": %s, \"batch\": %td, \"assembly_p50\": %.9g, \"processor_share\": %.4g, \"entries\": [",
                 separator, quoted(result.workload.name).c_str(), result.workload.batch, result.assembly_p50,
                 result.processor_share);
    separator = "";
    for (const Record& record : result.records) {
      std::fprintf(file, "%s\n      ", separator);
      write_record(file, record);
      separator = ",";
    }
    std::fputs("]}", file);
    separator = ",";
  }
  std::fputs("]}\n", file);
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace vitro_bench
