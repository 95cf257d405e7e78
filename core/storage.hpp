// SPDX-License-Identifier: Apache-2.0
// Aligned storage: every block of elements the library owns starts on a 64-byte boundary (a cache line, a 512-bit vector).
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace vitro {

inline constexpr std::size_t kAlignment = 64;

// The smallest multiple of kAlignment that is at least `bytes`. Requires bytes + kAlignment - 1 to fit.
constexpr std::size_t aligned_up(std::size_t bytes) noexcept { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Zero-filled bytes, aligned to kAlignment, rounded up to a multiple of it; never null, also for 0 bytes. Fails with
// out_of_memory, naming the size.
void* allocate_bytes(std::size_t bytes);
void free_bytes(void* memory) noexcept;

struct FreeBytes {
  void operator()(void* memory) const noexcept { free_bytes(memory); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], FreeBytes>;

// `count` zeroed elements of a trivial type. Requires count >= 0 and count * sizeof(T) to fit std::size_t (a Shape does).
template <class T>
AlignedArray<T> allocate_array(std::ptrdiff_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  return AlignedArray<T>(static_cast<T*>(allocate_bytes(static_cast<std::size_t>(count) * sizeof(T))));
}

}  // namespace vitro
