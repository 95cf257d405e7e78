// SPDX-License-Identifier: Apache-2.0
// The calling thread's floating-point state, on which the contract of equal bits rests.
#pragma once

#include "../core/error.hpp"

namespace vitro::ops {

// Error unsupported, by name: results or operands that are denormal are flushed to zero, or the rounding mode is not to the
// nearest. Sees what arithmetic does, so it knows no registers.
Status check_float_state();

}  // namespace vitro::ops
