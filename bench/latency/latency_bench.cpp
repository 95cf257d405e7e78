// SPDX-License-Identifier: Apache-2.0
// How long LeNet-5's steps take, and how evenly: training at batch 64 and 1 and inference at batch 1, every step timed, Vitro
// and other libraries in alternation on the same data.
#include "../fma_peak.hpp"
#include "../machine.hpp"
#include "../peers/load.hpp"
#include "feed.hpp"
#include "report.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>

namespace vitro_bench {
namespace {

using vitro::Context;

constexpr const char* kUsage =
    "usage: %s [--steps N] [--calls N] [--block N] [--warm N] [--only TEXT] [--peers NAME,...] [--json FILE]\n"
    "\n"
    "  --steps N      timed training steps of each runner, 20000 by default\n"
    "  --calls N      timed inferences of each runner, 100000 by default\n"
    "  --block N      timed steps in a turn, 200 by default\n"
    "  --warm N       steps before them that are not timed, 10 by default\n"
    "  --only TEXT    only workloads whose name contains TEXT\n"
    "  --peers NAMES  only these: libtorch, onnxruntime; none: Vitro alone\n"
    "  --json FILE    writes the figures there too, for histogram.py\n"
    "\n"
    "Runs on the last core that it may use (taskset chooses another), on the data that VITRO_MNIST_DIR names, else "
    "data/mnist,\n"
    "else data/sample.\n"
    "Exit codes: 1 a runner did not compute what Vitro does; 2 usage; 3 the data cannot be read or the JSON not be written; 4 "
    "a\n"
    "library failed, with its message.\n";

struct Options {
  Index steps = 20000, calls = 100000, block = 200, warm = 10;
  std::string only, json;
  std::vector<std::string> peers = {"libtorch", "onnxruntime"};
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    const auto number = [&](Index& target, Index least) {
      const auto [stopped, error] = std::from_chars(value.data(), value.data() + value.size(), target);
      return error == std::errc() && stopped == value.data() + value.size() && target >= least;
    };
    bool understood = true;
    if (name == "--steps") {
      understood = number(options.steps, 1);
    } else if (name == "--calls") {
      understood = number(options.calls, 1);
    } else if (name == "--block") {
      understood = number(options.block, 1);
    } else if (name == "--warm") {
      understood = number(options.warm, 0);
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--peers") {
      options.peers = split(value);
    } else if (name == "--json") {
      options.json = value;
    } else {
      understood = false;
    }
    if (!understood) return false;
  }
  return argc % 2 == 1;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double clock_p50() {
  std::vector<double> seconds;
  for (int i = 0; i < 10001; ++i) {
    const double start = now();
    seconds.push_back(now() - start);
  }
  return summary(seconds).p50;
}

// The median processor time of a step, over groups of ten, for which another program on the same core hardly matters. The job
// is of no use afterwards, being that much further in its training.
double processor_p50(Job& job, Feed& feed) {
  std::vector<double> seconds;
  const double begin = now();
  for (Index group = 0; group < 31 || now() - begin < 0.1; ++group) {
    feed.fill(group);
    const double start = processor_seconds();
    for (int i = 0; i < 10; ++i) job.run();
    seconds.push_back((processor_seconds() - start) / 10);
  }
  return summary(seconds).p50;
}

// Steps begin .. begin + warm + count - 1 of one runner, of which the last `count` are timed.
void turn(const Runner& runner, Feed& feed, Index begin, Index warm, Index count, Record& record,
          std::vector<double>& assembly) {
  for (Index step = begin; step < begin + warm + count; ++step) {
    const double before = now();
    feed.fill(step);
    const double start = now();
    runner.job->run();
    const double end = now();
    assembly.push_back(start - before);
    if (step == begin) record.first_seconds.push_back(end - start);
    if (step >= begin + warm) record.seconds.push_back(end - start);
    if (runner.kind == Kind::fed) record.losses.push_back(runner.job->loss());
  }
}

WorkloadResult alternate(const Workload& workload, const std::vector<Runner>& runners, Feed& feed, Index steps, Index warm,
                         Index block) {
  WorkloadResult result{workload, 0, 0, {}};
  for (const Runner& runner : runners) result.records.push_back({runner.name, {}, {}, {}, {}});
  std::vector<double> assembly;
  Index step = 0;
  const double start = now(), processor = processor_seconds();
  for (Index round = 0, done = 0; done < steps; ++round) {
    const Index count = std::min(block, steps - done);
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(round)) % runners.size();
      turn(runners[who], feed, step, warm, count, result.records[who], assembly);
    }
    const auto last_p50 = [&](const Record& record) {
      return summary({record.seconds.end() - count, record.seconds.end()}).p50;
    };
    dynamic_cast<ArithmeticJob&>(*runners.back().job)
        .lengthen(last_p50(result.records.front()) / last_p50(result.records.back()));
    done += count;
    step += warm + count;
  }
  result.processor_share = (processor_seconds() - processor) / (now() - start);
  result.assembly_p50 = summary(assembly).p50;
  return result;
}

bool is_vitro(const std::string& name) { return name.rfind("vitro", 0) == 0; }

