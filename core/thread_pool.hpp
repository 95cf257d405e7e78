// SPDX-License-Identifier: Apache-2.0
// ThreadPool: a fixed number of threads and one operation, a static parallel loop.
#pragma once

#include "shape.hpp"

#include <memory>
#include <type_traits>

namespace vitro {

// Cuts [0, count) into size() contiguous parts of almost equal length and runs part t on thread t (part 0 on the caller). The
// cut depends on count and size() alone. A loop started from inside a part runs whole on that part's thread, under its number;
// a loop started while another thread is in one waits for it. (Two pools whose loops start loops on each other can thus wait
// for ever.) Idle threads sleep. Loops do not allocate. Pool threads run with the default floating-point environment. Without
// thread support (VITRO_THREADS off) size() is 1.
class ThreadPool {
 public:
  // threads >= 1, the caller included; fails with invalid_argument otherwise, and with unsupported where the build has no
  // threads and more than one is asked for.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept { return size_; }

  // Calls body(begin, end, thread) once per non-empty part and returns when all have returned. `thread` is in [0, size()) and
  // no two parts that run at the same time share it. `body` must not throw.
  template <class Body>
  void parallel_for(Index count, const Body& body) noexcept {
    static_assert(std::is_invocable_v<const Body&, Index, Index, int>);
    run(
        count,
        [](const void* context, Index begin, Index end, int thread) {
          (*static_cast<const Body*>(context))(begin, end, thread);
        },
        &body);
  }

 private:
  using Function = void (*)(const void* context, Index begin, Index end, int thread);
  void run(Index count, Function function, const void* context) noexcept;

  struct Shared;  // the threads and what they wait on
  std::unique_ptr<Shared> shared_;
  int size_;
};

}  // namespace vitro
