// SPDX-License-Identifier: Apache-2.0
// The pool's threads: each waits until a loop is announced, runs its own part, and reports back.
#include "thread_pool.hpp"

#if VITRO_THREADS
#include "start_thread.hpp"
#endif

#include <algorithm>
#include <string>
#include <utility>

#if VITRO_THREADS
#include <atomic>
#include <cfenv>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif
#endif

namespace vitro {

Status ThreadPool::check(const ThreadPoolOptions& options) {
  const std::string threads = std::to_string(options.threads), spin = std::to_string(options.spin_microseconds);
  if (options.threads < 1) return Error(ErrorCode::invalid_argument, "A pool needs at least 1 thread, not " + threads + ".");
  if (options.spin_microseconds < 0)
    return Error(ErrorCode::invalid_argument, "Threads cannot spin for " + spin + " microseconds.");
#if !VITRO_THREADS
  const char* const kRefusal = "This build has no threads (VITRO_THREADS is off); ask for 1, not ";
  if (options.threads > 1) return Error(ErrorCode::unsupported, kRefusal + threads + ".");
#endif
  return {};
}

#if VITRO_THREADS
namespace {

// Part `index` of `parts` of [0, count): the first count % parts parts are one element longer.
Index part_begin(Index count, Index parts, Index index) noexcept {
  const Index extra = count % parts;
  return index * (count / parts) + (index < extra ? index : extra);
}

// The parts that this thread is inside of, innermost first, so that a loop inside a loop knows that it is.
struct Running {
  const void* pool;
  int thread;
  const Running* outer;
};
thread_local constinit const Running* running = nullptr;

long process_id() noexcept {
#if __has_include(<unistd.h>)
  return getpid();
#else
  return 0;  // no fork() either
#endif
}

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long one thread watches before it sleeps: `most` after each time that paid and half as long after each that did not, down
// to a 64th of it. Where free processors are fewer than threads, whoever watches holds up what he watches for, and so he soon
// stops. (Yielding the processor instead was tried: Linux then lets the others have it for milliseconds.) Where there are as
// many, it also paid, or would have, if what he slept for came before `most` was over: otherwise a few disturbed loops end in a
// patience that no later one meets.
class Patience {
 public:
  explicit Patience(const ThreadPoolOptions& options) noexcept
      : most_(std::chrono::microseconds(options.spin_microseconds)),
        time_(most_),
        roomy_(static_cast<unsigned>(options.threads) <= std::thread::hardware_concurrency()) {}

  void paid(bool yes) noexcept { time_ = yes ? most_ : std::max(most_ / 64, time_ / 2); }

  // Watches until `value` is no longer `old`; false if the time is over before.
  template <class T>
  bool sees_change(const std::atomic<T>& value, T old) noexcept {
    begin_ = Clock::now();
    while (value.load(std::memory_order_acquire) == old) {
      if (Clock::now() >= begin_ + time_) return false;
      pause();
    }
    return true;
  }

  // After a watch that saw no change and a sleep that ended in one: whether watching on would have paid.
  bool would_have_paid() const noexcept { return roomy_ && Clock::now() < begin_ + most_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::nanoseconds most_, time_;
  bool roomy_;
  Clock::time_point begin_;
};

// Where one part of a loop stands. It is claimed by the change from offered to taken, and nobody reads the loop before.
enum class PartState { done, offered, taken };

}  // namespace

// What the threads wait on are atomics alone: a condition variable with sleepers cannot be destroyed in a forked child.
struct ThreadPool::Shared {
  struct alignas(64) Worker {  // a cache line each
    std::atomic<PartState> part{PartState::done};
    std::thread thread;
  };

  explicit Shared(const ThreadPoolOptions& given) : options(given), workers(own_threads(given)) {}

  static std::size_t own_threads(const ThreadPoolOptions& options) noexcept {
    return options.executor.parallel_for == nullptr ? static_cast<std::size_t>(options.threads - 1) : 0;
  }

  const ThreadPoolOptions options;
  const long process = process_id();
  std::mutex callers;          // held while a loop runs: one loop at a time
  Patience patience{options};  // of whoever holds it

  // The loop: written while no part of it is offered or taken.
  Function function = nullptr;
  const void* context = nullptr;
  Index count = 0;
  alignas(64) std::atomic<unsigned> announced{0};  // rises with each loop
  std::atomic<bool> stopping{false};
  alignas(64) std::atomic<int> asleep{0};
  std::atomic<bool> helped{true};
  std::vector<Worker> workers;  // part t + 1 is offered to worker t

  // Here and not in the pool's destructor, so that it also runs when a later thread is not started.
  ~Shared() {
    if (in_child()) {
      for (Worker& worker : workers) std::construct_at(&worker.thread);  // forgotten: there is nothing to join or to detach
      return;
    }
    stopping = true;
    announce();
    for (Worker& worker : workers) {
      if (worker.thread.joinable()) worker.thread.join();
    }
  }

  bool in_child() const noexcept { return process != process_id(); }

