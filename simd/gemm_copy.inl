// SPDX-License-Identifier: Apache-2.0
// Copies of matrices of short rows, written once over the vector vocabulary.
//
// Included after gemm_body.inl, whose rows of registers it uses.

namespace vitro::simd {
namespace {

template <int vectors>
void copy_narrow_rows(Index rows, Vec::Mask last, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  for (Index i = 0; i < rows; ++i) {
    Vec::Reg row[vectors];
    load_row(row, last, x + i * x_stride);
    store_row(row, last, y + i * y_stride);
  }
}

void body_copy_rows(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  constexpr int kVectors = 4;
  for (Index column = 0; column < columns; column += kVectors * Vec::kWidth) {
    const Index width = smaller(columns - column, kVectors * Vec::kWidth);
    const Index vectors = (width + Vec::kWidth - 1) / Vec::kWidth;
    const Vec::Mask last = Vec::first(width - (vectors - 1) * Vec::kWidth);
    const float* const from = x + column;
    float* const to = y + column;
    switch (vectors) {
      case 1: copy_narrow_rows<1>(rows, last, from, x_stride, to, y_stride); break;
      case 2: copy_narrow_rows<2>(rows, last, from, x_stride, to, y_stride); break;
      case 3: copy_narrow_rows<3>(rows, last, from, x_stride, to, y_stride); break;
      default: copy_narrow_rows<4>(rows, last, from, x_stride, to, y_stride); break;
    }
  }
}

}  // namespace
}  // namespace vitro::simd
