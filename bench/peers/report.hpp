// SPDX-License-Identifier: Apache-2.0
// What was measured, as a table for people and as JSON for table.py.
#pragma once

#include "sampler.hpp"

#include <cstdio>

namespace vitro_bench {

struct Entry {
  std::string peer;
  int threads = 1;
  Timed timed;
  double error = 0;     // largest distance from Vitro's result over Vitro's largest magnitude; NaN where one is NaN
  bool agrees = false;  // what does not agree counts for no ratio
};

struct RowResult {
  std::string group, name;
  double flops = 0;
  double peak = 0;             // FMA peak of one thread, GFLOP/s: median over the rounds of this row
  double peak_together = 0;    // the same of all threads at once, together
  std::vector<Entry> entries;  // Vitro first for each number of threads
};

struct Versions {
  std::vector<std::pair<std::string, std::string>> peers;
  std::vector<std::string> missing;
};

struct Machine {
  std::string processor, compiler, date;
  int threads = 1;
  std::vector<int> cores;
  double seconds = 0;
  Clock clock = Clock::wall;
};

// p50 of the fastest peer that agrees, with the same number of threads, over Vitro's: over 1 where Vitro is faster. 0 without
// such a peer.
double best_ratio(const RowResult& row, int threads);

void print_head(const Machine& machine, const Versions& versions);
void print_row(const RowResult& row);
// Of each group, and for each number of threads: geometric mean and smallest of best_ratio.
void print_summary(const std::vector<RowResult>& rows, int threads);
// False if the file cannot be written.
bool write_json(const std::string& path, const Machine& machine, const Versions& versions, const std::vector<RowResult>& rows);

}  // namespace vitro_bench