  void announce() noexcept {
    announced.fetch_add(1, std::memory_order_release);
    announced.notify_all();
  }

  void run_part(int thread) noexcept { run_part(thread, options.threads); }
  void run_part(int thread, int of) noexcept {
    const Index begin = part_begin(count, of, thread);
    const Index end = part_begin(count, of, thread + 1);
    if (begin == end) return;
    const Running here{this, thread, running};
    running = &here;
    function(context, begin, end, thread);
    running = here.outer;
  }

  bool claim(Worker& worker) noexcept {
    PartState state = PartState::offered;
    return worker.part.compare_exchange_strong(state, PartState::taken, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Each of the pool's threads, from its start to its end.
  void work(Worker& worker, int thread) noexcept {
    std::fesetenv(FE_DFL_ENV);  // part of the numerics contract: results do not depend on who created the pool
    Patience own_patience(options);
    for (unsigned seen = 0;;) {
      const bool watched = own_patience.sees_change(announced, seen);
      if (!watched) {
        ++asleep;
        announced.wait(seen, std::memory_order_acquire);
        --asleep;
        own_patience.paid(own_patience.would_have_paid());
      }
      if (stopping) return;
      seen = announced.load(std::memory_order_acquire);
      const bool claimed = claim(worker);
      if (watched) own_patience.paid(claimed);
      if (!claimed) continue;
      run_part(thread);
      worker.part.store(PartState::done, std::memory_order_release);
      worker.part.notify_one();
    }
  }

  // The caller runs the first part, then whatever has not been begun, so that a thread that is slow to wake up or has lost its
  // processor holds nobody up, and waits for the rest.
  void run_on_own_threads() noexcept {
    for (Worker& worker : workers) worker.part.store(PartState::offered, std::memory_order_release);
    announce();
    run_part(0);
    int thread = 0;
    bool all_here = true;
    for (Worker& worker : workers) {
      ++thread;
      const bool here = claim(worker);
      all_here &= here;
      if (!here) continue;
      run_part(thread);
      worker.part.store(PartState::done, std::memory_order_relaxed);
    }
    helped.store(!all_here, std::memory_order_relaxed);
    for (Worker& worker : workers) {
      const bool watched = patience.sees_change(worker.part, PartState::taken);
      if (!watched) worker.part.wait(PartState::taken, std::memory_order_acquire);
      patience.paid(watched || patience.would_have_paid());
    }
  }

  void run_on_executor() noexcept {
    const auto task = [](void* self, int thread) { static_cast<Shared*>(self)->run_part(thread); };
    options.executor.parallel_for(options.executor.state, static_cast<int>(std::min<Index>(count, options.threads)), task,
                                  this);
  }
};

Status ThreadPool::start(const ThreadPoolOptions& options) {
  if (Status status = check(options); !status || options.threads == 1) return status;
  shared_ = std::make_unique<Shared>(options);
  int thread = 0;
  for (Shared::Worker& worker : shared_->workers) {
    ++thread;
    const std::string name = "thread " + std::to_string(thread + 1) + " of " + std::to_string(options.threads);
    Status started =
        start_thread(worker.thread, name, [shared = shared_.get(), &worker, thread] { shared->work(worker, thread); });
    if (started) continue;
    shared_.reset();
    return started;
  }
  size_ = options.threads;
  return {};
}

bool ThreadPool::awake() const noexcept {
  return shared_ != nullptr && !shared_->workers.empty() && shared_->options.spin_microseconds > 0 &&
         shared_->asleep.load(std::memory_order_relaxed) == 0;
}

bool ThreadPool::helped() const noexcept { return shared_ != nullptr && shared_->helped.load(std::memory_order_relaxed); }

void ThreadPool::run(Index count, Function function, const void* context) noexcept {
  if (count <= 0) return;
  for (const Running* part = running; part != nullptr; part = part->outer) {
    if (part->pool == shared_.get()) return function(context, 0, count, part->thread);
  }
  if (shared_->in_child()) return function(context, 0, count, 0);
  const std::lock_guard caller(shared_->callers);
  shared_->function = function;
  shared_->context = context;
  shared_->count = count;
  if (count == 1 || running != nullptr) {
    shared_->run_part(0, 1);
  } else if (shared_->workers.empty()) {
    shared_->run_on_executor();
  } else {
    shared_->run_on_own_threads();
  }
}

#else

struct ThreadPool::Shared {};

Status ThreadPool::start(const ThreadPoolOptions& options) { return check(options); }

bool ThreadPool::awake() const noexcept { return false; }
bool ThreadPool::helped() const noexcept { return false; }

void ThreadPool::run(Index count, Function function, const void* context) noexcept {
  if (count > 0) function(context, 0, count, 0);
}

#endif

ThreadPool::ThreadPool(const ThreadPoolOptions& options, Status* status) {
  Status started = start(options);
  if (status == nullptr) {
    started.value();
  } else {
    *status = std::move(started);
  }
}

ThreadPool::~ThreadPool() = default;

}  // namespace vitro
