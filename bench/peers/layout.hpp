// SPDX-License-Identifier: Apache-2.0
// Copies of operands in the order of axes that another library wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vitro_bench {

inline std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

// A dense array of `dims` with its axes in another order: axis i of the result is axis order[i] of `values`. Filters
// [kh, kw, in, out] become [out, in, kh, kw] with {3, 2, 0, 1}.
inline std::vector<float> permuted(const float* values, const std::vector<std::int64_t>& dims,
                                   const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  std::vector<float> result(static_cast<std::size_t>(count_of(dims)));
  for (std::size_t flat = 0; flat < result.size(); ++flat) {
    auto rest = static_cast<std::int64_t>(flat);
    std::int64_t from = 0;
    for (std::size_t i = order.size(); i-- > 0;) {
      from += rest % dims[order[i]] * strides[order[i]];
      rest /= dims[order[i]];
    }
    result[flat] = values[from];
  }
  return result;
}

}  // namespace vitro_bench
