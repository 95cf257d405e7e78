// SPDX-License-Identifier: Apache-2.0
// A few sums and products whose results tell the rounding mode and what happens to denormals.
#include "float_state.hpp"

#include <string>

namespace vitro::ops {
namespace {

Error refuse(const char* what) {
  return Error(ErrorCode::unsupported, std::string("the calling thread's floating-point state ") + what +
                                           ", so results would not have the bits that every other machine gives; restore the "
                                           "default state (std::fesetenv(FE_DFL_ENV)) in this thread first");
}

}  // namespace

Status check_float_state() {
  // Volatile, so that the processor computes and not the compiler.
  volatile float one = 1.0f, tiny = 0x1p-30f, smallest_normal = 0x1p-126f, half = 0.5f, denormal = 0x1p-130f;
  const volatile float up = one + tiny, down = one - tiny, negative = -one - tiny;
  if (up != 1.0f || down != 1.0f || negative != -1.0f) return refuse("does not round to the nearest");
  // Operands first: where they are taken for zero, the comparison of a denormal result would say so, too.
  const volatile float scaled = denormal * 0x1p100f;
  if (scaled == 0.0f) return refuse("takes denormal operands for zero");
  const volatile float result = smallest_normal * half;
  if (result == 0.0f) return refuse("flushes denormal results to zero");
  return {};
}

}  // namespace vitro::ops
