// SPDX-License-Identifier: Apache-2.0
// Arrays that stand against a page which must not be touched, and the numbers to fill them with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace vitro_test {

// count elements between two inaccessible pages: the last element ends where the page after begins or, with at_start, the first
// begins where the page before ends.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::ptrdiff_t count, bool at_start = false) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t inside = (bytes + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    map_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) std::abort();
    std::byte* first = static_cast<std::byte*>(map_) + page;
    if (inside > 0 && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(at_start ? first : first + (inside - bytes));
  }
  ~Guarded() {
    if (map_ != nullptr) munmap(map_, mapped_);
  }
  Guarded(Guarded&& other) noexcept : map_(std::exchange(other.map_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}
  Guarded& operator=(Guarded&&) = delete;

  T* data() const { return data_; }
  T& operator[](std::ptrdiff_t i) const { return data_[i]; }

 private:
  void* map_ = nullptr;
  std::size_t mapped_ = 0;
  T* data_ = nullptr;
};

// A small generator with a fixed sequence (xorshift64*), the same on every platform.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 2 + 1) {}

  std::uint32_t bits() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1DULL) >> 32);
  }
  // In [0, limit).
  std::ptrdiff_t below(std::ptrdiff_t limit) { return static_cast<std::ptrdiff_t>(bits() % static_cast<std::uint64_t>(limit)); }
  bool chance(int percent) { return below(100) < percent; }
  // In [-1, 1), multiples of 2^-20.
  float number() {
    return static_cast<float>(static_cast<std::int32_t>(bits() >> 11) - (1 << 20)) / static_cast<float>(1 << 20);
  }
  // Now and then a value at which arithmetic has an edge.
  float awkward_number() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kAwkward[] = {0.0f,      -0.0f,   kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                                  1e-40f,    -1e-45f, 1e-38f,    3e38f,      -3e38f,
                                  16777217.f};
    return chance(80) ? number() : kAwkward[below(static_cast<std::ptrdiff_t>(sizeof(kAwkward) / sizeof(float)))];
  }

 private:
  std::uint64_t state_;
};

// The float's bits, with every NaN as one: payload and sign of a NaN are not part of the numerics contract.
inline std::uint32_t canonical_bits(float x) {
  if (x != x) return 0x7FC00000u;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

}  // namespace vitro_test
