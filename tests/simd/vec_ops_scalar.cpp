// SPDX-License-Identifier: Apache-2.0
// The operations of vec_scalar.hpp for vec_test.cpp.
#include "../../simd/vec_scalar.hpp"
#include "vec_ops.hpp"

#define VITRO_VEC_OPS kScalarOps
#include "vec_ops.inl"
