// SPDX-License-Identifier: Apache-2.0
// The matrix product that a textbook starts with, as the yardstick of gemm_vs_naive.
#pragma once

#include "../simd/variant.hpp"

namespace vitro_bench {

// C = A * B, dense and square, in the order i, j, k; its file is always compiled with -O2 and no other optimisation.
void naive_gemm(vitro::simd::Index size, const float* a, const float* b, float* c);

}  // namespace vitro_bench
