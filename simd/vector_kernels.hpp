// SPDX-License-Identifier: Apache-2.0
// Internal: the entry points of every kernel that is not a matrix product; KernelTable (kernels.hpp) says what each does.
//
// The bodies are written once over the vector vocabulary (vec_scalar.hpp): elementwise.inl, reduce.inl, outer.inl, softmax.inl,
// pool.inl, pool_grad.inl, with exp and log in exp_log.inl. vector_<isa>.cpp compiles them for one instruction set.
#pragma once

#include "outer.hpp"
#include "pool.hpp"
#include "variant.hpp"

#include <cstdint>

namespace vitro::simd {

#define VITRO_VECTOR_ENTRY_POINTS                                                                                         \
  void add(Index n, const float* a, const float* b, float* y) noexcept;                                                   \
  void add_scalar(Index n, const float* a, float b, float* y) noexcept;                                                   \
  void mul(Index n, const float* a, const float* b, float* y) noexcept;                                                   \
  void mul_scalar(Index n, const float* a, float b, float* y) noexcept;                                                   \
  void relu(Index n, const float* x, float* y) noexcept;                                                                  \
  void relu_grad(Index n, const float* y, const float* dy, float* dx) noexcept;                                           \
  void exp(Index n, const float* x, float* y) noexcept;                                                                   \
  void log(Index n, const float* x, float* y) noexcept;                                                                   \
  void bytes_to_unit(Index n, const std::uint8_t* x, float* y) noexcept;                                                  \
  void sgd_update(Index n, float rate, float momentum, float weight_decay, const float* g, float* v, float* p) noexcept;  \
  float sum(Index n, const float* x) noexcept;                                                                            \
  float sum_squares(Index n, const float* x) noexcept;                                                                    \
  float max(Index n, const float* x) noexcept;                                                                            \
  void sum_rows(Index rows, Index columns, const float* x, Index row_stride, float* y) noexcept;                          \
  void sum_row_chunks(Index rows, Index columns, const float* x, Index row_stride, float* sums) noexcept;                 \
  void softmax(Index rows, Index columns, const float* x, float* y) noexcept;                                             \
  void log_softmax(Index rows, Index columns, const float* x, float* y) noexcept;                                         \
  void cross_entropy(Index rows, Index columns, const float* x, const std::int32_t* labels, float* loss,                  \
                     float* probabilities) noexcept;                                                                      \
  void cross_entropy_grad(Index rows, Index columns, const float* probabilities, const std::int32_t* labels, float scale, \
                          float* dx) noexcept;                                                                            \
  void softmax_grad(Index rows, Index columns, const float* y, const float* dy, float* dx) noexcept;                      \
  void log_softmax_grad(Index rows, Index columns, const float* y, const float* dy, float* dx) noexcept;                  \
  void sgd_update_outer(const OuterProduct& outer, Index first, Index n, float scale, float rate, float momentum,         \
                        float weight_decay, float* v, float* p) noexcept;                                                 \
  float sum_squares_outer(const OuterProduct& outer, Index n) noexcept;                                                   \
  void max_pool(const PoolWindows& windows, const float* x, float* y, std::uint8_t* argmax) noexcept;                     \
  void average_pool(const PoolWindows& windows, const float* x, float divisor, float* y) noexcept;                        \
  void max_pool_grad(const PoolWindows& windows, bool overlapping, const std::uint8_t* argmax, const float* dy,           \
                     float* dx) noexcept;                                                                                 \
  void average_pool_grad(const PoolWindows& windows, bool overlapping, float divisor, const float* dy, float* dx) noexcept;

namespace scalar {
VITRO_VECTOR_ENTRY_POINTS
}
namespace scalar_fma {
VITRO_VECTOR_ENTRY_POINTS
}
namespace avx2 {
VITRO_VECTOR_ENTRY_POINTS
}
namespace avx512 {
VITRO_VECTOR_ENTRY_POINTS
}

#undef VITRO_VECTOR_ENTRY_POINTS

}  // namespace vitro::simd
