// SPDX-License-Identifier: Apache-2.0
// Packing the arena: nothing that lives at the same time overlaps, the bound is the bound, and LeNet-5 comes near it.
#include "../../autograd/arena.hpp"

#include "../ops/support.hpp"

#include <algorithm>
#include <vitro/autograd/plan.hpp>
#include <vitro/models/lenet.hpp>
#include <vitro/models/train_step.hpp>

using namespace vitro;
using namespace vitro_test;

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// The largest sum of sizes over all steps, step by step.
std::size_t bound_by_steps(const std::vector<Lifetime>& lifetimes) {
  std::size_t largest = 0;
  for (std::uint32_t step = 0; step < 300; ++step) {
    std::size_t sum = 0;
    for (const Lifetime& l : lifetimes) sum += l.first <= step && step <= l.last ? rounded(l.bytes) : 0;
    largest = std::max(largest, sum);
  }
  return largest;
}

// Nothing overlaps in time and place, nothing reaches out of the arena, and all begin at a cache line.
void check_layout(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
  REQUIRE(layout.offsets.size() == lifetimes.size());
  bool sound = layout.bytes >= layout.lower_bound && layout.bytes % 64 == 0;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const std::size_t begin = layout.offsets[i], end = begin + lifetimes[i].bytes;
    sound = sound && begin % 64 == 0 && end <= layout.bytes;
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
      const bool overlap = begin < layout.offsets[j] + lifetimes[j].bytes && layout.offsets[j] < end;
      sound = sound && !(meet && overlap);
    }
  }
  CHECK(sound);
}

std::vector<Lifetime> drawn_lifetimes(Draw& draw) {
  std::vector<Lifetime> lifetimes(static_cast<std::size_t>(draw.range(0, 60)));
  const Index steps = draw.range(1, 200), longest = draw.range(0, 40), kind = draw.range(0, 3);
  for (Lifetime& l : lifetimes) {
    l.first = static_cast<std::uint32_t>(draw.range(0, steps));
    l.last = l.first + static_cast<std::uint32_t>(draw.one_in(8) ? draw.range(0, 80) : draw.range(0, longest));
    const Index most = kind == 0 ? 64 : kind == 1 ? 1000 : 100000;
    l.bytes = draw.one_in(10) ? 0 : static_cast<std::size_t>(kind == 3 ? 64 * (1 + draw.range(0, 3)) : draw.range(1, most));
  }
  return lifetimes;
}

std::string sizes(const Plan& plan) {
  return std::to_string(plan.arena_bytes()) + " bytes, lower bound " + std::to_string(plan.arena_lower_bound());
}

std::shared_ptr<const Plan> lenet_training(Context& context, Index batch, bool clip) {
  Model model = models::lenet5();
  std::vector<Parameter> velocity = model.parameters();
  Tape tape(context, TapeMode::record);
  StepInputs inputs{.pixels = tape.placeholder({batch, 28, 28, 1}, DType::u8),
                    .labels = tape.placeholder({batch}, DType::i32),
                    .hyper = tape.placeholder({3}),
                    .max_norm = clip ? tape.placeholder(Shape()) : Var{},
                    .previous_ok = tape.placeholder(Shape(), DType::i32)};
  const StepResults results = record_train_step(tape, model, velocity, inputs);
  return Plan::capture(tape, std::vector<Var>{results.loss, results.correct, results.ok, results.squared_norm});
}

}  // namespace

TEST_CASE("Blocks that live at the same time never overlap, in 600 drawn sets of lifetimes") {
  Draw draw(1);
  std::size_t at_bound = 0, over = 0;
  for (int round = 0; round < 600; ++round) {
    const std::vector<Lifetime> lifetimes = drawn_lifetimes(draw);
    const ArenaLayout packed = pack_arena(lifetimes), spread = spread_arena(lifetimes);
    check_layout(lifetimes, packed);
    check_layout(lifetimes, spread);
    CHECK(packed.lower_bound == bound_by_steps(lifetimes));
    CHECK(spread.lower_bound == packed.lower_bound);
    CHECK(packed.bytes <= spread.bytes);
    (packed.bytes == packed.lower_bound ? at_bound : over) += 1;
    const ArenaLayout again = pack_arena(lifetimes);
    CHECK((again.offsets == packed.offsets && again.bytes == packed.bytes));
  }
  INFO(at_bound << " at the bound, " << over << " over it");
  CHECK(at_bound > 5 * over);  // 593 of 600 when this was written
}

