// SPDX-License-Identifier: Apache-2.0
// Makes the runners.
#include "runners.hpp"

#include "../../models/lenet.hpp"
#include "../../models/trainer.hpp"
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

namespace {

// What one gets without writing a step: with its batch, the checks for infinities and NaNs, and the counting of hits.
class TrainerJob final : public Job {
 public:
  TrainerJob(vitro::Context& context, const Workload& workload, const vitro::Dataset& data)
      : before_(values()), trainer_(context, model_, data, options(workload)) {}
  void run() override { trainer_.try_step().value(); }
  std::vector<float> result() override { return change(values(), before_); }

 private:
  static vitro::TrainOptions options(const Workload& workload) {
    vitro::TrainOptions options{.epochs = 1'000'000, .batch = workload.batch, .seed = 1, .recipe = {}};
    options.recipe.rate = workload.sgd.rate;
    options.recipe.momentum = workload.sgd.momentum;
    options.recipe.weight_decay = workload.sgd.weight_decay;
    return options;
  }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const vitro::Parameter& parameter : model_.parameters()) {
      all.emplace_back(parameter.value.span().begin(), parameter.value.span().end());
    }
    return all;
  }

  vitro::Model model_ = vitro::models::lenet5();
  std::vector<std::vector<float>> before_;
  vitro::Trainer trainer_;
};

}  // namespace

std::vector<Runner> make_runners(const std::shared_ptr<vitro::Context>& context, const std::vector<Peer*>& peers,
                                 const Workload& workload, const vitro::Dataset& data, const float* images,
                                 const std::int32_t* labels) {
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
    runners.push_back({"vitro trainer", std::make_unique<TrainerJob>(*context, workload, data), Kind::trainer});
  } else {
    runners.push_back({"vitro session", make_lenet_scores(context, problem, Mode::captured)});
    runners.push_back({"vitro eager", make_lenet_scores(context, problem, Mode::eager)});
  }
  for (Peer* const peer : peers) {
    peer->set_threads(1);
    if (auto job = peer->make(problem)) runners.push_back({peer->name(), std::move(job)});
  }
  runners.push_back({"arithmetic", std::make_unique<ArithmeticJob>(context->kernels().isa), Kind::arithmetic});
  return runners;
}

}  // namespace vitro_bench
