// SPDX-License-Identifier: Apache-2.0
// Gathering batches, by the caller or ahead of it.
#include "loader.hpp"

#include <algorithm>
#include <string>

#if VITRO_THREADS
#include "../core/start_thread.hpp"

#include <atomic>
#include <thread>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif
#endif

namespace vitro {
namespace {

constexpr Index kLastEpoch = 0xffffffff;  // that a Sampler knows

}  // namespace

#if VITRO_THREADS

// Fills one buffer at a time when told to. The caller writes what is to be done, then raises `asked_`; the thread raises
// `done_` after it. So at any time one of the two owns the buffer, and the sampler too.
class Loader::Thread {
 public:
  explicit Thread(Loader& loader) : loader_(loader) {
    start_thread(thread_, "the thread that prefetches batches", [this] { run(); }).value();
  }
  ~Thread() {
    if (process_id() != process_) {  // a forked child: nobody is there to wait for
      thread_.detach();
      return;
    }
    wait();
    buffer_ = nullptr;
    announce();
    thread_.join();
  }

  // Requires that wait() has returned since the last call.
  void start(Buffer& buffer, const Position& position) noexcept {
    buffer_ = &buffer;
    position_ = position;
    announce();
  }
  // Until the buffer is filled.
  void wait() const noexcept {
    const std::uint32_t asked = asked_.load(std::memory_order_relaxed);
    for (std::uint32_t done = done_.load(std::memory_order_acquire); done != asked;
         done = done_.load(std::memory_order_acquire)) {
      done_.wait(done, std::memory_order_acquire);
    }
  }

 private:
  void announce() noexcept {
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
  }

  void run() {
    for (std::uint32_t seen = 0;;) {
      asked_.wait(seen, std::memory_order_acquire);
      ++seen;
      if (buffer_ == nullptr) return;
      loader_.fill(*buffer_, position_);
      done_.store(seen, std::memory_order_release);
      done_.notify_one();
    }
  }

  static long process_id() noexcept {
#if __has_include(<unistd.h>)
    return getpid();
#else
    return 0;  // no fork() either
#endif
  }

  Loader& loader_;
  const long process_ = process_id();
  Buffer* buffer_ = nullptr;
  Position position_;
  std::atomic<std::uint32_t> asked_{0}, done_{0};
  std::thread thread_;
};

#else

class Loader::Thread {
 public:
  explicit Thread(Loader&) {}
  void start(Buffer&, const Position&) noexcept {}
  void wait() const noexcept {}
};

#endif

Status Loader::check(const Dataset& data, const LoaderOptions& options) {
  const auto refuse = [](const char* what, Index value, const char* right) {
    return Error(ErrorCode::invalid_argument,
                 std::string("loader: ") + what + " is " + std::to_string(value) + "; it must be " + right);
  };
  if (options.batch < 1) return refuse("batch", options.batch, "at least 1");
  if (options.shift < 0 || options.shift > 255) return refuse("shift", options.shift, "0 to 255 pixels");
  if (data.size() < 1) return refuse("the number of images", data.size(), "at least 1");
#if !VITRO_THREADS
  if (options.policy == InputPolicy::prefetch) {
    return Error(ErrorCode::unsupported,
                 "loader: this build has no threads (VITRO_THREADS is off), so it cannot prefetch; use another input policy");
  }
#endif
  return {};
}

Loader::Loader(const Dataset& data, const LoaderOptions& options)
    : data_(data),
      options_((check(data, options).value(), options)),
      sampler_(data.size(), std::min(options.batch, data.size()), options.seed) {
  const Index largest = std::min(options.batch, data.size());
  for (std::size_t i = 0; i < (options.policy == InputPolicy::plain ? 1 : buffers_.size()); ++i) {
    buffers_[i].images = ByteTensor(data.images.shape().with(0, largest));
    buffers_[i].labels = LabelTensor({largest});
  }
  if (options.policy == InputPolicy::prefetch) thread_ = std::make_unique<Thread>(*this);
}

Loader::~Loader() = default;

Index Loader::count(Index step) const noexcept {
  const Index batch = std::min(options_.batch, data_.size());
  return std::min(batch, data_.size() - step * batch);
}

Batch Loader::get(Index epoch, Index step) {
  const Position wanted{epoch, step};
  if (thread_) thread_->wait();
  if (options_.policy != InputPolicy::plain) current_ = 1 - current_;
  Buffer& buffer = buffers_[current_];
  if (buffer.holds != wanted) fill(buffer, wanted);
  const Position next = after(wanted);
  if (thread_ && next.epoch <= kLastEpoch) thread_->start(buffers_[1 - current_], next);
  return view(buffer);
}

void Loader::fill(Buffer& buffer, const Position& position) {
  buffer.holds = position;
  const Index samples = count(position.step);
  gather_batch(data_, sampler_.batch(position.epoch, position.step), {options_.shift, options_.seed, position.epoch},
               BasicView<std::uint8_t>(buffer.images.data(), data_.images.shape().with(0, samples)),
               BasicView<std::int32_t>(buffer.labels.data(), Shape({samples})));
}

Batch Loader::view(const Buffer& buffer) const {
  const Index samples = count(buffer.holds.step);
  return {BasicView<const std::uint8_t>(buffer.images.data(), data_.images.shape().with(0, samples)),
          LabelView(buffer.labels.data(), Shape({samples})), buffer.holds.epoch, buffer.holds.step};
}

Loader::Position Loader::after(const Position& position) const noexcept {
  const bool last = position.step + 1 == steps();
  return last ? Position{position.epoch + 1, 0} : Position{position.epoch, position.step + 1};
}

}  // namespace vitro
