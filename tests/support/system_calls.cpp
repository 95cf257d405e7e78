// SPDX-License-Identifier: Apache-2.0
// The four functions, each over another system call than the one that it replaces.
#include "system_calls.hpp"

#include <cstdio>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vitro_test {
namespace {

bool watching = false;
int calls_left = -1;  // before the process is stopped; negative: never
std::vector<std::string> calls;

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size < 0 ? "?" : std::string(path, static_cast<std::size_t>(size));
}

// Whether the process has to stop here.
bool stops(const std::string& call) {
  if (!watching) return false;
  if (calls_left == 0) return true;
  --calls_left;
  calls.push_back(call);
  return false;
}

}  // namespace

void watch_calls() { stop_before_call(-1); }

std::vector<std::string> watched_calls() {
  watching = false;
  return std::move(calls);
}

void stop_before_call(int stop) {
  calls.clear();
  calls_left = stop;
  watching = true;
}

}  // namespace vitro_test

extern "C" {

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  const bool stop = vitro_test::watching && vitro_test::stops("write " + vitro_test::path_of(descriptor));
  const ssize_t written = ::syscall(SYS_write, descriptor, bytes, stop ? size / 2 : size);
  if (stop) ::_exit(vitro_test::kStopped);
  return written;
}

int fsync(int descriptor) {
  if (vitro_test::watching && vitro_test::stops("fsync " + vitro_test::path_of(descriptor))) ::_exit(vitro_test::kStopped);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

int rename(const char* from, const char* to) noexcept {
  if (vitro_test::stops(std::string("rename ") + from + " " + to)) ::_exit(vitro_test::kStopped);
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char* path) noexcept {
  if (vitro_test::stops(std::string("unlink ") + path)) ::_exit(vitro_test::kStopped);
  return ::unlinkat(AT_FDCWD, path, 0);
}
}
