// SPDX-License-Identifier: Apache-2.0
// Makes the runners.
#include "runners.hpp"

#include "../../models/lenet.hpp"
#include "../fma_peak.hpp"
#include "../peers/vitro_lenet.hpp"
#include "distribution.hpp"

namespace vitro_bench {

void ArithmeticJob::run() { fma_loop(isa_, count_); }

double arithmetic_rate(vitro::simd::Isa isa, double seconds) {
  long count = 1000;
  double rate = 0;
  for (int pass = 0; pass < 3; ++pass) {  // the first finds the length, the others measure
    std::vector<double> times;
    for (int i = 0; i < 31; ++i) {
      const double start = processor_seconds();
      fma_loop(isa, count);
      times.push_back(processor_seconds() - start);
    }
    rate = static_cast<double>(count) / summary(times).p50;
    count = static_cast<long>(rate * seconds) + 1;
  }
  return rate;
}

std::vector<Runner> make_runners(const std::shared_ptr<vitro::Context>& context, const std::vector<Peer*>& peers,
                                 const Workload& workload, const float* images, const std::int32_t* labels) {
  Problem problem;
  problem.operation = workload.operation;
  problem.a = images;
  problem.labels = labels;
  problem.lenet.batch = workload.batch;
  problem.lenet.sgd = workload.sgd;
  const vitro::Model model = vitro::models::lenet5();
  for (const vitro::Parameter& parameter : model.parameters()) {
    problem.lenet.parameters.emplace_back(parameter.value.span().begin(), parameter.value.span().end());
  }
  std::vector<Runner> runners;
  if (workload.operation == Operation::lenet_step) {
    runners.push_back({"vitro captured", make_lenet_step(context, problem, Mode::captured)});
    runners.push_back({"vitro eager", make_lenet_step(context, problem, Mode::eager)});
  } else {
    runners.push_back({"vitro session", make_lenet_scores(context, problem, Mode::captured)});
    runners.push_back({"vitro eager", make_lenet_scores(context, problem, Mode::eager)});
  }
  for (Peer* const peer : peers) {
    peer->set_threads(1);
    if (auto job = peer->make(problem)) runners.push_back({peer->name(), std::move(job)});
  }
  runners.push_back({"arithmetic", std::make_unique<ArithmeticJob>(context->kernels().isa), false});
  return runners;
}

}  // namespace vitro_bench
