// SPDX-License-Identifier: Apache-2.0
// Who takes part: Vitro's runners, the peers that were built, and a loop of pure arithmetic that shows what the machine does to
// anybody.
#pragma once

#include "../../data/dataset.hpp"
#include "../../ops/context.hpp"
#include "../peers/peer.hpp"

namespace vitro_bench {

// What every runner is asked to do, step after step.
struct Workload {
  std::string name;
  Operation operation = Operation::lenet_step;  // or lenet_scores
  Index batch = 1;
  Index steps = 0;  // timed ones, of each runner
  Sgd sgd{};
};

enum class Kind {
  fed,         // reads the batch that is there when it runs
  trainer,     // makes its batches itself, the same ones, and reports losses later
  arithmetic,  // computes nothing
};

struct Runner {
  std::string name;
  std::unique_ptr<Job> job;
  Kind kind = Kind::fed;
};

// A loop of `count` rounds of independent fma instructions in registers (fma_loop).
class ArithmeticJob final : public Job {
 public:
  explicit ArithmeticJob(vitro::simd::Isa isa) : isa_(isa) {}
  void set_count(long count) { count_ = count > 0 ? count : 1; }
  void lengthen(double factor) { set_count(static_cast<long>(static_cast<double>(count_) * factor)); }
  void run() override;
  std::vector<float> result() override { return {}; }

 private:
  vitro::simd::Isa isa_;
  long count_ = 1000;
};

// Rounds of fma_loop in a second of processor time, by the median of some loops of `seconds`.
double arithmetic_rate(vitro::simd::Isa isa, double seconds);

// All of them for one workload, Vitro's best first and the arithmetic last. `images` and `labels` are read in each run; all
// start from the weights of models::lenet5(). `data`, whose size is a multiple of the batch, outlives them.
std::vector<Runner> make_runners(const std::shared_ptr<vitro::Context>& context, const std::vector<Peer*>& peers,
                                 const Workload& workload, const vitro::Dataset& data, const float* images,
                                 const std::int32_t* labels);

}  // namespace vitro_bench
