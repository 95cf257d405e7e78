// SPDX-License-Identifier: Apache-2.0
// Replay: where tensors lie, what is refused by name, and numbers that change from run to run without a new capture.
#include "../../autograd/replay.hpp"

#include "../ops/support.hpp"
#include "../support/errors.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>
#include <vitro/autograd/functions.hpp>
#include <vitro/models/recipe.hpp>

using namespace vitro;
using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// relu(x[2, 3] * w[3, 2]), x a placeholder, w a parameter.
struct Small {
  Context context;
  Tape tape{context, TapeMode::record};
  Tensor weights{{3, 2}};
  Var x = tape.placeholder({2, 3});
  Var w = tape.parameter(weights);
  Var y = relu(linear(x, w));
  std::shared_ptr<const Plan> plan = Plan::capture(tape, std::vector<Var>{y});

  Small() {
    for (Index i = 0; i < 6; ++i) weights.data()[i] = static_cast<float>(i + 1);
  }
};

Tensor counting(const Shape& shape) {
  Tensor result(shape);
  for (Index i = 0; i < result.elements(); ++i) result.data()[i] = static_cast<float>(i);
  return result;
}

std::vector<float> elements(ConstTensorView view) { return {view.data(), view.data() + view.elements()}; }

const std::vector<float> kProduct = {13, 16, 40, 52};  // [[0, 1, 2], [3, 4, 5]] * [[1, 2], [3, 4], [5, 6]]

}  // namespace

TEST_CASE("Inputs and outputs lie in the replay's memory or where the caller says") {
  Small s;
  const Tensor x = counting({2, 3});
  Replay own(s.plan, s.context);
  std::copy_n(x.data(), 6, static_cast<float*>(const_cast<void*>(own.memory(*s.plan->port(s.x)))));
  own.run();
  CHECK(elements(own.try_value(s.y).value()) == kProduct);

  Replay given(s.plan, s.context, PortMemory::given);
  Tensor y({2, 2});
  CHECK(given.try_set(s.x, x.view()).ok());
  CHECK(given.try_set(s.y, ConstTensorView(y.view())).ok());
  given.run();
  CHECK(elements(y.view()) == kProduct);
  CHECK(Replay::memory_bytes(*s.plan, PortMemory::given) == s.plan->arena_bytes());
  CHECK(Replay::memory_bytes(*s.plan) == s.plan->arena_bytes() + 64 + 64);

  Tensor other_weights({3, 2});  // +0
  CHECK(own.try_set(s.w, other_weights.view()).ok());
  own.run();
  CHECK(elements(own.try_value(s.y).value()) == std::vector<float>{0, 0, 0, 0});
  given.run();  // shares nothing but the plan
  CHECK(elements(y.view()) == kProduct);
}

