// SPDX-License-Identifier: Apache-2.0
// The list of kernel tables, best first, and the choice among them.
#include "kernels.hpp"

#include "gemm.hpp"
#include "vector_kernels.hpp"

namespace vitro::simd {

namespace {

#define VITRO_MATRIX_KERNELS(variant)                                                                    \
  .gemm_scratch = variant::gemm_scratch, .gemm = variant::gemm, .packed_b_size = variant::packed_b_size, \
  .pack_b = variant::pack_b, .gemm_rows = variant::gemm_rows, .gemm_planes = variant::gemm_planes,       \
  .gemm_lanes = variant::gemm_lanes, .transpose = variant::transpose, .copy_runs = variant::copy_runs

#define VITRO_VECTOR_KERNELS(variant)                                                                                  \
  .add = variant::add, .add_scalar = variant::add_scalar, .mul = variant::mul, .mul_scalar = variant::mul_scalar,      \
  .relu = variant::relu, .relu_grad = variant::relu_grad, .exp = variant::exp, .log = variant::log,                    \
  .bytes_to_unit = variant::bytes_to_unit, .sgd_update = variant::sgd_update, .sum = variant::sum,                     \
  .sum_squares = variant::sum_squares, .max = variant::max, .sum_rows = variant::sum_rows,                             \
  .sum_row_chunks = variant::sum_row_chunks, .sgd_update_outer = variant::sgd_update_outer,                            \
  .sum_squares_outer = variant::sum_squares_outer, .softmax = variant::softmax, .log_softmax = variant::log_softmax,   \
  .cross_entropy = variant::cross_entropy, .cross_entropy_grad = variant::cross_entropy_grad,                          \
  .softmax_grad = variant::softmax_grad, .log_softmax_grad = variant::log_softmax_grad, .max_pool = variant::max_pool, \
  .average_pool = variant::average_pool, .max_pool_grad = variant::max_pool_grad,                                      \
  .average_pool_grad = variant::average_pool_grad

// What the sources that every target compiles are worth: see Vec::fma in vec_scalar.hpp.
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
constexpr const char* kBaselineScalar = "scalar";
constexpr const char* kBaselineBlocked = "blocked";
#else
constexpr const char* kBaselineScalar = "scalar-nofma";
constexpr const char* kBaselineBlocked = "blocked-nofma";
#endif

constexpr KernelTable kScalar{
    .name = kBaselineScalar, .isa = Isa::scalar, .required = {}, VITRO_MATRIX_KERNELS(scalar), VITRO_VECTOR_KERNELS(scalar)};

// Cache blocking concerns matrix products alone: everything else is the scalar code.
constexpr KernelTable kBlocked{
    .name = kBaselineBlocked, .isa = Isa::blocked, .required = {}, VITRO_MATRIX_KERNELS(blocked), VITRO_VECTOR_KERNELS(scalar)};

#if defined(__x86_64__)
constexpr KernelTable kScalarFma{.name = "scalar",
                                 .isa = Isa::scalar,
                                 .required = {.fma = true},
                                 VITRO_MATRIX_KERNELS(scalar_fma),
                                 VITRO_VECTOR_KERNELS(scalar_fma)};

constexpr KernelTable kBlockedFma{.name = "blocked",
                                  .isa = Isa::blocked,
                                  .required = {.fma = true},
                                  VITRO_MATRIX_KERNELS(blocked_fma),
                                  VITRO_VECTOR_KERNELS(scalar_fma)};

constexpr KernelTable kAvx2{.name = "avx2",
                            .isa = Isa::avx2,
                            .required = {.fma = true, .avx2 = true},
                            VITRO_MATRIX_KERNELS(avx2),
                            VITRO_VECTOR_KERNELS(avx2)};

constexpr KernelTable kAvx512{.name = "avx512",
                              .isa = Isa::avx512,
                              .required = {.fma = true, .avx2 = true, .avx512 = true},
                              VITRO_MATRIX_KERNELS(avx512),
                              VITRO_VECTOR_KERNELS(avx512)};

constexpr const KernelTable* kTables[] = {&kAvx512, &kAvx2, &kBlockedFma, &kScalarFma, &kBlocked, &kScalar};
#else
constexpr const KernelTable* kTables[] = {&kBlocked, &kScalar};
#endif

#undef VITRO_MATRIX_KERNELS
#undef VITRO_VECTOR_KERNELS

}  // namespace

std::span<const KernelTable* const> kernel_tables() noexcept { return kTables; }

const KernelTable& best_kernels(const FeatureSet& features) noexcept {
  for (const KernelTable* table : kTables) {
    if (features.contains(table->required)) return *table;
  }
  return kScalar;  // not reached: it requires nothing
}

const KernelTable* find_kernels(Isa isa, const FeatureSet& features) noexcept {
  for (const KernelTable* table : kTables) {
    if (table->isa == isa && features.contains(table->required)) return table;
  }
  return nullptr;
}

}  // namespace vitro::simd
