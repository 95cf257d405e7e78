// SPDX-License-Identifier: Apache-2.0
// ThreadPool: a fixed number of threads, its own or a caller's executor, and one operation, a static parallel loop.
#pragma once

#include "shape.hpp"

#include <memory>
#include <type_traits>

namespace vitro {

// Threads that the caller brings. parallel_for(state, tasks, task, argument) calls task(argument, i) exactly once for each i in
// [0, tasks), in any order, on any threads (all on its own if it likes), and returns when all have returned; what was written
// before it is seen inside, and what was written inside is seen after it. It must not throw, and may be called from several
// threads at once. Its threads need the default floating-point environment. It is never called for a loop of one part, from
// inside a loop, or in a forked child.
struct Executor {
  using Task = void (*)(void* argument, int index);
  void (*parallel_for)(void* state, int tasks, Task task, void* argument) = nullptr;
  void* state = nullptr;
};

struct ThreadPoolOptions {
  int threads = 1;              // parts that a loop is cut into; the pool's own threads and the caller, or the executor's tasks
  int spin_microseconds = 100;  // how long an idle thread watches for the next loop before it sleeps; 0: it sleeps at once
  Executor executor = {};       // without a function: the pool starts threads of its own
};

// Cuts [0, count) into size() contiguous parts of almost equal length and runs part t as thread t, part 0 on the caller. The
// cut depends on count and size() alone. Each part is meant for one thread of the pool, always the same; the caller, when it is
// done with its own, also runs those that have not been begun. With an executor each part is a task.
//
// Inside: a loop started from inside a part of any pool runs whole on its caller, under its number if the pool is the same.
// Callers: a loop started while another thread is in one waits for it. (Two pools whose loops start loops on each other can
//   thus wait for ever.) A pool of one has nothing to wait for: it takes no lock and calls the body as thread 0.
// Idle: a thread without work, and a caller who waits for its threads, watches with pause instructions for at most
//   spin_microseconds and then sleeps; where watching does not pay, as with more threads than free processors, it is for less.
//   A loop costs about 1 microsecond where the threads are awake; where they sleep, 5 to 15 for waking them, and until they
//   are awake (10 to 100 microseconds) the caller is alone.
// fork(): the child has no threads, so its copy of the pool runs every loop whole on its caller as thread 0, as a pool of one
//   does, and is destroyed without waiting. A child that was forked inside a loop must not return from the loop's body. (The
//   child is told by its process id: one that has its parent's, in a PID namespace of its own, must not use the pool.)
// Loops do not allocate. The pool's threads run with the default floating-point environment. Without thread support
// (VITRO_THREADS off) size() is 1.
class ThreadPool {
 public:
  // Fails with the error of check(), and with unsupported where the system does not start a thread. (Without exceptions the
  // standard library ends the program then.) With `status` the error goes there instead, and the pool is one of 1.
  explicit ThreadPool(const ThreadPoolOptions& options, Status* status = nullptr);
  explicit ThreadPool(int threads) : ThreadPool(ThreadPoolOptions{.threads = threads}) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // invalid_argument for fewer than 1 thread or a negative time, unsupported where the build has no threads and more than one
  // is asked for.
  static Status check(const ThreadPoolOptions& options);

  int size() const noexcept { return size_; }
  // Whether the pool's threads are watching for a loop just now, so that one costs little. A hint: it may be outdated at once.
  bool awake() const noexcept;
  // Whether one of the pool's threads took a part of the last loop that was cut. If not, they came too late or not at all.
  bool helped() const noexcept;

  // Calls body(begin, end, thread) once per non-empty part and returns when all have returned. `thread` is in [0, size()) and,
  // except in a pool of one and in a forked child, no two parts that run at the same time share it. `body` must not throw.
  template <class Body>
  void parallel_for(Index count, const Body& body) noexcept {
    static_assert(std::is_invocable_v<const Body&, Index, Index, int>);
    if (size_ == 1) {
      if (count > 0) body(Index{0}, count, 0);
      return;
    }
    run(
        count,
        [](const void* context, Index begin, Index end, int thread) {
          (*static_cast<const Body*>(context))(begin, end, thread);
        },
        &body);
  }

 private:
  Status start(const ThreadPoolOptions& options);  // in the constructor
  using Function = void (*)(const void* context, Index begin, Index end, int thread);
  void run(Index count, Function function, const void* context) noexcept;

  struct Shared;  // the threads and what they wait on; none in a pool of one
  std::unique_ptr<Shared> shared_;
  int size_ = 1;
};

}  // namespace vitro
