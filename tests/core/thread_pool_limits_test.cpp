// SPDX-License-Identifier: Apache-2.0
// A pool whose threads the system does not start, or not all of them.
#if __has_include(<features.h>)
#include <features.h>
#endif
#if defined(__GLIBC__)
#include "../support/build.hpp"
#include "../support/errors.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vitro/core/thread_pool.hpp>
#include <vitro/ops/context.hpp>

using vitro::Error;
using vitro::ErrorCode;
using vitro::ThreadPool;
using vitro_test::has_threads;

namespace {

// While it lives, new threads get a stack of this size.
class StackSize {
 public:
  explicit StackSize(std::size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t now;
    pthread_getattr_default_np(&now);
    set_ = pthread_attr_setstacksize(&now, bytes) == 0 && pthread_setattr_default_np(&now) == 0;
    pthread_attr_destroy(&now);
  }
  ~StackSize() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  StackSize(const StackSize&) = delete;
  StackSize& operator=(const StackSize&) = delete;

  bool set() const { return set_; }

 private:
  pthread_attr_t before_;
  bool set_ = false;
};

// While it lives, the process may not take more than so much memory beside what it has.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more;
    set_ = pages > 0 && setrlimit(RLIMIT_AS, &now) == 0;
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  bool set() const { return set_; }

 private:
  rlimit before_{};
  bool set_ = false;
};

// Of this process; one that has been waited for may be listed for a moment more.
std::ptrdiff_t running_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

}  // namespace

TEST_CASE("a thread that the system does not start is an error that names it") {
  if (!has_threads()) SKIP("this build has no threads");
  const StackSize beyond_all_memory(kMegabyte << 26);
  REQUIRE(beyond_all_memory.set());
  const Error error = vitro_test::error_of([] { ThreadPool(3); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(error.message().find("thread 2 of 3;") != std::string::npos);
  CHECK(error.message().find("fewer") != std::string::npos);
  vitro::Status status;
  ThreadPool pool({.threads = 3}, &status);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == error.message());
  CHECK(pool.size() == 1);
  int sum = 0;
  pool.parallel_for(5, [&](vitro::Index begin, vitro::Index end, int) { sum += static_cast<int>(end - begin); });
  CHECK(sum == 5);
  const vitro::Result<std::unique_ptr<vitro::Context>> context = vitro::Context::try_make({.threads = 3});
  REQUIRE_FALSE(context.ok());
  CHECK(context.error().message() == error.message());
}

TEST_CASE("the threads before one that is not started end") {
  if (!has_threads()) SKIP("this build has no threads");
  if (vitro_test::kSanitizesAddresses || vitro_test::kSanitizesThreads)
    SKIP("a sanitizer takes more memory than the limit leaves");
  const std::ptrdiff_t before = running_threads();
  const StackSize large(64 * kMegabyte);
  REQUIRE(large.set());
  vitro::Status status;
  {
    const MemoryLimit limit(260 * kMegabyte);
    REQUIRE(limit.set());
    const ThreadPool pool({.threads = 32}, &status);
    CHECK(pool.size() == 1);
  }
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message().find(" of 32;") != std::string::npos);
  CHECK(status.error().message().find("thread 2 of") == std::string::npos);  // some were started
  for (int wait = 0; wait < 1000 && running_threads() > before; ++wait) usleep(5000);
  CHECK(running_threads() <= before);
}
#endif
