// SPDX-License-Identifier: Apache-2.0
// Compares Vitro's kernels with those of other libraries, in alternation and in one process, and checks that they agree.
#include "../fma_peak.hpp"
#include "../machine.hpp"
#include "load.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "vitro_peer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace vitro_bench {
namespace {

constexpr const char* kUsage =
    "usage: %s [--threads N] [--seconds S] [--clock CLOCK] [--rows TEXT] [--peers NAME,...] [--json FILE]\n"
    "\n"
    "  --threads N     1 (default): everybody on one core. More: everybody with one thread and with N, on N cores\n"
    "  --seconds S     time for each contestant of a row, 1 by default\n"
    "  --clock CLOCK   wall (default), or processor: for one thread on a core where other programs run\n"
    "  --rows TEXT     only rows whose \"group: name\" contains TEXT\n"
    "  --peers NAMES   only these: openblas, mkl, onednn, opencv, libtorch, onnxruntime, ncnn\n"
    "  --json FILE     writes the figures there too\n"
    "\n"
    "Runs on the last N cores that it may use (taskset chooses others).\n"
    "Exit codes: 1 a peer's result is not Vitro's; 2 usage, or fewer than N cores; 3 the JSON cannot be written; 4 a library\n"
    "failed, with its message.\n";

struct Options {
  int threads = 1;
  double seconds = 1;
  Clock clock = Clock::wall;
  std::string rows, json;
  std::vector<std::string> peers;
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
    const auto number = [&](auto& target) {
      const auto [stopped, error] = std::from_chars(value.data(), value.data() + value.size(), target);
      return error == std::errc() && stopped == value.data() + value.size() && target > 0;
    };
    bool understood = true;
    if (name == "--threads") {
      understood = number(options.threads);
    } else if (name == "--seconds") {
      understood = number(options.seconds);
    } else if (name == "--clock") {
      options.clock = value == "processor" ? Clock::processor : Clock::wall;
      understood = value == "processor" || value == "wall";
    } else if (name == "--rows") {
      options.rows = value;
    } else if (name == "--peers") {
      options.peers = split(value);
    } else if (name == "--json") {
      options.json = value;
    } else {
      understood = false;
    }
    if (!understood) return false;
  }
  return argc % 2 == 1 && (options.threads == 1 || options.clock == Clock::wall);
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// NaN if there is one, or if the sizes differ.
double relative_error(const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (ours.size() != theirs.size()) return NAN;
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double distance = std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
    if (std::isnan(distance)) return NAN;
    most = std::max(most, distance);
  }
  return most / std::max(largest(ours), 1e-30);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Every peer that takes part in the row, with one thread and with as many as were asked for; for each number Vitro first.
std::vector<Contestant> make_contestants(const Row& row, const Problem& problem, const std::vector<Peer*>& peers,
                                         int most_threads) {
  std::vector<Contestant> contestants;
  for (const int threads : most_threads == 1 ? std::vector<int>{1} : std::vector<int>{1, most_threads}) {
    for (Peer* const peer : peers) {
      const bool wanted = peer == peers.front() || row.peers.empty() ||
                          std::find(row.peers.begin(), row.peers.end(), peer->name()) != row.peers.end();
      if (!wanted || !peer->set_threads(threads)) continue;
      if (auto job = peer->make(problem)) contestants.push_back({peer, threads, std::move(job)});
    }
  }
  return contestants;
}

// Runs all of them and compares their results with the first one's, which is Vitro's with one thread.
std::vector<Entry> check(const Row& row, const std::vector<Contestant>& contestants) {
  // Momentum shows from the second training step on.
  const int runs = row.operation == Operation::lenet_step ? 5 : 1;
  std::vector<Entry> entries;
  std::vector<float> expected;
  for (const Contestant& contestant : contestants) {
    contestant.peer->set_threads(contestant.threads);
    for (int i = 0; i < runs; ++i) contestant.job->run();
    const std::vector<float> values = contestant.job->result();
    if (entries.empty()) expected = values;
    Entry entry{contestant.peer->name(), contestant.threads, {}, relative_error(expected, values), false};
    // Sums in another order, of up to a million terms; a wrong layout or index is off by about 1.
    entry.agrees = entry.error <= 1e-4;
    if (!entry.agrees) {
      std::fprintf(stderr, "%s: %s: the result of %s differs from Vitro's by %g of its magnitude\n", row.group.c_str(),
                   row.name.c_str(), contestant.peer->name(), entry.error);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

RowResult run_row(const Row& row, const std::vector<Peer*>& peers, const Options& options) {
  const RowData data(row);
  const std::vector<Contestant> contestants = make_contestants(row, data.problem(), peers, options.threads);
  RowResult result{row.group, row.name, row.flops(), 0, 0, check(row, contestants)};
  std::vector<double> peaks, peaks_together;
  // After a call with several threads those of OpenBLAS and OpenMP spin for some 20 ms, on the core of whoever comes next.
  const SamplerOptions sampler{.clock = options.clock, .seconds = options.seconds, .pause = options.threads == 1 ? 0 : 0.1};
  const std::vector<Timed> timed = measure(contestants, sampler, [&] {
    peaks.push_back(fma_peak(vitro_isa()));
    peaks_together.push_back(options.threads == 1 ? peaks.back() : fma_peak_together(vitro_isa(), options.threads));
  });
  for (std::size_t i = 0; i < timed.size(); ++i) result.entries[i].timed = timed[i];
  result.peak = median(peaks);
  result.peak_together = median(peaks_together);
  return result;
}

int run(const Options& options) {
  // These would choose OpenBLAS's kernels by hand, and badly.
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  const std::vector<int> cores = pin(options.threads);
  if (static_cast<int>(cores.size()) < options.threads) {
    std::fprintf(stderr,
                 "--threads %d needs as many cores, and this program may use %zu: on fewer, threads that wait for each "
                 "other would be measured\n",
                 options.threads, cores.size());
    return 2;
  }
  LoadedPeers loaded = load_peers(".", options.peers);
  loaded.peers.insert(loaded.peers.begin(), &vitro_peer());
  const Machine machine{processor_name(), compiler_version(), utc_now(), options.threads, cores,
                        options.seconds,  options.clock};
  Versions versions{{}, loaded.missing};
  for (Peer* const peer : loaded.peers) versions.peers.emplace_back(peer->name(), peer->version());
  print_head(machine, versions);

  std::vector<RowResult> results;
  for (const Row& row : all_rows()) {
    if (options.threads > 1 && !row.more_threads) continue;
    if ((row.group + ": " + row.name).find(options.rows) == std::string::npos) continue;
    results.push_back(run_row(row, loaded.peers, options));
    print_row(results.back());
  }
  print_summary(results, 1);
  if (options.threads > 1) print_summary(results, options.threads);
  if (!options.json.empty() && !write_json(options.json, machine, versions, results)) {
    std::fprintf(stderr, "cannot write %s\n", options.json.c_str());
    return 3;
  }
  const bool agree = std::all_of(results.begin(), results.end(), [](const RowResult& row) {
    return std::all_of(row.entries.begin(), row.entries.end(), [](const Entry& entry) { return entry.agrees; });
  });
  return agree ? 0 : 1;
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
    std::fprintf(stderr, "peers_bench: %s\n", error.what());
    return 4;
  }
}
