// SPDX-License-Identifier: Apache-2.0
// A pool in a forked child: it has no threads there, runs its loops on their caller, and is destroyed without waiting.
#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
#include "../support/build.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vitro/core/thread_pool.hpp>

using vitro::Index;
using vitro::ThreadPool;
using vitro_test::has_threads;
using vitro_test::kSanitizesAddresses;
using vitro_test::kSanitizesThreads;

namespace {

// Forks; the child ends with what `body` returns. A child that hangs is ended by its alarm and gives -1.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0 if the loop runs whole on its caller as thread 0.
int runs_on_caller(ThreadPool& pool) {
  int calls = 0;
  int wrong = 0;
  const std::thread::id caller = std::this_thread::get_id();
  for (const Index count : {1, 2, 9}) {
    pool.parallel_for(count, [&](Index begin, Index end, int thread) {
      ++calls;
      if (begin != 0 || end != count || thread != 0 || std::this_thread::get_id() != caller) wrong = 1;
    });
  }
  return calls == 3 ? wrong : 2;
}

int parts_of(ThreadPool& pool) {
  std::atomic<int> parts{0};
  pool.parallel_for(100, [&](Index, Index, int) { ++parts; });
  return parts;
}

}  // namespace

TEST_CASE("a forked child runs loops on their caller and destroys its pool, whether its threads slept or watched") {
  if (!has_threads()) SKIP("this build has no threads");
  for (const int threads : {1, 2, 5}) {
    for (const int spin : {0, 100, 1000000}) {
      CAPTURE(threads, spin);
      auto pool = std::make_unique<ThreadPool>(vitro::ThreadPoolOptions{.threads = threads, .spin_microseconds = spin});
      CHECK(parts_of(*pool) == threads);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      REQUIRE(in_child([&] {
                if (const int wrong = runs_on_caller(*pool)) return wrong;
                pool.reset();
                return 0;
              }) == 0);
      CHECK(parts_of(*pool) == threads);  // the parent's pool goes on
    }
  }
}

TEST_CASE("a child forked while other threads run loops is none the worse for it, and neither is its own child") {
  if (!has_threads()) SKIP("this build has no threads");
  auto pool = std::make_unique<ThreadPool>(3);
  std::atomic<bool> stop{false};
  std::atomic<long> loops{0};
  const auto caller = [&] {
    for (; !stop; ++loops) pool->parallel_for(7, [](Index, Index, int) {});
  };
  std::thread first(caller);
  std::thread second(caller);
  int wrong = 0;
  for (int round = 0; round < 60 && wrong == 0; ++round) {
    wrong += in_child([&] {
               if (const int own = runs_on_caller(*pool)) return own;
               const int childs = in_child([&] { return runs_on_caller(*pool); });
               pool.reset();
               return childs == 0 ? 0 : 3;
             }) != 0;
  }
  stop = true;
  first.join();
  second.join();
  CHECK(wrong == 0);
  CHECK(loops > 0);
}

TEST_CASE("a pool that a forked child makes has threads there") {
  if (!has_threads()) SKIP("this build has no threads");
  if (kSanitizesThreads) SKIP("ThreadSanitizer does not let the child of a process with threads start any");
  if (kSanitizesAddresses) SKIP("AddressSanitizer's allocator may be locked for ever in the child of a process with threads");
  ThreadPool pool(2);
  CHECK(in_child([] {
          ThreadPool own(3);
          return parts_of(own);
        }) == 3);
  CHECK(parts_of(pool) == 2);
}

TEST_CASE("a child forked inside a loop may run loops and exit") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(3);
  std::mutex one_at_a_time;
  std::atomic<int> wrong{0};
  pool.parallel_for(3, [&](Index, Index, int thread) {
    const std::lock_guard lock(one_at_a_time);
    const int seen = in_child([&] {
      int number = -1;
      pool.parallel_for(8, [&](Index begin, Index end, int inner) { number = end - begin == 8 ? inner : -2; });
      return number;
    });
    if (seen != thread) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE("an executor is not called in a forked child") {
  if (!has_threads()) SKIP("this build has no threads");
  const auto in_turn = [](void* calls, int tasks, vitro::Executor::Task task, void* argument) {
    ++*static_cast<int*>(calls);
    for (int index = 0; index < tasks; ++index) task(argument, index);
  };
  int calls = 0;
  ThreadPool pool({.threads = 3, .executor = {in_turn, &calls}});
  CHECK(in_child([&] { return runs_on_caller(pool) + calls; }) == 0);
  CHECK(parts_of(pool) == 3);
  CHECK(calls == 1);
}
#endif
