// SPDX-License-Identifier: Apache-2.0
// What a second thread costs and brings: the time of an empty loop and the gain at matrix products of all sizes, with the
// pool's threads awake ("warm": loops one after the other) and asleep ("cold": a pause before each), then LeNet-5's training
// step for several spinning times. Runs alternate; medians. Usage: threads_bench [threads [rounds]], by default 2 and 200.
#include "../core/random.hpp"
#include "../models/lenet.hpp"
#include "../models/trainer.hpp"
#include "../ops/linear.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace {

using namespace vitro;

double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// On the processor, so that its clock and caches stay as they are while the pool's threads fall asleep.
void wait(double microseconds) {
  const double end = now() + microseconds;
  while (now() < end) {
  }
}

struct Contestant {
  std::function<void()> call;
  std::vector<double> times = {};
};

// The median of each contestant's time in microseconds. `pause` comes before every call, not in its time; without one, each
// time is the mean over `repeats` calls in a row, the first of which is not counted.
std::vector<double> measure(std::vector<Contestant> contestants, int rounds, int repeats, double pause) {
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& contestant : contestants) {
      if (pause > 0) {
        wait(pause);
      } else {
        contestant.call();
      }
      const double start = now();
      for (int i = 0; i < repeats; ++i) contestant.call();
      contestant.times.push_back((now() - start) / repeats);
    }
  }
  std::vector<double> medians;
  for (Contestant& contestant : contestants) {
    std::sort(contestant.times.begin(), contestant.times.end());
    medians.push_back(contestant.times[contestant.times.size() / 2]);
  }
  return medians;
}

void empty_loops(int threads, int rounds) {
  std::printf("\nempty loop, microseconds\n%8s %10s %10s\n", "spin", "warm", "cold");
  for (const int spin : {0, 20, 100}) {
    ThreadPool pool({.threads = threads, .spin_microseconds = spin});
    const Contestant loop{[&] { pool.parallel_for(threads, [](Index, Index, int) {}); }};
    std::printf("%8d %10.2f %10.2f\n", spin, measure({loop}, rounds, 100, 0)[0], measure({loop}, rounds, 1, spin + 300)[0]);
  }
}

// Loops of arithmetic that takes about the time named, on one thread and cut for all, without a threshold.
void loops(int threads, int rounds) {
  std::printf("\nloop, microseconds on one thread and on %d\n%8s %9s %9s %7s %9s %9s %7s\n", threads, "", "warm", "", "ratio",
              "cold", "", "ratio");
  ThreadPool one(1), many(threads);
  std::atomic<unsigned> sink{0};
  const auto body = [&](Index begin, Index end, int) {
    unsigned value = 1;
    for (Index i = begin; i < end; ++i) value = value * 1664525u + 1013904223u;
    sink.fetch_add(value, std::memory_order_relaxed);
  };
  for (const Index time : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
    std::vector<Contestant> contestants;
    for (ThreadPool* pool : {&one, &many}) contestants.push_back({[&, pool] { pool->parallel_for(time * 700, body); }});
    const std::vector<double> warm = measure(contestants, rounds, 10, 0), cold = measure(contestants, rounds, 1, 400);
    std::printf("%8td %9.1f %9.1f %7.2f %9.1f %9.1f %7.2f\n", time, warm[0], warm[1], warm[0] / warm[1], cold[0], cold[1],
                cold[0] / cold[1]);
  }
}

void products(Context& one, Context& many, int rounds) {
  std::printf("\nlinear layer rows x out x in, microseconds on one thread and on %d\n", many.threads());
  std::printf("%16s %9s %9s %7s %9s %9s %7s\n", "", "warm", "", "ratio", "cold", "", "ratio");
  constexpr Index kSizes[][3] = {{8, 10, 84},     {32, 10, 84},    {64, 10, 84},    {32, 84, 120},
                                 {64, 84, 120},   {64, 120, 256},  {128, 120, 256}, {128, 128, 128},
                                 {256, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}};
  for (const auto& [rows, out, in] : kSizes) {
    const ops::LinearProblem p = ops::linear_problem({}, {rows, in}, {in, out}).value();
    Tensor x({rows, in}), w({in, out}), y({rows, out});
    fill_uniform(x, -1, 1, Philox(1, 0));
    fill_uniform(w, -1, 1, Philox(1, 1));
    std::vector<Contestant> contestants;
    for (Context* context : {&one, &many}) {
      context->reserve_scratch(ops::linear_scratch(*context, p));
      contestants.push_back({[&, context] { ops::run_linear(*context, p, x.data(), w.data(), {}, y.data()); }});
    }
    const int some = rows * out * in > (1 << 24) ? 1 + rounds / 10 : rounds;
    const std::vector<double> warm = measure(contestants, some, 10, 0), cold = measure(contestants, some, 1, 400);
    std::printf("%5td x%4td x%4td %9.1f %9.1f %7.2f %9.1f %9.1f %7.2f\n", rows, out, in, warm[0], warm[1], warm[0] / warm[1],
                cold[0], cold[1], cold[0] / cold[1]);
  }
}

void training_steps(int threads, int rounds) {
  Dataset data{"noise", ByteTensor({640, 28, 28, 1}), LabelTensor({640})};
  for (Index i = 0; i < data.images.elements(); ++i)
    data.images.data()[i] = static_cast<std::uint8_t>(Philox(1, 2).below(static_cast<std::uint64_t>(i), 256));
  for (Index i = 0; i < 640; ++i) data.labels.data()[i] = static_cast<std::int32_t>(i % 10);
  struct Training {
    ContextOptions options;
    Context context{options};
    Model model = models::lenet5(1);
    Dataset const& data;
    Trainer trainer{context, model, data, {.epochs = 1000000}};
  };
  std::vector<ContextOptions> options{{.threads = 1}};
  for (const int spin : {0, 20, 50, 100, 200}) options.push_back({.threads = threads, .spin_microseconds = spin});
  for (const int shift : {13, 15, 17}) options.push_back({.threads = threads, .parallel_work = Index{1} << shift});
  for (const int shift : {17, 18, 20}) options.push_back({.threads = threads, .wake_work = Index{1} << shift});
  std::vector<std::unique_ptr<Training>> trainings;
  std::vector<Contestant> contestants;
  for (const ContextOptions& each : options) {
    trainings.push_back(std::unique_ptr<Training>(new Training{.options = each, .data = data}));
    contestants.push_back({[&trainer = trainings.back()->trainer] { trainer.try_step().value(); }});
  }
  const std::vector<double> medians = measure(contestants, rounds, 5, 0);
  std::printf("\nLeNet-5 training step, batch 64, microseconds\n%8s %8s %14s %10s %10s %7s\n", "threads", "spin",
              "parallel_work", "wake_work", "", "ratio");
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::printf("%8d %8d %14td %10td %10.1f %7.2f\n", options[i].threads, options[i].spin_microseconds,
                options[i].parallel_work, options[i].wake_work, medians[i], medians[0] / medians[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  if (argc > 3 || threads < 2 || rounds < 1) {
    std::fprintf(stderr, "usage: %s [threads [rounds]], with at least 2 threads\n", argv[0]);
    return 2;
  }
  Context one({.threads = 1}), many({.threads = threads});
  std::printf("%s kernels\n", one.kernels().name);
  empty_loops(threads, rounds);
  loops(threads, rounds);
  products(one, many, rounds);
  training_steps(threads, rounds);
  return 0;
}