TEST_CASE("Memory that a replay is lent must be large enough and aligned") {
  Small s;
  const std::size_t bytes = Replay::memory_bytes(*s.plan);
  alignas(64) std::byte memory[1024];
  REQUIRE(bytes <= 512);
  const auto refusal = [&](std::span<std::byte> lent) {
    return Replay::try_make(s.plan, s.context, PortMemory::own, lent).error().message();
  };
  CHECK_THAT(refusal({memory, bytes - 1}), ContainsSubstring(std::to_string(bytes - 1) + " bytes") &&
                                               ContainsSubstring(std::to_string(bytes) + " bytes at a multiple of 64"));
  CHECK_THAT(refusal({memory + 4, bytes}), ContainsSubstring("4 beyond a multiple of 64"));
  std::fill(std::begin(memory), std::end(memory), std::byte{0x5a});
  Replay replay(s.plan, s.context, PortMemory::own, {memory, bytes});
  CHECK(replay.memory(*s.plan->port(s.y)) >= memory);
  CHECK(replay.memory(*s.plan->port(s.y)) < memory + bytes);
  const Tensor x = counting({2, 3});
  CHECK(replay.try_set(s.x, x.view()).ok());
  replay.run();
  CHECK(elements(replay.try_value(s.y).value()) == kProduct);
  CHECK(std::all_of(memory + bytes, std::end(memory), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_CASE("A tensor that is not what was captured is refused by name, with what was captured") {
  Small s;
  Replay replay(s.plan, s.context);
  const auto refusal = [&](Var x, auto view) {
    const Status status = replay.try_set(x, view);
    REQUIRE_FALSE(status.ok());
    return status.error().message();
  };
  const Tensor right({2, 3}), wrong({3, 3}), turned({3, 2});
  const LabelTensor numbers({2, 3});
  CHECK_THAT(refusal(s.x, wrong.view()), ContainsSubstring("%0 was captured as f32[2, 3]") && ContainsSubstring("[3, 3]") &&
                                             ContainsSubstring("another plan"));
  CHECK_THAT(refusal(s.x, turned.view().permute({1, 0})), ContainsSubstring("f32[2, 3]") && ContainsSubstring("strides"));
  CHECK_THAT(refusal(s.x, numbers.view()), ContainsSubstring("f32[2, 3]") && ContainsSubstring("i32"));
  CHECK_THAT(refusal(s.x, ConstTensorView(nullptr, Shape({2, 3}))), ContainsSubstring("null"));
  const auto* const odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(right.data()) + 1);
  CHECK_THAT(refusal(s.x, ConstTensorView(odd, Shape({2, 3}))), ContainsSubstring("multiple of its element"));
  CHECK_THAT(refusal(Var{&s.tape, TensorId(2)}, right.view()), ContainsSubstring("%2") && ContainsSubstring("no input"));
  CHECK_THAT(replay.try_value(Var{&s.tape, TensorId(2)}).error().message(), ContainsSubstring("%2"));
}

TEST_CASE("Outputs that share their elements with something else lie there") {
  Context context;
  Tape tape(context, TapeMode::record);
  const Tensor fixed = counting({4});
  Tensor state = counting({4});
  const Var x = tape.placeholder({2, 2}), c = tape.constant(fixed.view()), p = tape.parameter(state);
  const Var h = relu(x), flat = reshape(h, {4}), same = reshape(x, {4}), fixed_row = reshape(c, {1, 4});
  const std::vector<Var> outputs = {h, flat, same, fixed_row, p, c};
  Replay replay(Plan::capture(tape, outputs), context);
  const Tensor values = counting({2, 2});
  CHECK(replay.try_set(x, values.view()).ok());
  replay.run();
  for (const Var output : {h, flat, same, fixed_row, p, c}) {
    CHECK(elements(replay.try_value(output).value()) == std::vector<float>{0, 1, 2, 3});
  }
  CHECK(replay.try_value(flat).value().data() == replay.try_value(h).value().data());
  CHECK(replay.try_value(same).value().data() == values.data());
  CHECK(replay.try_value(p).value().data() == state.data());
  CHECK(replay.try_value(c).value().data() != fixed.data());  // a copy
  CHECK_THAT(replay.try_set(flat, fixed.view()).error().message(), ContainsSubstring("cannot be set by itself"));
}

TEST_CASE("A constant that is asked for lies as it was given, also where a product multiplies by it") {
  Context context;
  Tape tape(context, TapeMode::record);
  const Tensor x = counting({2, 40}), weights = counting({40, 33});
  const Var w = tape.constant(weights.view()), y = linear(tape.input(x.view()), w);
  for (const std::vector<Var>& outputs : {std::vector<Var>{y, w}, std::vector<Var>{w, y}}) {
    Replay replay(Plan::capture(tape, outputs), context);
    replay.run();
    CHECK(elements(replay.try_value(w).value()) == elements(weights.view()));
  }
}

TEST_CASE("A plan needs neither its tape, nor its context, nor the constants' memory") {
  std::shared_ptr<const Plan> plan;
  Var y;
  const Tensor x = counting({2, 3});
  std::vector<std::byte*> bases;
  TensorId output{};
  {
    Context context;
    Tape tape(context, TapeMode::record);
    Tensor weights({3, 2});
    for (Index i = 0; i < 6; ++i) weights.data()[i] = static_cast<float>(i + 1);
    y = linear(tape.input(x.view()), tape.constant(weights.view()));
    output = y.id;
    plan = Plan::capture(tape, std::vector<Var>{y});
    for (float& w : weights.span()) w = -1;
  }
  Context context;
  Replay replay(plan, context);
  replay.run();
  CHECK(elements(replay.try_value({nullptr, output}).value()) == kProduct);
}

TEST_CASE("A pool's positions may be asked for: bytes, or i32 for windows of more than 256") {
  Context context;
  for (const bool large : {false, true}) {
    Tape tape(context, TapeMode::record);
    const ops::Pool2dAttrs attrs{.kernel_h = 17, .kernel_w = static_cast<std::uint16_t>(large ? 17 : 2)};
    const Tensor values = counting({1, 17, 17, 1});  // rising: the last of a window is its largest
    const Shape shape({1, 1, large ? 1 : 16, 1});
    const TensorId y = tape.make(shape), argmax = tape.make(shape, large ? DType::i32 : DType::u8);
    tape.emit(MaxPool2d{tape.input(values.view()).id, y, argmax, attrs});
    const Var output{&tape, argmax};
    Replay replay(Plan::capture(tape, std::vector<Var>{output}), context);
    replay.run();
    const void* const memory = replay.memory(*replay.plan().port(output));
    CHECK((large ? *static_cast<const std::int32_t*>(memory) : *static_cast<const std::uint8_t*>(memory)) ==
          (large ? 288 : 33));
  }
}

TEST_CASE("Memory of a replay's own begins on a cache line for each port") {
  Context context;
  Tape tape(context, TapeMode::record);
  const ops::Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2};
  const Var x = tape.placeholder({1, 4, 4, 1});
  const Shape shape({1, 3, 3, 1});
  const Var y{&tape, tape.make(shape)}, argmax{&tape, tape.make(shape, DType::u8)};  // 9 bytes
  tape.emit(MaxPool2d{x.id, y.id, argmax.id, attrs});
  const Replay replay(Plan::capture(tape, std::vector<Var>{argmax, y, relu(y)}), context);
  for (const Port& port : replay.plan().ports()) {
    CHECK(reinterpret_cast<std::uintptr_t>(replay.memory(port)) % kAlignment == 0);
  }
}

TEST_CASE("Tensors without elements are captured like others") {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor w({3, 2}), v({3, 2}), rates({3});
  w.data()[0] = 1.5F;
  rates.data()[0] = 1;
  const Var x = tape.placeholder({0, 3}), p = tape.parameter(w);
  const Var y = relu(linear(x, p)), loss = sum_to(y, Shape());
  tape.backward(loss);
  sgd_update(p, tape.state(v), tape.gradient(p), tape.input(rates.view()));
  Replay replay(Plan::capture(tape, std::vector<Var>{y, loss}), context);
  replay.run();
  CHECK(replay.try_value(y).value().elements() == 0);
  CHECK(replay.try_value(loss).value().data()[0] == 0.0F);
  CHECK(w.data()[0] == 1.5F);
}

TEST_CASE("Replays of one plan run in threads of their own, each with its own context") {
  Small s;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Context context;
      Replay replay(s.plan, context);
      const Tensor x = counting({2, 3});
      if (!replay.try_set(s.x, x.view())) ++wrong[t];
      for (int i = 0; i < 2000; ++i) {
        replay.run();
        wrong[t] += elements(replay.try_value(s.y).value()) != kProduct;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("Rate, momentum, dropout step and guard change from run to run: 60 steps of a warm-up with falling momentum") {
  Recipe recipe = seed_recipe();
  recipe.rate = 0.3F;
  recipe.momentum_drop = 0.1F;
  recipe.momentum_epochs = 1;
  recipe.weight_decay = 0.01F;
  const Tensor x = Draw(1).tensor({6, 5});
  const LabelTensor labels = Draw(2).labels(6, 3);
  struct World {
    Tensor w1 = Draw(3).tensor({5, 8}), w2 = Draw(4).tensor({8, 3}), v1{{5, 8}}, v2{{8, 3}}, hyper{{3}};
    LabelTensor step{Shape()}, guard{Shape()};
  };
  const auto record = [&](Tape& tape, World& m) {
    const Var p1 = tape.parameter(m.w1), p2 = tape.parameter(m.w2), hyper = tape.input(m.hyper.view());
    const Var h = dropout(relu(linear(tape.input(x.view()), p1)), tape.input(m.step.view()), {.seed_low = 5, .rate = 0.25F});
    const Var loss = cross_entropy(linear(h, p2), tape.input(labels.view()));
    tape.backward(loss);
    const Var guard = tape.input(m.guard.view());
    sgd_update(p1, tape.state(m.v1), tape.gradient(p1), hyper, guard);
    sgd_update(p2, tape.state(m.v2), tape.gradient(p2), hyper, guard);
    return loss;
  };
  const auto set = [&](World& m, int step) {
    const Hyper h = hyper_at(recipe, step / 6, 10, step % 6, 6);
    m.hyper.data()[0] = h.rate, m.hyper.data()[1] = h.momentum, m.hyper.data()[2] = h.weight_decay;
    m.step.data()[0] = step;
    m.guard.data()[0] = step % 7 == 3 ? 0 : 1;
  };
  World eager, captured;
  Context context;
  Tape tape(context), recording(context, TapeMode::record);
  const Var loss = record(recording, captured);
  Replay replay(Plan::capture(recording, std::vector<Var>{loss}), context);
  std::vector<float> losses;
  for (int step = 0; step < 60; ++step) {
    set(eager, step);
    set(captured, step);
    const Tensor before = captured.w1;
    tape.clear();
    const float expected = tape.item(record(tape, eager));
    replay.run();
    losses.push_back(*replay.try_value(loss).value().data());
    REQUIRE(losses.back() == expected);
    require_same_bits(captured.w1, eager.w1);
    require_same_bits(captured.v2, eager.v2);
    CHECK(std::equal(before.data(), before.data() + 40, captured.w1.data()) == (step % 7 == 3));
  }
  CHECK(losses.back() < 0.7F * losses.front());
}