// Vitro's runners have the first one's bits at every step and end with its weights; a library's sums have another order, and
// after some tens of steps both have gone their own ways.
void check_training(const std::vector<Runner>& runners, std::vector<Record>& records) {
  const std::vector<float>& expected = records.front().losses;
  const std::vector<float> weights = runners.front().job->result();
  for (std::size_t i = 0; i < runners.size(); ++i) {
    const std::vector<float>& losses = records[i].losses;
    const std::size_t compared = is_vitro(runners[i].name) ? losses.size() : std::min<std::size_t>(losses.size(), 20);
    for (std::size_t step = 0; step < losses.size() && records[i].wrong.empty(); ++step) {
      const float distance = std::abs(losses[step] - expected[step]);
      const float allowed = is_vitro(runners[i].name) ? 0.0f : 1e-4f * std::max(1.0f, std::abs(expected[step]));
      if (!std::isfinite(losses[step]) || (step < compared && !(distance <= allowed))) {
        char text[100];
        std::snprintf(text, sizeof text, "the loss of step %zu is %.9g, not %.9g", step, static_cast<double>(losses[step]),
                      static_cast<double>(expected[step]));
        records[i].wrong = text;
      }
    }
    if (records[i].wrong.empty() && is_vitro(runners[i].name) && runners[i].job->result() != weights) {
      records[i].wrong = "the weights at the end are others";
    }
  }
}

// The same for the scores of some images; nothing is timed.
void check_scores(const std::vector<Runner>& runners, Feed& feed, std::vector<std::string>& wrong) {
  for (Index image = 0; image < 100; ++image) {
    feed.fill(image);
    std::vector<float> expected;
    for (std::size_t i = 0; i < runners.size(); ++i) {
      if (runners[i].kind == Kind::arithmetic) continue;
      runners[i].job->run();
      const std::vector<float> scores = runners[i].job->result();
      if (i == 0) expected = scores;
      float distance = 0, magnitude = 0;
      for (std::size_t j = 0; j < expected.size() && scores.size() == expected.size(); ++j) {
        distance = std::max(distance, std::abs(scores[j] - expected[j]));
        magnitude = std::max(magnitude, std::abs(expected[j]));
      }
      const float allowed = is_vitro(runners[i].name) ? 0.0f : 1e-4f * magnitude;
      if (wrong[i].empty() && (scores.size() != expected.size() || !(magnitude > 0) || !(distance <= allowed))) {
        wrong[i] = "the scores of image " + std::to_string(image) + " are off by " + std::to_string(distance) + " of " +
                   std::to_string(magnitude);
      }
    }
  }
}

WorkloadResult run_workload(const Workload& workload, const std::shared_ptr<Context>& context, const vitro::MnistData& data,
                            const std::vector<Peer*>& peers, const Options& options) {
  const bool training = workload.operation == Operation::lenet_step;
  // Whole batches only, so that all steps are alike.
  const vitro::Dataset images = training ? first_images(data.train, data.train.size() / workload.batch * workload.batch)
                                         : first_images(data.test, data.test.size());
  Feed feed(*context, images, workload.batch, training);
  const auto make = [&] { return make_runners(context, peers, workload, images, feed.images(), feed.labels()); };

  const std::vector<Runner> runners = make();
  const double p50 = processor_p50(*make().front().job, feed);
  const long count = static_cast<long>(arithmetic_rate(context->kernels().isa, p50) * p50);
  dynamic_cast<ArithmeticJob&>(*runners.back().job).set_count(count);

  std::vector<std::string> wrong(runners.size());
  if (!training) check_scores(runners, feed, wrong);
  WorkloadResult result = alternate(workload, runners, feed, workload.steps, options.warm, options.block);
  if (training) {
    check_training(runners, result.records);
  } else {
    for (std::size_t i = 0; i < runners.size(); ++i) result.records[i].losses.clear(), result.records[i].wrong = wrong[i];
  }
  return result;
}

int run(const Options& options) {
  const std::vector<int> cores = pin(1);
  const vitro::Result<vitro::MnistData> data = load_data();
  if (!data) return std::fprintf(stderr, "latency_bench: %s\n", data.error().what()), 3;
  const auto context = std::make_shared<Context>();
  const LoadedPeers loaded = load_peers("../peers", options.peers);
  Head head{processor_name(),
            compiler_version(),
            utc_now(),
            context->kernels().name,
            data.value().train.name,
            cores.front(),
            options.block,
            options.warm,
            clock_p50(),
            {},
            loaded.missing};
  for (Peer* const peer : loaded.peers) head.versions.emplace_back(peer->name(), peer->version());
  print_head(head);

  // At batch 1 a rate of 0.01 with momentum would throw the weights about.
  const Workload workloads[] = {
      {"LeNet-5 training step, batch 64", Operation::lenet_step, 64, options.steps, {0.01f, 0.9f, 5e-4f}},
      {"LeNet-5 training step, batch 1", Operation::lenet_step, 1, options.steps, {0.001f, 0.9f, 5e-4f}},
      {"LeNet-5 inference, batch 1", Operation::lenet_scores, 1, options.calls},
  };
  std::vector<WorkloadResult> results;
  bool right = true;
  for (const Workload& workload : workloads) {
    if (workload.name.find(options.only) == std::string::npos) continue;
    results.push_back(run_workload(workload, context, data.value(), loaded.peers, options));
    print_workload(results.back());
    for (const Record& record : results.back().records) right = right && record.wrong.empty();
  }
  if (!options.json.empty() && !write_json(options.json, head, results)) {
    std::fprintf(stderr, "latency_bench: cannot write %s\n", options.json.c_str());
    return 3;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace vitro_bench

int main(int argc, char** argv) {
  vitro_bench::Options options;
  if (!vitro_bench::parse(argc, argv, options)) {
    std::fprintf(stderr, vitro_bench::kUsage, argv[0]);
    return 2;
  }
  try {
    return vitro_bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "latency_bench: %s\n", error.what());
    return 4;
  }
}
