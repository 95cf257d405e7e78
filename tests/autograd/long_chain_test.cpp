// SPDX-License-Identifier: Apache-2.0
// A hundred thousand nodes are recorded, captured, run and destroyed on a small stack: nothing recurses along a chain.
#include <catch2/catch_test_macros.hpp>
#include <vitro/autograd/functions.hpp>
#include <vitro/autograd/replay.hpp>

#if __has_include(<pthread.h>)
#include <pthread.h>

using namespace vitro;

namespace {

constexpr int kNodes = 100000;
constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // 2.6 bytes a node

// Calls `body` in a thread with that stack.
template <class Body>
void on_small_stack(const Body& body) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  const auto run = [](void* argument) -> void* {
    (*static_cast<const Body*>(argument))();
    return nullptr;
  };
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, &attributes, run, const_cast<Body*>(&body)) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

struct Outcome {
  float value = 0, gradient = 0, updated = 0;
  std::size_t steps = 0;
};

// x + p, relu, x + p, relu, ...: with x = 1 and p = 1 the value is 1 + kNodes / 2, and the gradient of p is kNodes / 2.
Outcome run_chain(bool fuse, bool train) {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor p({1}), v({1}), x({1}), hyper({3});
  p.data()[0] = x.data()[0] = 1;
  hyper.data()[0] = 0x1p-10F;
  const Var parameter = tape.parameter(p);
  Var y = tape.input(x.view());
  for (int i = 0; i < kNodes / 2; ++i) y = relu(add(y, parameter));
  std::vector<Var> outputs = {y};
  if (train) {
    tape.backward(y);
    outputs.push_back(tape.gradient(parameter));
    sgd_update(parameter, tape.state(v), outputs.back(), tape.input(hyper.view()));
  }
  Replay replay(Plan::capture(tape, outputs, {.fuse = fuse}), context);
  replay.run();
  const auto value = [&](std::size_t i) { return *replay.try_value(outputs[i]).value().data(); };
  return {value(0), train ? value(1) : 0, p.data()[0], replay.plan().steps()};
}

}  // namespace

TEST_CASE("A chain of 100,000 nodes is captured and destroyed on a stack of 256 KiB") {
  for (const bool fuse : {true, false}) {
    Outcome outcome;
    on_small_stack([&] { outcome = run_chain(fuse, false); });
    CHECK(outcome.value == 1 + kNodes / 2);
    CHECK(outcome.steps == (fuse ? (kNodes + 5) / 6 : kNodes));
  }
}

TEST_CASE("So is its training, of 350,000 nodes") {
  Outcome outcome;
  on_small_stack([&] { outcome = run_chain(true, true); });
  CHECK(outcome.value == 1 + kNodes / 2);
  CHECK(outcome.gradient == kNodes / 2);
  CHECK(outcome.updated == 1 - 0x1p-10F * (kNodes / 2));
}
#endif
