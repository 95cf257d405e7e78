// SPDX-License-Identifier: Apache-2.0
// An outer product as an operand: the gradient of a linear layer's weights for one row, which its readers make as they go.
#pragma once

#include "variant.hpp"

namespace vitro::simd {

// Element i of the dense matrix column * row is column[i / columns] * row[i % columns] + 0, rounded twice: the zeros are +0, as
// those of a chain of fma from +0 that is added to +0. Requires columns >= 1 where an element is asked for.
struct OuterProduct {
  Index columns = 0;
  const float* column = nullptr;
  const float* row = nullptr;  // `columns` elements, then kOuterRepeated more that begin it again, and again if it is shorter
};
inline constexpr Index kOuterRepeated = 16;

}  // namespace vitro::simd
