// SPDX-License-Identifier: Apache-2.0
// What a test program asks of the heap and of locks, counted; and a run that ends at the first system call.
#pragma once

#include <cstdint>

namespace vitro_test {

// Linked into a test program, heap_calls.cpp takes the place of the C library's malloc, free and their relatives, and of the
// calls that take a mutex or wait for a condition. All threads are counted.
struct CallCounts {
  std::uint64_t allocations = 0, frees = 0, locks = 0;
};
CallCounts call_counts() noexcept;

// Calls `body(argument)` in a child process that the kernel kills at the first system call (seccomp's strict mode: all but
// read, write and the end of the process). Returns whether the child came to the end; -1 where the system has no such mode.
int runs_without_system_calls(void (*body)(void*), void* argument);

}  // namespace vitro_test
