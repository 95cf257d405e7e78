// SPDX-License-Identifier: Apache-2.0
// The pool's threads: each sleeps until a loop is announced, runs its own part, and reports back.
#include "thread_pool.hpp"

#include <string>

#if VITRO_THREADS
#include <cfenv>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#endif

namespace vitro {
#if VITRO_THREADS

namespace {

// Part `index` of `parts` of [0, count): the first count % parts parts are one element longer.
Index part_begin(Index count, Index parts, Index index) noexcept {
  const Index extra = count % parts;
  return index * (count / parts) + (index < extra ? index : extra);
}

// The part that this thread is running, so that a loop inside a loop knows that it is inside.
struct Running {
  const void* pool = nullptr;
  int thread = 0;
};
thread_local constinit Running running;

}  // namespace

struct ThreadPool::Shared {
  std::mutex callers;  // held while a loop runs: one loop at a time
  std::mutex mutex;    // guards everything below
  std::condition_variable start;
  std::condition_variable done;
  Function function = nullptr;
  const void* context = nullptr;
  Index count = 0;
  unsigned long long generation = 0;  // rises with each loop
  int unfinished = 0;                 // worker threads still in the current loop
  bool stopping = false;
  std::vector<std::thread> threads;

  // Here and not in the pool's destructor, so that it also runs when a later thread cannot be created.
  ~Shared() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    start.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void run_part(Function body, const void* body_context, Index body_count, int parts, int thread) noexcept {
    const Index begin = part_begin(body_count, parts, thread);
    const Index end = part_begin(body_count, parts, thread + 1);
    if (begin == end) return;
    const Running outer = running;
    running = {this, thread};
    body(body_context, begin, end, thread);
    running = outer;
  }

  void work(int parts, int thread) {
    std::fesetenv(FE_DFL_ENV);  // part of the numerics contract: results do not depend on who created the pool
    unsigned long long seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      start.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping) return;
      seen = generation;
      const Function body = function;
      const void* body_context = context;
      const Index body_count = count;
      lock.unlock();
      run_part(body, body_context, body_count, parts, thread);
      lock.lock();
      if (--unfinished == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads) {
  if (threads < 1) {
    fail(ErrorCode::invalid_argument, "ThreadPool: " + std::to_string(threads) + " threads asked for; at least 1 is needed");
  }
  shared_ = std::make_unique<Shared>();
  shared_->threads.reserve(static_cast<std::size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) {
    shared_->threads.emplace_back([shared = shared_.get(), threads, thread] { shared->work(threads, thread); });
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(Index count, Function function, const void* context) noexcept {
  if (count <= 0) return;
  if (running.pool == shared_.get()) {
    function(context, 0, count, running.thread);
    return;
  }
  const std::lock_guard caller(shared_->callers);
  if (size_ > 1 && count > 1) {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->function = function;
      shared_->context = context;
      shared_->count = count;
      shared_->unfinished = size_ - 1;
      ++shared_->generation;
    }
    shared_->start.notify_all();
    shared_->run_part(function, context, count, size_, 0);
    std::unique_lock lock(shared_->mutex);
    shared_->done.wait(lock, [&] { return shared_->unfinished == 0; });
  } else {
    shared_->run_part(function, context, count, 1, 0);
  }
}

#else

struct ThreadPool::Shared {};

ThreadPool::ThreadPool(int threads) : size_(1) {
  if (threads < 1) {
    fail(ErrorCode::invalid_argument, "ThreadPool: " + std::to_string(threads) + " threads asked for; at least 1 is needed");
  }
  if (threads > 1) {
    fail(ErrorCode::unsupported,
         "ThreadPool: " + std::to_string(threads) + " threads asked for, but this build has no threads (VITRO_THREADS is off)");
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(Index count, Function function, const void* context) noexcept {
  if (count > 0) function(context, 0, count, 0);
}

#endif

}  // namespace vitro
