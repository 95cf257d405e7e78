// SPDX-License-Identifier: Apache-2.0
// The operations of vec_avx2.hpp for vec_test.cpp.
#include "../../simd/vec_avx2.hpp"
#include "vec_ops.hpp"

#define VITRO_VEC_OPS kAvx2Ops
#include "vec_ops.inl"
