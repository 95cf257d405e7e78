// SPDX-License-Identifier: Apache-2.0
// Times several contestants in alternation.
#include "sampler.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace vitro_bench {
namespace {

double read_clock(clockid_t clock) {
  std::timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void sleep_for(double seconds) {
  std::timespec time{};
  time.tv_sec = static_cast<std::time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  nanosleep(&time, nullptr);
}

Distribution distribution(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto rank = [&](double share) {
    const double position = std::ceil(share * static_cast<double>(seconds.size()));
    return seconds[static_cast<std::size_t>(std::max(position, 1.0)) - 1];
  };
  return {seconds.size(), rank(0.5), rank(0.98), rank(0.999), seconds.back()};
}

struct Turns {
  std::vector<double> seconds;
  double wall = 0, processor = 0;
};

void turn(const Contestant& contestant, clockid_t clock, double budget, std::size_t samples, Turns& turns) {
  constexpr double kWarm = 1e-3;
  contestant.peer->set_threads(contestant.threads);
  const double processor = read_clock(CLOCK_PROCESS_CPUTIME_ID), begin = wall_seconds();
  double now = begin;
  do {
    contestant.job->run();
    now = wall_seconds();
  } while (now - begin < kWarm);
  for (const std::size_t end = turns.seconds.size() + samples; turns.seconds.size() < end;) {
    const double start = read_clock(clock);
    contestant.job->run();
    turns.seconds.push_back(read_clock(clock) - start);
    now = wall_seconds();
    if (now - begin >= budget) break;
  }
  turns.wall += now - begin;
  turns.processor += read_clock(CLOCK_PROCESS_CPUTIME_ID) - processor;
}

}  // namespace

double wall_seconds() { return read_clock(CLOCK_MONOTONIC); }

std::vector<Timed> measure(const std::vector<Contestant>& contestants, const SamplerOptions& options,
                           const std::function<void()>& each_round) {
  const clockid_t clock = options.clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  std::vector<Turns> turns(contestants.size());
  const auto samples = static_cast<std::size_t>(std::max(options.max_samples / options.rounds, 1));
  const double limit = options.seconds * static_cast<double>(contestants.size());
  double spent = 0;
  // A round of calls that take longer than a turn's budget costs what it costs; then there are fewer rounds, but three.
  for (int round = 0; round < options.rounds && (round < 3 || spent < limit); ++round) {
    each_round();
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const std::size_t who = (i + static_cast<std::size_t>(round)) % contestants.size();
      sleep_for(options.pause);
      const double before = turns[who].wall;
      turn(contestants[who], clock, options.seconds / options.rounds, samples, turns[who]);
      spent += turns[who].wall - before;
    }
  }
  std::vector<Timed> timed;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    timed.push_back({distribution(turns[i].seconds), turns[i].processor / turns[i].wall / contestants[i].threads});
  }
  return timed;
}

}  // namespace vitro_bench
