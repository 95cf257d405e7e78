// SPDX-License-Identifier: Apache-2.0
// The parallel loop: its cut, its thread numbers, loops inside loops, several callers, executors, idle threads, and what it
// promises not to do.
#include "../support/build.hpp"
#include "../support/errors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <thread>
#include <tuple>
#include <vector>
#include <vitro/core/thread_pool.hpp>

using vitro::Index;
using vitro::ThreadPool;
using vitro_test::error_of;
using vitro_test::has_threads;

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t bytes) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* counted_or_throw(std::size_t bytes) {
  if (void* memory = counted(bytes)) return memory;
  throw std::bad_alloc();
}

struct Part {
  Index begin;
  Index end;
  int thread;
  friend auto operator<=>(const Part&, const Part&) = default;
};

std::vector<Part> parts_of(ThreadPool& pool, Index count) {
  std::mutex mutex;
  std::vector<Part> parts;
  pool.parallel_for(count, [&](Index begin, Index end, int thread) {
    const std::lock_guard lock(mutex);
    parts.push_back({begin, end, thread});
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

// Runs body(thread) on every thread of the pool, none of which goes on before all have come; false if they never do.
template <class Body>
bool all_meet(ThreadPool& pool, const Body& body) {
  std::atomic<int> there{0};
  std::atomic<int> met{0};
  pool.parallel_for(pool.size(), [&](Index, Index, int thread) {
    ++there;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (there < pool.size() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    if (there == pool.size()) ++met;
    body(thread);
  });
  return met == pool.size();
}

}  // namespace

// Counts this test program's allocations.
void* operator new(std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a pool of no threads is refused, and idle threads that spin for less than no time") {
  CHECK(error_of([] { ThreadPool(0); }).code() == vitro::ErrorCode::invalid_argument);
  CHECK(error_of([] { ThreadPool(-4); }).code() == vitro::ErrorCode::invalid_argument);
  CHECK(error_of([] { ThreadPool({.spin_microseconds = -1}); }).code() == vitro::ErrorCode::invalid_argument);
  CHECK(ThreadPool::check({.threads = 1, .spin_microseconds = 0}).ok());
}

TEST_CASE("more than one thread is what a build has or refuses by name") {
  const vitro::Status status = ThreadPool::check({.threads = 2});
  if (!status) CHECK(status.error().code() == vitro::ErrorCode::unsupported);
}

TEST_CASE("a pool of one runs everything on its caller") {
  ThreadPool pool(1);
  CHECK(pool.size() == 1);
  const std::thread::id caller = std::this_thread::get_id();
  Index seen = 0;
  pool.parallel_for(10, [&](Index begin, Index end, int thread) {
    CHECK(std::this_thread::get_id() == caller);
    CHECK(thread == 0);
    seen += end - begin;
  });
  CHECK(seen == 10);
}

TEST_CASE("a loop is cut into contiguous parts of almost equal length, the same each time") {
  if (!has_threads()) SKIP("this build has no threads");
  for (int threads = 1; threads <= 7; ++threads) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const Index count : {-3, 0, 1, 2, 5, 6, 7, 8, 100, 1001}) {
      CAPTURE(threads, count);
      const std::vector<Part> parts = parts_of(pool, count);
      REQUIRE(static_cast<Index>(parts.size()) == std::clamp<Index>(count, 0, threads));
      Index at = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        REQUIRE(parts[i].begin == at);
        REQUIRE(parts[i].thread == static_cast<int>(i));
        const Index length = parts[i].end - parts[i].begin;
        REQUIRE(length >= count / threads);
        REQUIRE(length <= count / threads + 1);
        at = parts[i].end;
      }
      REQUIRE(at == std::max<Index>(count, 0));
      REQUIRE(parts == parts_of(pool, count));
    }
  }
}

