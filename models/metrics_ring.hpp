// SPDX-License-Identifier: Apache-2.0
// MetricsRing: what steps report, written by the steps themselves and read when somebody looks.
#pragma once

#include "../core/shape.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace vitro {

// Written by a step (see StepResults).
struct StepMetrics {
  float loss = 0;
  std::int32_t correct = 0;
  float squared_norm = 0;
  std::int32_t ok = 1;
};

// A step's metrics, and which step it was.
struct StepRecord {
  StepMetrics metrics;
  Index epoch = 0, step = 0, samples = 0;
};

// A queue of fixed size. Who runs steps pushes a record and lets the step write into it; who wants to know pops them in order.
class MetricsRing {
 public:
  static constexpr std::size_t kCapacity = 64;

  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kCapacity; }

  // The `ok` of the record that was pushed last, which the next step reads; stays where it is until kCapacity more are pushed.
  const std::int32_t* last_ok() const noexcept { return &records_[last_].metrics.ok; }

  // A new record at the end. Requires !full().
  StepRecord& push(Index epoch, Index step, Index samples) noexcept {
    last_ = (last_ + 1) % records_.size();
    ++size_;
    return records_[last_] = {{}, epoch, step, samples};
  }
  // The oldest record. Requires !empty().
  StepRecord pop() noexcept {
    const std::size_t first = (last_ + 1 + records_.size() - size_) % records_.size();
    --size_;
    return records_[first];
  }
  // Takes the last push back. Requires !empty().
  void drop_last() noexcept {
    last_ = (last_ + records_.size() - 1) % records_.size();
    --size_;
  }
  // Forgets all records; the next step finds that all was well before it.
  void clear() noexcept { *this = MetricsRing(); }

 private:
  // One more than can be waiting, so that the last one popped is still there for the step after it.
  std::array<StepRecord, kCapacity + 1> records_{};
  std::size_t last_ = 0, size_ = 0;
};

}  // namespace vitro
