// SPDX-License-Identifier: Apache-2.0
// The kernels of vector_kernels.hpp without vectors; compiled a second time with the fma instruction (variant.hpp).
#include "vec_scalar.hpp"
#include "vector_kernels.hpp"

// The bodies take the vocabulary and the variant's namespace from here.
#define VITRO_VARIANT VITRO_SCALAR
#include "elementwise.inl"
#include "outer.inl"
#include "pool.inl"
#include "pool_grad.inl"
#include "reduce.inl"
#include "softmax.inl"
