// SPDX-License-Identifier: Apache-2.0
// The problems that are compared, and their operands.
#pragma once

#include "floats.hpp"
#include "peer.hpp"

namespace vitro_bench {

struct Row {
  std::string group, name;
  Operation operation = Operation::gemm;
  GemmShape gemm;
  ConvShape conv;
  Index lenet_batch = 0;
  float b_size = 0.5f;             // b is uniform in [-b_size, b_size)
  std::vector<std::string> peers;  // those to compare with; empty: all that offer the operation
  bool more_threads = false;       // also compared with more than one thread

  double flops() const;  // additions and multiplications of one run
};

// All rows, most important group first.
std::vector<Row> all_rows();

// A row's operands, uniform in [-0.5, 0.5) (images in [0, 1), b as the row says), the same in every run.
class RowData {
 public:
  explicit RowData(const Row& row);
  const Problem& problem() const { return problem_; }

 private:
  Floats a_, b_, bias_;
  std::vector<std::int32_t> labels_;
  Problem problem_;
};

}  // namespace vitro_bench
