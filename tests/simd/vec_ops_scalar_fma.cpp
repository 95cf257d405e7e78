// SPDX-License-Identifier: Apache-2.0
// The operations of vec_scalar.hpp, with the fma instruction, for vec_test.cpp.
#include "../../simd/vec_scalar.hpp"
#include "vec_ops.hpp"

#define VITRO_VEC_OPS kScalarFmaOps
#include "vec_ops.inl"
