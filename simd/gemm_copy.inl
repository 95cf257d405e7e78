// SPDX-License-Identifier: Apache-2.0
// Copies of matrices, plain and transposed, written once over the vector vocabulary.
//
// Included after gemm_body.inl, whose Tuning::transpose it uses.

namespace vitro::simd {
namespace {

// Tiles of the vectors' width, those of one stripe of x's columns first: y, which is written, is the one to be written in runs.
void body_transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  for (Index j = 0; j < columns; j += Vec::kWidth) {
    const Index width = smaller(Vec::kWidth, columns - j);
    const Vec::Mask in_mask = Vec::first(width);
    for (Index i = 0; i < rows; i += Vec::kWidth) {
      const Index height = smaller(Vec::kWidth, rows - i);
      const Vec::Mask out_mask = Vec::first(height);
      Vec::Reg in[Vec::kWidth], out[Vec::kWidth];
      VITRO_UNROLL
      for (int r = 0; r < Vec::kWidth; ++r) in[r] = r < height ? Vec::load(in_mask, x + (i + r) * x_stride + j) : Vec::zero();
      Tuning::transpose(in, out);
      VITRO_UNROLL
      for (int c = 0; c < Vec::kWidth; ++c) {
        if (c < width) Vec::store(out_mask, y + (j + c) * y_stride + i, out[c]);
      }
    }
  }
}

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