TEST_CASE("part 0 runs on the caller, and each other part on its own thread or on the caller") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(4);
  const std::thread::id caller = std::this_thread::get_id();
  std::array<std::thread::id, 4> owners;  // once seen
  for (int round = 0; round < 200; ++round) {
    std::array<std::thread::id, 4> ids;
    pool.parallel_for(4, [&](Index, Index, int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
    REQUIRE(ids[0] == caller);
    for (std::size_t thread = 1; thread < 4; ++thread) {
      if (ids[thread] == caller) continue;
      if (owners[thread] == std::thread::id()) owners[thread] = ids[thread];
      REQUIRE(ids[thread] == owners[thread]);
    }
  }
}

TEST_CASE("the parts of a loop run at the same time on as many threads, when the caller is busy") {
  if (!has_threads()) SKIP("this build has no threads");
  for (const int spin : {0, 100}) {
    ThreadPool pool({.threads = 4, .spin_microseconds = spin});
    CHECK(all_meet(pool, [](int) {}));
    CHECK(pool.helped());
  }
}

TEST_CASE("a part that no thread has begun runs on the caller") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(2);
  std::atomic<int> on_caller{0};
  for (int round = 0; round < 2000 && on_caller == 0; ++round) {
    const std::thread::id caller = std::this_thread::get_id();
    pool.parallel_for(2, [&](Index, Index, int thread) {
      if (thread == 1 && std::this_thread::get_id() == caller) ++on_caller;
    });
    REQUIRE(pool.helped() == (on_caller == 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread falls asleep and is slow to wake up
  }
  CHECK(on_caller == 1);
}

TEST_CASE("no element is lost or done twice over thousands of loops") {
  for (int threads = 1; threads <= (has_threads() ? 7 : 1); ++threads) {
    ThreadPool pool(threads);
    std::vector<int> done(37, 0);
    for (int round = 0; round < 1000; ++round) {
      pool.parallel_for(37, [&](Index begin, Index end, int) {
        for (Index i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
      });
    }
    CHECK(done == std::vector<int>(37, 1000));
  }
}

TEST_CASE("a loop inside a loop runs whole, on its caller and under its number") {
  ThreadPool pool(has_threads() ? 3 : 1);
  std::atomic<int> inner_loops{0};
  std::atomic<int> wrong{0};
  pool.parallel_for(9, [&](Index begin, Index end, int thread) {
    for (Index i = begin; i < end; ++i) {
      const std::thread::id caller = std::this_thread::get_id();
      pool.parallel_for(5, [&](Index inner_begin, Index inner_end, int inner_thread) {
        ++inner_loops;
        if (inner_begin != 0 || inner_end != 5 || inner_thread != thread || std::this_thread::get_id() != caller) ++wrong;
      });
    }
  });
  CHECK(inner_loops == 9);
  CHECK(wrong == 0);
}

TEST_CASE("a loop inside a loop of another pool runs whole on its caller, however deep") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool outer(2);
  ThreadPool inner(3);
  std::atomic<Index> sum{0};
  std::atomic<int> parts{0};
  std::atomic<int> wrong{0};
  outer.parallel_for(4, [&](Index begin, Index end, int thread) {
    const std::thread::id caller = std::this_thread::get_id();
    for (Index i = begin; i < end; ++i) {
      inner.parallel_for(6, [&](Index inner_begin, Index inner_end, int inner_thread) {
        ++parts;
        if (inner_thread != 0 || std::this_thread::get_id() != caller) ++wrong;
        for (Index j = inner_begin; j < inner_end; ++j) sum += i * 6 + j;
        outer.parallel_for(2, [&](Index again_begin, Index again_end, int again_thread) {  // inside both
          if (again_begin != 0 || again_end != 2 || again_thread != thread) ++wrong;
        });
      });
      outer.parallel_for(2, [&](Index again_begin, Index again_end, int again_thread) {  // inside the outer one again
        if (again_begin != 0 || again_end != 2 || again_thread != thread) ++wrong;
      });
    }
  });
  CHECK(sum == 24 * 23 / 2);
  CHECK(parts == 4);
  CHECK(wrong == 0);
  CHECK(parts_of(inner, 6).size() == 3);  // and outside again it is cut
}

TEST_CASE("callers on several threads take turns: no element is lost and no running parts share a number") {
  if (!has_threads()) SKIP("this build has no threads");
  for (const int threads : {2, 5}) {
    ThreadPool pool(threads);
    std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
    std::atomic<int> shared{0};
    std::atomic<Index> total{0};
    const auto caller = [&] {
      for (int round = 0; round < 500; ++round) {
        pool.parallel_for(round % 13, [&](Index begin, Index end, int thread) {
          if (busy[static_cast<std::size_t>(thread)]++ != 0) ++shared;
          total += end - begin;
          --busy[static_cast<std::size_t>(thread)];
        });
      }
    };
    std::thread first(caller);
    std::thread second(caller);
    caller();
    first.join();
    second.join();
    Index expected = 0;
    for (int round = 0; round < 500; ++round) expected += 3 * (round % 13);
    CHECK(total == expected);
    CHECK(shared == 0);
  }
}

TEST_CASE("what a loop wrote can be read after it, and what was written before it inside it") {
  ThreadPool pool(has_threads() ? 4 : 1);
  std::vector<int> values(1000, 0);
  for (int round = 1; round <= 100; ++round) {
    pool.parallel_for(1000, [&](Index begin, Index end, int) {
      for (Index i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += round;
    });
    for (int& value : values) ++value;
  }
  CHECK(values == std::vector<int>(1000, 5050 + 100));
}

TEST_CASE("pool threads have the default floating-point environment, whatever their creator's is") {
  if (!has_threads()) SKIP("this build has no threads");
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
  ThreadPool pool(3);
  std::vector<int> modes(3, -1);
  CHECK(all_meet(pool, [&](int thread) { modes[static_cast<std::size_t>(thread)] = std::fegetround(); }));
  std::fesetround(FE_TONEAREST);
  CHECK(modes == std::vector<int>{FE_UPWARD, FE_TONEAREST, FE_TONEAREST});  // part 0 is the caller's
}

TEST_CASE("a pool of one serves several callers at the same time") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(1);
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  const auto caller = [&] {
    pool.parallel_for(1, [&](Index, Index, int) {
      ++inside;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      if (inside == 2) ++met;
    });
  };
  std::thread other(caller);
  caller();
  other.join();
  CHECK(met == 2);
}

TEST_CASE("several pools at once, wider than the machine, lose nothing") {
  if (!has_threads()) SKIP("this build has no threads");
  std::atomic<Index> total{0};
  const auto session = [&](int threads) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      pool.parallel_for(11, [&](Index begin, Index end, int) { total += end - begin; });
    }
  };
  std::thread first(session, 3);
  std::thread second(session, 7);
  session(2);
  first.join();
  second.join();
  CHECK(total == 3 * 200 * 11);
}

