// SPDX-License-Identifier: Apache-2.0
// What a test program asks the system to do with files, seen call by call, and stopped before one of them as if it were killed.
#pragma once

#include <string>
#include <vector>

namespace vitro_test {

// Linked into a test program, system_calls.cpp takes the place of the C library's write, fsync, rename and unlink. Between
// these two calls it notes them as "write PATH", "fsync PATH", "rename FROM TO", "unlink PATH".
void watch_calls();
std::vector<std::string> watched_calls();

// Like watch_calls(), but the call number `stop` (from 0) ends the process with kStopped instead; a write gets half of its
// bytes out before that.
inline constexpr int kStopped = 77;
void stop_before_call(int stop);

}  // namespace vitro_test
