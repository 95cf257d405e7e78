// SPDX-License-Identifier: Apache-2.0
// The kernels of vector_kernels.hpp for AVX-512.
#include "vec_avx512.hpp"
#include "vector_kernels.hpp"

// The bodies take the vocabulary and the variant's namespace from here.
#define VITRO_VARIANT avx512
#include "elementwise.inl"
#include "outer.inl"
#include "pool.inl"
#include "pool_grad.inl"
#include "reduce.inl"
#include "softmax.inl"
