// SPDX-License-Identifier: Apache-2.0
// The calling thread's floating-point state, on which the contract of equal bits rests.
#pragma once

#include "../core/error.hpp"

namespace vitro::ops {

// Error unsupported, by name: results or operands that are denormal are flushed to zero, the rounding mode is not to the
// nearest, or (glibc tells) floating-point exceptions trap. Sees what arithmetic does, so it knows no registers; leaves the
// state as it was, flags included.
Status check_float_state();

}  // namespace vitro::ops
