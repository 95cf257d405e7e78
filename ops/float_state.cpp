// SPDX-License-Identifier: Apache-2.0
// A few sums and products whose results tell the rounding mode and what happens to denormals.
#include "float_state.hpp"

#include <cfenv>
#include <string>

namespace vitro::ops {
namespace {

Error refuse(const char* what) {
  return Error(ErrorCode::unsupported, std::string("the calling thread's floating-point state ") + what +
                                           ", so results would not have the bits that every other machine gives; restore the "
                                           "default state (std::fesetenv(FE_DFL_ENV)) in this thread first");
}

// What is wrong with the arithmetic; null for nothing. Volatile, so that the processor computes and not the compiler.
const char* arithmetic_fault() {
  volatile float one = 1.0f, tiny = 0x1p-30f, smallest_normal = 0x1p-126f, half = 0.5f, denormal = 0x1p-130f;
  const volatile float up = one + tiny, down = one - tiny, negative = -one - tiny;
  if (up != 1.0f || down != 1.0f || negative != -1.0f) return "does not round to the nearest";
  // Operands first: where they are taken for zero, the comparison of a denormal result would say so, too.
  const volatile float scaled = denormal * 0x1p100f;
  if (scaled == 0.0f) return "takes denormal operands for zero";
  const volatile float result = smallest_normal * half;
  return result == 0.0f ? "flushes denormal results to zero" : nullptr;
}

}  // namespace

Status check_float_state() {
#if defined(__GLIBC__)
  if (fegetexcept() != 0) return refuse("stops the program at floating-point exceptions");
#endif
  // The sums raise exceptions of their own: the caller finds the flags as they were.
  std::fenv_t state;
  std::feholdexcept(&state);
  const char* const fault = arithmetic_fault();
  std::fesetenv(&state);
  return fault == nullptr ? Status() : Status(refuse(fault));
}

}  // namespace vitro::ops
