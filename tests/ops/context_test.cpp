// SPDX-License-Identifier: Apache-2.0
// Contexts: the forced instruction set is the one that runs, scratch memory grows and stays aligned, loops are split or not.
#include "../../ops/context.hpp"

#include "../../ops/linear.hpp"
#include "../support/errors.hpp"
#include "support.hpp"

#include <array>
#include <atomic>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <string_view>
#include <thread>

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// The forced instruction set is part of every comparison in this folder, unless the machine lacks it.
void check_forced(Isa isa, std::string_view name) {
  const Result<std::unique_ptr<Context>> context = Context::try_make({.isa = isa});
  if (!context) {
    CHECK(context.error().code() == ErrorCode::unsupported);
    CHECK_THAT(context.error().message(), ContainsSubstring(std::string(name)) && ContainsSubstring("it has "));
    SKIP("the operations were not compared on " << name << ", which this machine lacks");
  }
  CHECK(context.value()->kernels().isa == isa);
  CHECK(std::string_view(context.value()->kernels().name).starts_with(name));
  bool compared = false;
  for (const auto& each : make_contexts()) compared = compared || each->kernels().isa == isa;
  CHECK(compared);
}

}  // namespace

TEST_CASE("a context forced to scalar runs scalar kernels") { check_forced(Isa::scalar, "scalar"); }
TEST_CASE("a context forced to blocked runs blocked kernels") { check_forced(Isa::blocked, "blocked"); }
TEST_CASE("a context forced to avx2 runs avx2 kernels") { check_forced(Isa::avx2, "avx2"); }
TEST_CASE("a context forced to avx512 runs avx512 kernels") { check_forced(Isa::avx512, "avx512"); }

TEST_CASE("a context takes the best kernels when none are named") {
  const simd::FeatureSet features = simd::features(simd::read_cpuid());
  CHECK(&Context().kernels() == &simd::best_kernels(features));
}

TEST_CASE("scratch memory grows, stays aligned, and is separate for each thread") {
  Result<std::unique_ptr<Context>> made = Context::try_make({.threads = 3});
  if (!made) SKIP("this build has no threads");
  Context& context = *made.value();
  context.reserve_scratch(100, 70);
  const std::byte* const shared = context.shared_scratch();
  context.reserve_scratch({50, 60});
  CHECK(context.shared_scratch() == shared);  // it never shrinks
  context.reserve_scratch(5000, 200);
  for (int thread = 0; thread < 3; ++thread) {
    CHECK(reinterpret_cast<std::uintptr_t>(context.thread_scratch(thread)) % 64 == 0);
    for (int i = 0; i < 200; ++i) context.thread_scratch(thread)[i] = std::byte(thread + 1);
  }
  for (int thread = 0; thread < 3; ++thread) CHECK(context.thread_scratch(thread)[199] == std::byte(thread + 1));
  CHECK(reinterpret_cast<std::uintptr_t>(context.shared_scratch()) % 64 == 0);
}

