// SPDX-License-Identifier: Apache-2.0
// What kind of build a test is part of.
#pragma once

#include <vitro/core/thread_pool.hpp>

namespace vitro_test {

// GCC defines macros, Clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__has_feature)
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitizesAddresses = true;
#else
inline constexpr bool kSanitizesAddresses = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizesThreads = true;
#else
inline constexpr bool kSanitizesThreads = false;
#endif
#else
inline constexpr bool kSanitizesAddresses = __has_feature(address_sanitizer);
inline constexpr bool kSanitizesThreads = __has_feature(thread_sanitizer);
#endif

inline bool has_threads() { return vitro::ThreadPool::check({.threads = 2}).ok(); }

}  // namespace vitro_test
