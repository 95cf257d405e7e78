// SPDX-License-Identifier: Apache-2.0
// Three loops, compiled with -O2.
#include "naive_gemm.hpp"

namespace vitro_bench {

void naive_gemm(vitro::simd::Index size, const float* a, const float* b, float* c) {
  for (vitro::simd::Index i = 0; i < size; ++i) {
    for (vitro::simd::Index j = 0; j < size; ++j) {
      float sum = 0.0f;
      for (vitro::simd::Index p = 0; p < size; ++p) sum += a[i * size + p] * b[p * size + j];
      c[i * size + j] = sum;
    }
  }
}

}  // namespace vitro_bench