TEST_CASE("a loop is split when it costs enough, and covers its range once either way") {
  Result<std::unique_ptr<Context>> made = Context::try_make({.threads = 4, .parallel_work = 1000, .wake_work = 1000});
  if (!made) SKIP("this build has no threads");
  for (const Index count : {0, 1, 9, 11, 500}) {
    std::atomic<int> parts = 0;
    std::array<std::atomic<int>, 500> visits{};
    made.value()->parallel_for(count, Index{99}, [&](Index begin, Index end, int) {
      ++parts;
      for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    CHECK(parts == (count == 0 ? 0 : count < 10 ? 1 : 4));
    for (Index i = 0; i < 500; ++i) REQUIRE(visits[static_cast<std::size_t>(i)] == (i < count ? 1 : 0));
  }
}

TEST_CASE("a smaller loop does not wake threads that sleep, and a larger one does") {
  Result<std::unique_ptr<Context>> made =
      Context::try_make({.threads = 3, .parallel_work = 0, .wake_work = 1000, .spin_microseconds = 0});
  if (!made) SKIP("this build has no threads");
  const auto parts_of = [&](Index count) {
    std::atomic<int> parts = 0;
    made.value()->parallel_for(count, Index{99}, [&](Index, Index, int) { ++parts; });
    return parts.load();
  };
  CHECK(parts_of(9) == 1);
  CHECK(parts_of(11) == 3);
}

TEST_CASE("smaller loops that follow each other closely wake sleeping threads once they cost enough together") {
  Result<std::unique_ptr<Context>> made =
      Context::try_make({.threads = 2, .parallel_work = 1000, .wake_work = 8000, .spin_microseconds = 300'000});
  if (!made) SKIP("this build has no threads");
  const auto parts_of = [&](Index count) {
    std::atomic<int> parts = 0;
    made.value()->parallel_for(count, Index{99}, [&](Index, Index, int) { ++parts; });
    return parts.load();
  };
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (int loop = 1; loop <= 3; ++loop) {
    INFO("loop " << loop);
    CHECK(parts_of(20) == 1);
    CHECK(parts_of(9) == 1);  // too small to count
  }
  CHECK(parts_of(20) == 2);
}

TEST_CASE("smaller loops with pauses between them, and those of an executor, do not add up") {
  const Executor here{[](void*, int tasks, Executor::Task task, void* argument) {
                        while (tasks-- > 0) task(argument, tasks);
                      },
                      nullptr};
  const auto whole_loops = [](const ContextOptions& options, std::chrono::milliseconds pause) {
    Context context(options);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int whole = 0;
    for (int loop = 0; loop < 12; ++loop) {
      std::this_thread::sleep_for(pause);
      context.parallel_for(20, Index{99}, [&](Index begin, Index end, int) {
        if (end - begin == 20) ++whole;
      });
    }
    return whole;
  };
  if (!Context::try_make({.threads = 2})) SKIP("this build has no threads");
  ContextOptions options{.threads = 2, .parallel_work = 1000, .wake_work = 8000, .spin_microseconds = 1};
  CHECK(whole_loops(options, std::chrono::milliseconds(2)) == 12);
  options.executor = here;
  CHECK(whole_loops(options, std::chrono::milliseconds(0)) == 12);
}

TEST_CASE("an executor runs a context's loops, with scratch memory for each task and the same bits") {
  int calls = 0;
  const Executor backwards{[](void* state, int tasks, Executor::Task task, void* argument) {
                             ++*static_cast<int*>(state);
                             while (tasks-- > 0) task(argument, tasks);
                           },
                           &calls};
  Result<std::unique_ptr<Context>> made =
      Context::try_make({.threads = 5, .parallel_work = 0, .wake_work = 0, .executor = backwards});
  if (!made) SKIP("this build has no threads");
  Draw draw(11);
  const Tensor x = draw.tensor({37, 20}), w = draw.tensor({20, 33});
  Tensor expected({37, 33}), y({37, 33});
  Context one;
  ops::linear(one, {}, x.view(), w.view(), expected.view());
  ops::linear(*made.value(), {}, x.view(), w.view(), y.view());
  require_same_bits(y, expected);
  CHECK(calls > 0);
}

TEST_CASE("a context without threads is an error") {
  const Result<std::unique_ptr<Context>> context = Context::try_make({.threads = 0});
  REQUIRE_FALSE(context.ok());
  CHECK(context.error().code() == ErrorCode::invalid_argument);
  CHECK_THAT(context.error().message(), ContainsSubstring("at least 1"));
}

TEST_CASE("idle threads that spin for less than no time are an error") {
  const Result<std::unique_ptr<Context>> context = Context::try_make({.spin_microseconds = -1});
  REQUIRE_FALSE(context.ok());
  CHECK(context.error().code() == ErrorCode::invalid_argument);
  CHECK_THAT(context.error().message(), ContainsSubstring("-1"));
}
