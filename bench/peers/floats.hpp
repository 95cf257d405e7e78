// SPDX-License-Identifier: Apache-2.0
// Floats: memory for operands and results, aligned alike for everybody.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace vitro_bench {

// `count` zeros, 64-byte aligned.
class Floats {
 public:
  explicit Floats(std::ptrdiff_t count) : count_(static_cast<std::size_t>(count)) {
    const std::size_t bytes = (count_ * sizeof(float) + 64) / 64 * 64;
    memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    std::memset(memory_.get(), 0, bytes);
  }

  float* data() const { return memory_.get(); }
  std::size_t size() const { return count_; }
  std::vector<float> copy() const { return {data(), data() + count_}; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::size_t count_;
  std::unique_ptr<float[], Free> memory_;
};

}  // namespace vitro_bench
