// SPDX-License-Identifier: Apache-2.0
// The list of kernel tables: its order, and that the table asked for is the one whose code runs.
#include "../../simd/kernels.hpp"

#include "../../simd/vector_kernels.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>

using namespace vitro::simd;

TEST_CASE("Every table is complete, named once, and usable where a better one is not") {
  std::set<std::string> names;
  for (const KernelTable* table : kernel_tables()) {
    CHECK(names.insert(table->name).second);
    // The table has no other members than function pointers after these three.
    const void* const* member = reinterpret_cast<const void* const*>(&table->gemm_scratch);
    const void* const* end = reinterpret_cast<const void* const*>(table + 1);
    for (; member != end; ++member) CHECK(*member != nullptr);
  }
  CHECK(kernel_tables().back()->isa == Isa::scalar);
  CHECK(kernel_tables().back()->required.contains(FeatureSet{}));
  CHECK(FeatureSet{}.contains(kernel_tables().back()->required));
}

TEST_CASE("The best table is the first whose features are there") {
  CHECK(best_kernels({}).required.fma == false);
  CHECK(best_kernels({}).isa == Isa::blocked);
#if defined(__x86_64__)
  CHECK(best_kernels({.fma = true}).name == std::string("blocked"));
  CHECK(best_kernels({.fma = true, .avx2 = true}).name == std::string("avx2"));
  CHECK(best_kernels({.fma = true, .avx2 = true, .avx512 = true}).name == std::string("avx512"));
#endif
}

TEST_CASE("A forced instruction set gives its own table, or null") {
  for (const Isa isa : {Isa::scalar, Isa::blocked}) {
    const KernelTable* table = find_kernels(isa, {});
    REQUIRE(table != nullptr);
    CHECK(table->isa == isa);
  }
  CHECK(find_kernels(Isa::avx2, {}) == nullptr);
  CHECK(find_kernels(Isa::avx2, {.fma = true}) == nullptr);
  CHECK(find_kernels(Isa::avx512, {.fma = true, .avx2 = true}) == nullptr);
}

// The tests of kernels run every table that the machine can run. These say which ones that were.
TEST_CASE("This machine can run the tables with the fma instruction") {
  if (!features(read_cpuid()).fma) SKIP("no fma instruction: the tables \"scalar\" and \"blocked\" were not tested");
  CHECK(best_kernels(features(read_cpuid())).required.fma);
}

TEST_CASE("This machine can run the AVX2 table") {
  if (!features(read_cpuid()).avx2) SKIP("no AVX2: the table \"avx2\" was not tested");
  CHECK(find_kernels(Isa::avx2, features(read_cpuid())) != nullptr);
}

TEST_CASE("This machine can run the AVX-512 table") {
  if (!features(read_cpuid()).avx512) SKIP("no AVX-512: the table \"avx512\" was not tested");
  CHECK(best_kernels(features(read_cpuid())).isa == Isa::avx512);
}

TEST_CASE("The code behind a table is that of its instruction set") {
  CHECK(find_kernels(Isa::scalar, {})->gemm == scalar::gemm);
  CHECK(find_kernels(Isa::blocked, {})->gemm == blocked::gemm);
  CHECK(find_kernels(Isa::blocked, {})->softmax == scalar::softmax);
#if defined(__x86_64__)
  const FeatureSet all{.fma = true, .avx2 = true, .avx512 = true};
  CHECK(find_kernels(Isa::scalar, all)->gemm == scalar_fma::gemm);
  CHECK(find_kernels(Isa::scalar, all)->softmax == scalar_fma::softmax);
  CHECK(find_kernels(Isa::blocked, all)->gemm == blocked_fma::gemm);
  CHECK(find_kernels(Isa::blocked, all)->gemm_rows == blocked_fma::gemm_rows);
  CHECK(find_kernels(Isa::avx2, all)->gemm == avx2::gemm);
  CHECK(find_kernels(Isa::avx2, all)->softmax == avx2::softmax);
  CHECK(find_kernels(Isa::avx512, all)->gemm == avx512::gemm);
  CHECK(find_kernels(Isa::avx512, all)->softmax == avx512::softmax);
#endif
}
