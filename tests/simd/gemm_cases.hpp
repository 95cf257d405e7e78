// SPDX-License-Identifier: Apache-2.0
// Matrices with drawn strides between guard pages, and the chain that every matrix kernel must reproduce.
#pragma once

#include "../../simd/kernels.hpp"
#include "guarded.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vitro_test {

using vitro::simd::Accumulate;
using vitro::simd::Index;
using vitro::simd::KernelTable;

// Every table that this machine can run.
inline std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables;
  const vitro::simd::FeatureSet here = vitro::simd::features(vitro::simd::read_cpuid());
  for (const KernelTable* table : vitro::simd::kernel_tables()) {
    if (here.contains(table->required)) tables.push_back(table);
  }
  return tables;
}

// Element (i, j) at first[i * row_stride + j * column_stride], in an array without a float to spare. What lies between the
// elements is NaN, which would spread if it were read.
class Matrix {
 public:
  Matrix(Index rows, Index columns, Index row_stride, Index column_stride, bool at_start)
      : row_stride_(row_stride), column_stride_(column_stride), storage_(extent(rows, columns), at_start) {
    const Index low = std::min<Index>(0, reach(rows, row_stride)) + std::min<Index>(0, reach(columns, column_stride));
    first_ = storage_.data() - low;
    for (Index i = 0; i < extent(rows, columns); ++i) storage_[i] = std::nanf("");
  }

  float* data() const { return first_; }
  float& operator()(Index i, Index j) const { return first_[i * row_stride_ + j * column_stride_]; }
  Index row_stride() const { return row_stride_; }
  Index column_stride() const { return column_stride_; }

 private:
  static Index reach(Index count, Index stride) { return count == 0 ? 0 : (count - 1) * stride; }
  Index extent(Index rows, Index columns) const {
    if (rows == 0 || columns == 0) return 0;
    return std::abs(reach(rows, row_stride_)) + std::abs(reach(columns, column_stride_)) + 1;
  }

  Index row_stride_, column_stride_;
  Guarded<float> storage_;
  float* first_ = nullptr;
};

// Row-major, transposed, rows or columns (or both) some floats apart, backwards, or the same row or column again and again.
inline Matrix draw_matrix(Draw& draw, Index rows, Index columns, bool awkward) {
  Index row_stride = columns, column_stride = 1;
  switch (draw.below(8)) {
    case 0:
    case 1: break;
    case 2:
    case 3: row_stride = 1, column_stride = rows; break;
    case 4: row_stride = columns + 1 + draw.below(5); break;
    case 5: row_stride = 1, column_stride = rows + 3; break;
    case 6: row_stride = -(2 * columns + 1), column_stride = 2; break;
    default:
      if (draw.chance(50)) {
        row_stride = 0;
      } else {
        row_stride = 1, column_stride = 0;
      }
  }
  if (draw.chance(10)) row_stride = -row_stride;
  if (draw.chance(10)) column_stride = -column_stride;
  Matrix matrix(rows, columns, row_stride, column_stride, draw.chance(50));
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) matrix(i, j) = awkward ? draw.awkward_number() : draw.number();
  }
  return matrix;
}

inline float epilogue(float value, const float* bias, const float* residual, bool relu) {
  if (bias != nullptr) value = value + *bias;
  if (residual != nullptr) value = value + *residual;
  return relu && value < 0.0f ? 0.0f : value;
}

}  // namespace vitro_test
