// SPDX-License-Identifier: Apache-2.0
// The parallel loop: its cut, its thread numbers, loops inside loops, several callers, and what it promises not to do.
#include "../support/errors.hpp"

#include <algorithm>
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

// Whether this build has threads; a build without refuses more than one by name.
bool has_threads() {
  try {
    const ThreadPool pool(2);
    return true;
  } catch (const vitro::Error& error) {
    REQUIRE(error.code() == vitro::ErrorCode::unsupported);
    return false;
  }
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

TEST_CASE("a pool of no threads is refused") {
  CHECK(error_of([] { ThreadPool(0); }).code() == vitro::ErrorCode::invalid_argument);
  CHECK(error_of([] { ThreadPool(-4); }).code() == vitro::ErrorCode::invalid_argument);
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

TEST_CASE("part 0 runs on the caller, and each other part on the same thread every time") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(4);
  std::vector<std::thread::id> ids(4);
  pool.parallel_for(4, [&](Index, Index, int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  CHECK(ids[0] == std::this_thread::get_id());
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread::id> again(4);
    pool.parallel_for(4,
                      [&](Index, Index, int thread) { again[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
    REQUIRE(again == ids);
  }
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

TEST_CASE("a loop inside a loop of another pool is cut as usual") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool outer(2);
  ThreadPool inner(3);
  std::atomic<Index> sum{0};
  std::atomic<int> parts{0};
  std::atomic<int> wrong{0};
  outer.parallel_for(4, [&](Index begin, Index end, int thread) {
    for (Index i = begin; i < end; ++i) {
      inner.parallel_for(6, [&](Index inner_begin, Index inner_end, int) {
        ++parts;
        for (Index j = inner_begin; j < inner_end; ++j) sum += i * 6 + j;
      });
      // Still inside the outer loop after the inner one.
      outer.parallel_for(2, [&](Index again_begin, Index again_end, int again_thread) {
        if (again_begin != 0 || again_end != 2 || again_thread != thread) ++wrong;
      });
    }
  });
  CHECK(sum == 24 * 23 / 2);
  CHECK(parts == 4 * 3);
  CHECK(wrong == 0);
}

TEST_CASE("callers on several threads take turns: no element is lost and no running parts share a number") {
  if (!has_threads()) SKIP("this build has no threads");
  for (const int threads : {1, 2, 5}) {
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
  pool.parallel_for(3, [&](Index, Index, int thread) { modes[static_cast<std::size_t>(thread)] = std::fegetround(); });
  std::fesetround(FE_TONEAREST);
  CHECK(modes == std::vector<int>{FE_UPWARD, FE_TONEAREST, FE_TONEAREST});  // part 0 is the caller's
}

TEST_CASE("loops do not allocate") {
  ThreadPool pool(has_threads() ? 4 : 1);
  std::atomic<Index> sum{0};
  const long before = allocations;
  for (int round = 0; round < 100; ++round) {
    pool.parallel_for(64, [&](Index begin, Index end, int) { sum += end - begin; });
  }
  CHECK(allocations == before);
  CHECK(sum == 6400);
}

TEST_CASE("idle threads use no processor time") {
  if (!has_threads()) SKIP("this build has no threads");
  ThreadPool pool(4);
  pool.parallel_for(4, [](Index, Index, int) {});
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC < 0.03);
}

TEST_CASE("pools come and go") {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(has_threads() ? 1 + round % 7 : 1);
    if (round % 2 == 0) pool.parallel_for(3, [](Index, Index, int) {});
  }
}
