// SPDX-License-Identifier: Apache-2.0
// What becomes of the gradient of a linear layer's weights for one row of inputs, dw = x^T * dy, without dw in memory.
#pragma once

#include "context.hpp"
#include "linear.hpp"

#include <cstdint>

namespace vitro::ops {

// dw of a linear layer with one row. Each function gives the bits that it gives after run_linear_grad_weight().
struct OuterProblem {
  Index rows = 0, columns = 0;  // of dw
  Index elements() const noexcept { return rows * columns; }
};

// Requires problem.rows == 1 and dense x.
inline OuterProblem outer_problem(const LinearProblem& problem) noexcept { return {problem.in, problem.out}; }

// Shared scratch that the functions below need; the first of it holds dy as the kernels want it.
std::size_t outer_bytes(const OuterProblem& problem) noexcept;

// The operand of the kernels: x, and dy copied to `scratch`, of outer_bytes().
simd::OuterProduct prepare_outer(const OuterProblem& problem, const float* x, const float* dy, std::byte* scratch) noexcept;

// run_sum_squares() and run_all_finite() (norm.hpp) of dw.
void run_sum_squares_outer(Context& context, const OuterProblem& problem, const float* x, const float* dy,
                           const float* previous, float* total) noexcept;
void run_all_finite_outer(const OuterProblem& problem, const float* x, const float* dy, const float* total,
                          const std::int32_t* previous, std::int32_t* ok) noexcept;

}  // namespace vitro::ops
