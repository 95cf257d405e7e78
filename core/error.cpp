// SPDX-License-Identifier: Apache-2.0
// The error codes' names and the two ways in which a programming error is reported.
#include "error.hpp"

#include <atomic>

namespace vitro {
namespace {

#if !defined(__cpp_exceptions)
std::atomic<FailureHandler> failure_handler{nullptr};
#endif

}  // namespace

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::shape_mismatch: return "shape_mismatch";
    case ErrorCode::overflow: return "overflow";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
    case ErrorCode::format: return "format";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::non_finite: return "non_finite";
  }
  return "unknown";
}

#if defined(__cpp_exceptions)

void fail(Error error) { throw error; }

FailureHandler set_failure_handler(FailureHandler) noexcept { return nullptr; }

#else

void fail(Error error) {
  if (FailureHandler handler = failure_handler.load()) handler(error);
  std::terminate();
}

FailureHandler set_failure_handler(FailureHandler handler) noexcept { return failure_handler.exchange(handler); }

#endif

}  // namespace vitro
