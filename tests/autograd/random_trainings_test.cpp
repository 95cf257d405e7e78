// SPDX-License-Identifier: Apache-2.0
// Drawn training steps: what a plan computes is what the tape computes, bit for bit, however it is captured and wherever it
// runs.
#include "random_training.hpp"

#include <cstring>
#include <vitro/autograd/replay.hpp>

using namespace vitro;
using namespace vitro_test;

namespace {

constexpr std::uint64_t kSteps = 3;

// Elements as numbers that can be compared: every NaN is the same.
std::vector<std::uint32_t> bits_of(const void* memory, DType type, Index count) {
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(bits.data(), memory, bits.size() * sizeof(std::uint32_t));
  if (type != DType::f32) return bits;
  for (std::uint32_t& b : bits) b = canonical_bits(std::bit_cast<float>(b));
  return bits;
}

using Trace = std::vector<std::vector<std::uint32_t>>;  // outputs of a step, and of all parameters after it

void add_parameters(const RandomTraining& training, Trace& trace) {
  for (const Tensor& p : training.parameters()) trace.push_back(bits_of(p.data(), DType::f32, p.elements()));
}

Trace run_eagerly(std::uint64_t number, std::size_t& nodes) {
  Context context({.isa = Isa::scalar});
  Tape tape(context);
  RandomTraining training(number);
  Trace trace;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    tape.clear();
    training.begin_step(step);
    for (const Var x : training.record(tape)) {
      const bool numbers = tape.tensors()[x.id].type == DType::i32;
      const void* const memory = numbers ? static_cast<const void*>(tape.labels(x).data()) : tape.value(x).data();
      trace.push_back(bits_of(memory, tape.tensors()[x.id].type, x.shape().elements()));
    }
    add_parameters(training, trace);
  }
  nodes = tape.nodes().size();
  return trace;
}

Trace run_captured(std::uint64_t number, Context& context, const CaptureOptions& options) {
  RandomTraining training(number);
  Tape tape(context, TapeMode::record);
  const std::vector<Var> outputs = training.record(tape);
  Replay replay(Plan::capture(tape, outputs, options), context);
  Trace trace;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    training.begin_step(step);
    replay.run();
    for (const Var x : outputs) {
      const Port& port = *replay.plan().port(x);
      trace.push_back(bits_of(replay.memory(port), port.type, port.shape.elements()));
    }
    add_parameters(training, trace);
  }
  return trace;
}

std::vector<std::unique_ptr<Context>> contexts() {
  std::vector<std::unique_ptr<Context>> list;
  for (const Isa isa : {Isa::scalar, Isa::blocked, Isa::avx2, Isa::avx512}) {
    if (auto context = Context::try_make({.isa = isa})) list.push_back(std::move(context).value());
  }
  for (int threads = 2; threads <= 4; ++threads) {
    if (auto context = Context::try_make({.threads = threads, .parallel_work = 0, .wake_work = 0})) {
      list.push_back(std::move(context).value());
    }
  }
  return list;
}

void compare(std::uint64_t first, std::uint64_t end) {
  const auto list = contexts();
  std::size_t all_nodes = 0;
  for (std::uint64_t number = first; number < end; ++number) {
    std::size_t nodes = 0;
    const Trace expected = run_eagerly(number, nodes);
    all_nodes += nodes;
    for (std::size_t i = 0; i < list.size(); ++i) {
      // All four ways to capture on the best instruction set, one of them on each of the others.
      const std::uint64_t ways = i == 3 ? 4 : 1;
      for (std::uint64_t way = 0; way < ways; ++way) {
        const std::uint64_t bits = number + i + way;
        const CaptureOptions options{.fuse = bits % 2 == 0, .reuse_memory = bits / 2 % 2 == 0};
        const Trace got = run_captured(number, *list[i], options);
        if (got == expected) continue;
        REQUIRE(got.size() == expected.size());
        const auto differing = std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin();
        FAIL_CHECK("training " << number << " on " << name_of(*list[i]) << ", fuse " << options.fuse << ", reuse "
                               << options.reuse_memory << ": tensor " << differing << " of " << got.size() << " differs");
        break;
      }
    }
  }
  INFO(all_nodes << " nodes");
  CHECK(all_nodes > 10 * (end - first));
}

}  // namespace

TEST_CASE("Drawn trainings give the same bits captured as on the tape: 1 to 500") { compare(1, 501); }
TEST_CASE("Drawn trainings give the same bits captured as on the tape: 501 to 1000") { compare(501, 1001); }
