// SPDX-License-Identifier: Apache-2.0
// Choosing a kernel table, and growing the scratch memory.
#include "context.hpp"

#include <chrono>
#include <string>

namespace vitro {
namespace {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::blocked: return "blocked";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

Result<const simd::KernelTable*> choose_kernels(const ContextOptions& options) {
  const simd::FeatureSet features = simd::features(simd::read_cpuid());
  if (!options.isa) return &simd::best_kernels(features);
  if (const simd::KernelTable* table = simd::find_kernels(*options.isa, features)) return table;
  std::string present;
  for (const simd::KernelTable* table : simd::kernel_tables()) {
    if (features.contains(table->required)) present += (present.empty() ? "" : ", ") + std::string(table->name);
  }
  return Error(ErrorCode::unsupported, "This machine or this build lacks the " + std::string(name_of(*options.isa)) +
                                           " kernels; it has " + present + ".");
}

// From the begin of one loop to that of the next: a loop that wakes nobody takes up to 150 microseconds itself.
std::int64_t burst_pause(const ContextOptions& options) {
  const bool watches = options.executor.parallel_for == nullptr && options.spin_microseconds > 0;
  return watches ? 1000 * (std::int64_t{options.spin_microseconds} + 150) : 0;
}

ThreadPoolOptions pool_options(const ContextOptions& options) {
  return {.threads = options.threads, .spin_microseconds = options.spin_microseconds, .executor = options.executor};
}

}  // namespace

Context::Context(const ContextOptions& options, Status* status)
    : kernels_(choose_kernels(options).value()),
      pool_(pool_options(options), status),
      parallel_work_(options.parallel_work),
      wake_work_(options.wake_work),
      burst_pause_(burst_pause(options)) {}

Result<std::unique_ptr<Context>> Context::try_make(const ContextOptions& options) {
  if (const Result<const simd::KernelTable*> kernels = choose_kernels(options); !kernels) return kernels.error();
  Status status;
  std::unique_ptr<Context> context = std::make_unique<Context>(options, &status);
  if (!status) return std::move(status).error();
  return context;
}

bool Context::ends_burst(Index work) noexcept {
#if VITRO_THREADS
  // Where waking did not help the last time, as on one processor, it seldom does the next time.
  constexpr Index kDoubt = 8;
  if (burst_pause_ == 0) return false;
  const std::int64_t now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  const bool goes_on = now - burst_time_.exchange(now, std::memory_order_relaxed) <= burst_pause_;
  const Index all = work + (goes_on ? burst_work_.load(std::memory_order_relaxed) : 0);
  const bool ends = all / (pool_.helped() ? 1 : kDoubt) >= wake_work_;
  burst_work_.store(ends ? 0 : all, std::memory_order_relaxed);
  return ends;
#else
  static_cast<void>(work);
  return false;
#endif
}

void Context::reserve_scratch(std::size_t shared_bytes, std::size_t thread_bytes) {
  if (shared_bytes > shared_bytes_) {
    own_shared_.reset();  // first, so that the peak is not old plus new
    shared_scratch_ = nullptr;
    shared_bytes_ = 0;
    own_shared_ = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(aligned_up(shared_bytes)));
    shared_scratch_ = own_shared_.get();
    shared_bytes_ = aligned_up(shared_bytes);
  }
  if (thread_bytes > thread_bytes_) {
    own_thread_.reset();
    thread_scratch_ = nullptr;
    thread_bytes_ = 0;
    const std::size_t all = aligned_up(thread_bytes) * static_cast<std::size_t>(threads());
    own_thread_ = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(all));
    thread_scratch_ = own_thread_.get();
    thread_bytes_ = aligned_up(thread_bytes);
  }
}

std::size_t Context::scratch_bytes(const ScratchSize& size) const noexcept {
  return aligned_up(size.shared_bytes) + aligned_up(size.thread_bytes) * static_cast<std::size_t>(threads());
}

void Context::lend_scratch(const ScratchSize& size, std::byte* memory) noexcept {
  own_shared_.reset();
  own_thread_.reset();
  shared_scratch_ = memory;
  shared_bytes_ = aligned_up(size.shared_bytes);
  thread_scratch_ = memory + shared_bytes_;
  thread_bytes_ = aligned_up(size.thread_bytes);
}

}  // namespace vitro
