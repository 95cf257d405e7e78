// SPDX-License-Identifier: Apache-2.0
// Context: where operations run. Picks a kernel table once and holds the thread pool and the scratch memory.
#pragma once

#include "../core/storage.hpp"
#include "../core/thread_pool.hpp"
#include "../simd/kernels.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace vitro {

using simd::Isa;

struct ContextOptions {
  std::optional<Isa> isa = std::nullopt;  // empty: the best this machine has
  int threads = 1;                        // the caller included
  Index parallel_work = 1 << 16;          // loops that cost less run on their caller (see Context::parallel_for)
  Index wake_work = 1 << 19;              // so do those that cost less than this, while the threads are asleep
  int spin_microseconds = 100;            // how long idle threads watch for work before they sleep (see ThreadPool)
  Executor executor = {};                 // threads of the caller's in place of the context's own (see Executor)
};

// Scratch memory that an operation needs, in bytes: one block shared by all threads and one for each thread.
struct ScratchSize {
  std::size_t shared_bytes = 0;
  std::size_t thread_bytes = 0;
};

// One Context serves one caller at a time. Results do not depend on its options: every table and every number of threads gives
// the same bits.
class Context {
 public:
  // Fails with unsupported where the machine or the build lacks the instruction set (the message lists what there is), and as
  // ThreadPool does, whose error goes to `status` if there is one.
  explicit Context(const ContextOptions& options = {}, Status* status = nullptr);
  static Result<std::unique_ptr<Context>> try_make(const ContextOptions& options);

  const simd::KernelTable& kernels() const noexcept { return *kernels_; }
  int threads() const noexcept { return pool_.size(); }

  template <class Body>
  void parallel_for(Index count, const Body& body) noexcept {
    pool_.parallel_for(count, body);
  }
  // The same where one item costs about `work` elementary operations (one float loaded, computed and stored; a matrix product
  // does 16 multiply-adds in that time). A loop of less than ContextOptions::parallel_work in all (by default about 20
  // microseconds), or of less than wake_work (about 150) while the threads are asleep or an executor's, runs on its caller, as
  // handing data to other processors and waking them would cost more than it saves. Sleeping threads are also woken by several
  // such loops that follow each other closely and come to wake_work together.
  template <class Body>
  void parallel_for(Index count, Index work, const Body& body) noexcept {
    if (threads() > 1 && count > 1 && count >= parallel_work_ / (work + 1) &&
        (pool_.awake() || count >= wake_work_ / (work + 1) || ends_burst(count * (work + 1)))) {
      pool_.parallel_for(count, body);
    } else if (count > 0) {
      body(Index{0}, count, 0);
    }
  }

  // Makes the scratch memory at least this large: one shared block and one for each thread, in bytes. The cold path: the only
  // call that may allocate (fails with out_of_memory); contents are lost when it grows.
  void reserve_scratch(std::size_t shared_bytes, std::size_t thread_bytes);
  void reserve_scratch(const ScratchSize& size) { reserve_scratch(size.shared_bytes, size.thread_bytes); }
  // The same, in the caller's memory, which must outlive the context's use of it: `memory` has scratch_bytes(size) bytes and is
  // 64-byte aligned. Asking for more later takes memory from the heap again.
  void lend_scratch(const ScratchSize& size, std::byte* memory) noexcept;
  std::size_t scratch_bytes(const ScratchSize& size) const noexcept;

  // 64-byte aligned. An operation may use them from its start to its end; nothing survives in them between operations.
  std::byte* shared_scratch() const noexcept { return shared_scratch_; }
  std::byte* thread_scratch(int thread) const noexcept {
    return thread_scratch_ + static_cast<std::size_t>(thread) * thread_bytes_;
  }

 private:
  // Whether a loop of this work comes to wake_work together with those before it that found the threads asleep, each so soon
  // after the one before that a woken thread would still have been watching.
  bool ends_burst(Index work) noexcept;

  const simd::KernelTable* kernels_;
  ThreadPool pool_;
  Index parallel_work_;
  Index wake_work_;
  std::int64_t burst_pause_;  // longest time from one loop of a burst to the next, in nanoseconds; 0: there are no bursts
  std::atomic<Index> burst_work_{0};                 // atomic since a loop may begin another inside
  std::atomic<std::int64_t> burst_time_{0};          // when its last loop began
  AlignedArray<std::byte> own_shared_, own_thread_;  // unless the memory is the caller's
  std::byte* shared_scratch_ = nullptr;
  std::byte* thread_scratch_ = nullptr;
  std::size_t shared_bytes_ = 0;
  std::size_t thread_bytes_ = 0;  // of each thread's block, a multiple of 64
};

}  // namespace vitro
