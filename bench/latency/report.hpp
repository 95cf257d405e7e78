// SPDX-License-Identifier: Apache-2.0
// What was measured, as a table for people and as JSON for histogram.py.
#pragma once

#include "distribution.hpp"
#include "runners.hpp"

#include <cstdio>

namespace vitro_bench {

// Everything that one runner did in one workload.
struct Record {
  std::string name;
  std::vector<double> seconds;        // of every timed step, in order
  std::vector<double> first_seconds;  // of the first step of each turn: with the caches that the one before has left
  std::vector<float> losses;          // of every step of a training, untimed ones included
  std::string wrong;                  // why it was not the same computation; empty: it was
};

struct WorkloadResult {
  Workload workload;
  double assembly_p50 = 0;     // seconds to make a batch, which is in no runner's figures
  double processor_share = 0;  // processor time over wall time: under 1, something else ran on this core, and the tails show it
  std::vector<Record> records;
};

struct Head {
  std::string processor, compiler, date, kernels, data;
  int core = 0;
  Index block = 0, warm = 0;
  double clock_p50 = 0;                                       // seconds between two readings of the clock
  std::vector<std::pair<std::string, std::string>> versions;  // of the peers
  std::vector<std::string> missing;
};

void print_head(const Head& head);
void print_workload(const WorkloadResult& result);
// False if the file cannot be written.
bool write_json(const std::string& path, const Head& head, const std::vector<WorkloadResult>& results);

}  // namespace vitro_bench
