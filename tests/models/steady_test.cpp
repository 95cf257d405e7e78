// SPDX-License-Identifier: Apache-2.0
// The steady state: a captured training step and an inference touch neither the heap, nor a lock, nor the kernel.
#include "../ops/support.hpp"
#include "../support/heap_calls.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <vitro/autograd/replay.hpp>
#include <vitro/models/lenet.hpp>
#include <vitro/models/session.hpp>
#include <vitro/models/train_step.hpp>

using namespace vitro;
using namespace vitro_test;

namespace {

// LeNet-5's training step, clipped and guarded, with all that it runs on.
struct TrainingRun {
  Context context;
  Model model = models::lenet5();
  std::vector<Parameter> velocity = model.parameters();
  Tape tape{context, TapeMode::record};
  BasicTensor<std::uint8_t> pixels{{4, 28, 28, 1}};
  LabelTensor labels{{4}}, ok{Shape()};
  Tensor hyper{{3}}, max_norm{Shape()};
  std::unique_ptr<Replay> replay;

  explicit TrainingRun(const ContextOptions& options) : context(options) {
    Draw draw(3);
    for (std::uint8_t& p : pixels.span()) p = static_cast<std::uint8_t>(draw.range(0, 255));
    hyper.data()[0] = 0.01F;
    max_norm.data()[0] = 1;
    ok.data()[0] = 1;
    const StepResults results = record_train_step(tape, model, velocity,
                                                  {.pixels = tape.input(BasicView<const std::uint8_t>(pixels)),
                                                   .labels = tape.input(labels.view()),
                                                   .hyper = tape.input(hyper.view()),
                                                   .max_norm = tape.input(max_norm.view()),
                                                   .previous_ok = tape.input(ok.view())});
    replay = std::make_unique<Replay>(Plan::capture(tape, std::vector<Var>{results.loss, results.ok}), context);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      hyper.data()[0] *= 0.999F;
      replay->run();
    }
  }
};

struct Inference {
  std::unique_ptr<Session> session;
  Tensor image = Draw(4).tensor({1, 28, 28, 1}), scores{{1, 10}};

  explicit Inference(const ContextOptions& options)
      : session(Session::try_make(models::lenet5(), {.context = options}).value()) {}
  void run(int runs) {
    for (int i = 0; i < runs; ++i) session->run(image.data(), scores.data());
  }
};

// What `body` asked for.
CallCounts counted(const std::function<void()>& body) {
  const CallCounts before = call_counts();
  body();
  const CallCounts after = call_counts();
  return {after.allocations - before.allocations, after.frees - before.frees, after.locks - before.locks};
}

void check_none(const CallCounts& counts, bool locks_too) {
  CHECK(counts.allocations == 0);
  CHECK(counts.frees == 0);
  if (locks_too) CHECK(counts.locks == 0);
}

}  // namespace

TEST_CASE("The counters count") {
  const CallCounts counts = counted([] {
    void* volatile const a = ::operator new(32);  // called by name: a new expression may be left out
    const AlignedArray<float> b = allocate_array<float>(100);
    std::mutex mutex;
    const std::lock_guard lock(mutex);
    ::operator delete(a);
  });
  CHECK(counts.allocations >= 2);
  CHECK(counts.frees >= 2);
  CHECK(counts.locks == 1);
}

TEST_CASE("1,000 steady training steps neither allocate, nor free, nor lock") {
  TrainingRun step({});
  step.run(2);
  check_none(counted([&] { step.run(1000); }), true);
}

TEST_CASE("10,000 steady inferences neither allocate, nor free, nor lock") {
  Inference inference({});
  inference.run(2);
  check_none(counted([&] { inference.run(10000); }), true);
}

TEST_CASE("With two threads they neither allocate nor free") {
  const ContextOptions two{.threads = 2, .parallel_work = 0, .wake_work = 0};
  if (!Context::try_make(two)) SKIP("this build has no threads");
  TrainingRun step(two);
  step.run(2);
  check_none(counted([&] { step.run(200); }), false);
  Inference inference(two);
  inference.run(2);
  check_none(counted([&] { inference.run(2000); }), false);
}

TEST_CASE("Nor do they make a system call: the kernel lets none pass") {
  const auto asks = [](void*) { static_cast<void>(getppid()); };
  const auto works = [](void*) {};
  const int checked = runs_without_system_calls(works, nullptr);
  if (checked < 0) SKIP("this system has no strict seccomp mode");
  REQUIRE(checked == 1);
  REQUIRE(runs_without_system_calls(asks, nullptr) == 0);
  TrainingRun step({});
  CHECK(runs_without_system_calls([](void* s) { static_cast<TrainingRun*>(s)->run(1000); }, &step) == 1);
  Inference inference({});
  CHECK(runs_without_system_calls([](void* i) { static_cast<Inference*>(i)->run(10000); }, &inference) == 1);
}