TEST_CASE("Spread, every block has memory of its own") {
  const std::vector<Lifetime> lifetimes = {{100, 0, 0}, {1, 1, 1}, {0, 2, 2}, {64, 3, 3}};
  const ArenaLayout layout = spread_arena(lifetimes);
  CHECK(layout.offsets == std::vector<std::size_t>{0, 128, 192, 192});
  CHECK(layout.bytes == 256);
  CHECK(layout.lower_bound == 128);
}

TEST_CASE("Blocks that follow one another share memory, and those that meet in one step only do not") {
  const std::vector<Lifetime> after = {{64, 0, 4}, {64, 5, 9}};
  CHECK(pack_arena(after).bytes == 64);
  const std::vector<Lifetime> meet = {{64, 0, 5}, {64, 5, 9}};
  CHECK(pack_arena(meet).bytes == 128);
}

TEST_CASE("Too many pairs for the thorough orders: the order of time alone is sound") {
  Draw draw(2);
  std::vector<Lifetime> lifetimes(6000);  // all of them meet around step 150: 18 million pairs
  for (Lifetime& l : lifetimes) {
    l = {static_cast<std::size_t>(draw.range(1, 2000)), static_cast<std::uint32_t>(draw.range(0, 150)),
         static_cast<std::uint32_t>(draw.range(150, 299))};
  }
  const ArenaLayout layout = pack_arena(lifetimes);
  CHECK(layout.lower_bound == bound_by_steps(lifetimes));
  check_layout(lifetimes, layout);
}

TEST_CASE("LeNet-5's training at batch 64 needs at most 1.6 MB, within 10 % of the bound") {
  Context context;
  for (const bool clip : {false, true}) {
    const auto plan = lenet_training(context, 64, clip);
    WARN("LeNet-5, training at batch 64" << (clip ? ", clipped" : "") << ": " << sizes(*plan));
    CHECK(plan->arena_bytes() <= 1600000);
    CHECK(static_cast<double>(plan->arena_bytes()) <= 1.1 * static_cast<double>(plan->arena_lower_bound()));
  }
}

TEST_CASE(
    "LeNet-5's training at batch 1, which stores no gradient of a linear layer's weights, comes within 10 % of the bound") {
  Context context;
  constexpr std::size_t kGradients = (256 * 120 + 120 * 84 + 84 * 10) * sizeof(float);
  for (const bool clip : {false, true}) {
    const auto plan = lenet_training(context, 1, clip);
    WARN("LeNet-5, training at batch 1" << (clip ? ", clipped" : "") << ": " << sizes(*plan));
    CHECK(plan->arena_bytes() < kGradients / 4);
    CHECK(static_cast<double>(plan->arena_bytes()) <= 1.1 * static_cast<double>(plan->arena_lower_bound()));
  }
}

TEST_CASE("LeNet-5's inference comes within 5 % of the bound") {
  Context context;
  for (const Index batch : {1, 64}) {
    Model model = models::lenet5();
    Tape tape(context, TapeMode::record);
    const Var scores = model.forward(tape.placeholder({batch, 28, 28, 1}), model.place_constants(tape));
    const auto plan = Plan::capture(tape, std::vector<Var>{scores});
    WARN("LeNet-5, inference at batch " << batch << ": " << sizes(*plan));
    CHECK(static_cast<double>(plan->arena_bytes()) <= 1.05 * static_cast<double>(plan->arena_lower_bound()));
  }
}

TEST_CASE("The arena's map is the layout: no two tensors of LeNet-5's training share memory while both are needed") {
  Context context;
  const auto plan = lenet_training(context, 16, true);
  std::vector<Lifetime> lifetimes;
  ArenaLayout layout;
  for (const Plan::ArenaBlock& block : plan->arena_map()) {
    lifetimes.push_back({block.bytes, block.first, block.last});
    layout.offsets.push_back(block.offset);
  }
  layout.bytes = plan->arena_bytes();
  layout.lower_bound = plan->arena_lower_bound();
  check_layout(lifetimes, layout);
  CHECK(bound_by_steps(lifetimes) == layout.lower_bound);
}
