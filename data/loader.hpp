// SPDX-License-Identifier: Apache-2.0
// Loader: the batches of a training one after the other, gathered into memory that is taken once.
#pragma once

#include "batch.hpp"

#include <array>
#include <memory>

namespace vitro {

// When and by whom a batch is gathered. All policies give the same batches.
enum class InputPolicy : unsigned char {
  plain,     // in next(), into one buffer
  buffered,  // in next(), into two buffers in turn: the batch before stays as it is
  prefetch,  // into two buffers in turn, by a thread of the loader's, while the caller works on the batch before
};

struct LoaderOptions {
  Index batch = 64;        // samples; the last batch of an epoch may have fewer
  std::uint64_t seed = 1;  // of the order and the shifts
  int shift = 0;           // see RandomShift
  InputPolicy policy = InputPolicy::plain;
};

struct Batch {
  BasicView<const std::uint8_t> images;  // [count, H, W, C]
  LabelView labels;                      // [count]
  Index epoch = 0, step = 0;
};

// Serves one thread at a time. After the first batch it allocates nothing; with `plain` and `buffered` it makes no system call
// and takes no lock, with `prefetch` only those by which one thread wakes the other. A forked child may destroy a prefetching
// loader of its parent's but not use it: the thread is not there.
class Loader {
 public:
  // `data` must outlive the loader and stay as it is. Fails with the errors of check(), and with unsupported
  // where the system does not start the thread that prefetches.
  Loader(const Dataset& data, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // invalid_argument for a batch under 1, a shift outside 0 .. 255 or an empty data set; unsupported for `prefetch` where the
  // build has no threads.
  static Status check(const Dataset& data, const LoaderOptions& options);

  // Batches in an epoch.
  Index steps() const noexcept { return sampler_.steps(); }
  // The samples in the batch of one step.
  Index count(Index step) const noexcept;

  // The batch of one step, valid until the next call (`buffered`: the one after that). Prefetching pays where calls go on with
  // the step after the last one's. Requires 0 <= epoch < 2^32 and 0 <= step < steps().
  Batch get(Index epoch, Index step);

 private:
  struct Position {
    Index epoch = -1, step = 0;
    friend bool operator==(const Position&, const Position&) noexcept = default;
  };
  struct Buffer {
    ByteTensor images;
    LabelTensor labels;
    Position holds;  // which batch; none at first
  };
  class Thread;

  void fill(Buffer& buffer, const Position& position);
  Batch view(const Buffer& buffer) const;
  Position after(const Position& position) const noexcept;

  const Dataset& data_;
  LoaderOptions options_;
  Sampler sampler_;
  std::array<Buffer, 2> buffers_;
  std::size_t current_ = 0;  // the buffer that was handed out last
  std::unique_ptr<Thread> thread_;
};

}  // namespace vitro
