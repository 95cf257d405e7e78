// SPDX-License-Identifier: Apache-2.0
// The variants of the vector kernels as types, for TEMPLATE_TEST_CASE: one test case each, skipped where the machine lacks it.
#pragma once

#include "../../simd/kernels.hpp"
#include "guarded.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <limits>
#include <vector>

namespace vitro_test {

using vitro::simd::Index;
using vitro::simd::KernelTable;

// The blocked tables hold the scalar ones' vector kernels, so that they need no test of their own.
struct Avx512 {
  static constexpr const char* kTable = "avx512";
};
struct Avx2 {
  static constexpr const char* kTable = "avx2";
};
struct Scalar {
  static constexpr const char* kTable = "scalar";
};
struct ScalarNofma {
  static constexpr const char* kTable = "scalar-nofma";
};
#define VITRO_VARIANTS Avx512, Avx2, Scalar, ScalarNofma

// The table of that name; skips the test case where the build does not have it or the machine cannot run it.
inline const KernelTable& table_or_skip(const char* name) {
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  for (const KernelTable* table : vitro::simd::kernel_tables()) {
    if (std::strcmp(table->name, name) == 0 && here.contains(table->required)) return *table;
  }
  SKIP("this build or this machine lacks the table " << name);
}

// Expects equal bits, a NaN standing for any NaN. Counts one assertion for the whole array.
inline void require_same_bits(const float* got, const float* want, Index n) {
  for (Index i = 0; i < n; ++i) {
    if (canonical_bits(got[i]) == canonical_bits(want[i])) continue;
    CAPTURE(n, i, got[i], want[i]);
    REQUIRE(canonical_bits(got[i]) == canonical_bits(want[i]));
  }
  SUCCEED();
}

// The sizes that a kernel is run with: every tail, then a few that fill several blocks of any width.
inline std::vector<Index> sizes() {
  std::vector<Index> all;
  for (Index n = 0; n <= 67; ++n) all.push_back(n);
  for (const Index n : {127, 128, 129, 511, 512, 513, 1000, 1031, 4099}) all.push_back(n);
  return all;
}

// n drawn floats that end, or with at_start begin, at a guard page: at every alignment of 4 bytes as n varies.
inline void fill(const Guarded<float>& array, Index n, Draw& draw, bool awkward) {
  for (Index i = 0; i < n; ++i) array[i] = awkward ? draw.awkward_number() : 4.0f * draw.number();
}

// The sums of the contract, written out: 16 lanes and a halving tree, and one chain cut into chunks of 512.
template <class Term>
float naive_lanes(Index n, Term term) {  // lane = term(lane, i)
  float lane[16] = {};
  for (Index i = 0; i < n; ++i) lane[i % 16] = term(lane[i % 16], i);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
  }
  return lane[0];
}

template <class Element>
float naive_chunks(Index n, Element element) {  // sum of element(i)
  float total = 0.0f;
  for (Index begin = 0; begin < n; begin += 512) {
    float chain = 0.0f;
    for (Index i = begin; i < n && i < begin + 512; ++i) chain = chain + element(i);
    total = total + chain;
  }
  return total;
}

inline float naive_max(Index n, const float* x) {
  float best = -std::numeric_limits<float>::infinity();
  for (Index i = 0; i < n; ++i) {
    if (x[i] != x[i]) return x[i];
    if (x[i] > best) best = x[i];
  }
  for (Index i = 0; i < n; ++i) {
    if (x[i] == best) return x[i];  // the first of the largest, which decides the sign of a zero
  }
  return best;
}

}  // namespace vitro_test
