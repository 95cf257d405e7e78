// SPDX-License-Identifier: Apache-2.0
// The C library's functions under their own names, over those that it offers beside them.
#include "heap_calls.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vitro_test {
namespace {

std::atomic<std::uint64_t> allocations{0}, frees{0}, locks{0};

// The next definition of a function: the C library's.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

CallCounts call_counts() noexcept { return {allocations, frees, locks}; }

int runs_without_system_calls(void (*body)(void*), void* argument) {
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(2);
    body(argument);
    syscall(SYS_exit, 0);  // _exit() ends all threads, which the mode does not allow
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? 1 : -1;
  return 0;
}

}  // namespace vitro_test

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  ++vitro_test::allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++vitro_test::allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++vitro_test::allocations;
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  ++vitro_test::allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++vitro_test::allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  ++vitro_test::allocations;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  ++vitro_test::frees;
  __libc_free(memory);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto lock = vitro_test::next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  ++vitro_test::locks;
  return lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  static const auto lock = vitro_test::next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  ++vitro_test::locks;
  return lock(mutex);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto wait = vitro_test::next<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  ++vitro_test::locks;
  return wait(condition, mutex);
}
}