TEST_CASE("loops do not allocate") {
  for (const int threads : {1, has_threads() ? 4 : 1}) {
    ThreadPool pool(threads);
    std::atomic<Index> sum{0};
    const long before = allocations;
    for (int round = 0; round < 100; ++round) {
      pool.parallel_for(64, [&](Index begin, Index end, int) { sum += end - begin; });
    }
    CHECK(allocations == before);
    CHECK(sum == 6400);
  }
}

TEST_CASE("idle threads watch for the time asked for, then sleep and use no processor time") {
  if (!has_threads()) SKIP("this build has no threads");
  const auto processor_time = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (const int spin : {0, 100, 50000}) {
    CAPTURE(spin);
    ThreadPool pool({.threads = 2, .spin_microseconds = spin});
    const double start = processor_time();
    pool.parallel_for(2, [](Index, Index, int) {});
    CHECK((spin < 50000 || pool.awake()));
    CHECK_FALSE((spin == 0 && pool.awake()));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK_FALSE(pool.awake());
    CHECK(processor_time() - start < 2e-6 * spin + 0.05);  // started, and after the loop
    const double asleep = processor_time();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    CHECK(processor_time() - asleep < 0.01);
    CHECK(parts_of(pool, 2).size() == 2);  // and they wake up
  }
}

TEST_CASE("pools come and go") {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(has_threads() ? 1 + round % 7 : 1);
    if (round % 2 == 0) pool.parallel_for(3, [](Index, Index, int) {});
  }
}

namespace {

// An executor of new threads, started in falling order, that keeps count of what it was asked for.
struct NewThreads {
  int calls = 0;
  int tasks = 0;

  static void parallel_for(void* state, int tasks, vitro::Executor::Task task, void* argument) {
    auto& self = *static_cast<NewThreads*>(state);
    ++self.calls;
    self.tasks += tasks;
    std::vector<std::thread> threads;
    for (int index = tasks; index-- > 0;) threads.emplace_back(task, argument, index);
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

TEST_CASE("an executor runs the same parts under the same numbers as the pool's own threads would") {
  if (!has_threads()) SKIP("this build has no threads");
  for (const int threads : {2, 5}) {
    NewThreads executor;
    ThreadPool own(threads);
    ThreadPool brought({.threads = threads, .executor = {NewThreads::parallel_for, &executor}});
    CHECK(brought.size() == threads);
    CHECK_FALSE(brought.awake());
    int tasks = 0;
    for (const Index count : {2, 3, 4, 100}) {
      CHECK(parts_of(brought, count) == parts_of(own, count));
      tasks += static_cast<int>(std::min<Index>(count, threads));
    }
    CHECK(executor.calls == 4);
    CHECK(executor.tasks == tasks);  // none for an empty part
  }
}

TEST_CASE("an executor is not asked for a loop of one part, nor from inside a loop") {
  if (!has_threads()) SKIP("this build has no threads");
  NewThreads executor;
  ThreadPool pool({.threads = 3, .executor = {NewThreads::parallel_for, &executor}});
  ThreadPool one({.threads = 1, .executor = {NewThreads::parallel_for, &executor}});
  ThreadPool other(2);
  CHECK(parts_of(one, 9) == std::vector<Part>{{0, 9, 0}});
  CHECK(parts_of(pool, 1) == std::vector<Part>{{0, 1, 0}});
  CHECK(parts_of(pool, 0).empty());
  CHECK(executor.calls == 0);
  std::atomic<int> wrong{0};
  pool.parallel_for(3, [&](Index, Index, int thread) {
    if (parts_of(pool, 9) != std::vector<Part>{{0, 9, thread}}) ++wrong;
    if (parts_of(other, 9) != std::vector<Part>{{0, 9, 0}}) ++wrong;
  });
  other.parallel_for(2, [&](Index, Index, int) {
    if (parts_of(pool, 9) != std::vector<Part>{{0, 9, 0}}) ++wrong;
  });
  CHECK(executor.calls == 1);
  CHECK(wrong == 0);
}

TEST_CASE("an executor that runs everything on its caller will do") {
  if (!has_threads()) SKIP("this build has no threads");
  const auto in_turn = [](void*, int tasks, vitro::Executor::Task task, void* argument) {
    for (int index = 0; index < tasks; ++index) task(argument, index);
  };
  ThreadPool pool({.threads = 4, .executor = {in_turn, nullptr}});
  CHECK(parts_of(pool, 5) == std::vector<Part>{{0, 2, 0}, {2, 3, 1}, {3, 4, 2}, {4, 5, 3}});
}
