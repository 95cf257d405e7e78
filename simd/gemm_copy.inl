// SPDX-License-Identifier: Apache-2.0
// Copies of matrices, plain and transposed, written once over the vector vocabulary.
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

// Tiles of the vectors' width, those of one stripe of x's columns first: y, which is written, is the one to be written in runs.
void transpose_tiles(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
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

// Where vectors are wider than the channels of most small images, a tile of half as many rows or columns takes a third of the
// exchanges of a whole one. T is Tuning.
template <class T>
void transpose_few_rows(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  constexpr int kHalf = (Vec::kWidth + 1) / 2;
  const Vec::Mask out_mask = Vec::first(rows);
  for (Index j = 0; j < columns; j += Vec::kWidth) {
    const Index width = smaller(Vec::kWidth, columns - j);
    const Vec::Mask in_mask = Vec::first(width);
    Vec::Reg in[kHalf], out[kHalf];
    VITRO_UNROLL
    for (int r = 0; r < kHalf; ++r) in[r] = r < rows ? Vec::load(in_mask, x + r * x_stride + j) : Vec::zero();
    T::transpose_halves(in, out);
    float* const to = y + j * y_stride;
    VITRO_UNROLL
    for (int c = 0; c < kHalf; ++c) {
      if (c + kHalf < width) {
        T::store_halves(out[c], out_mask, to + c * y_stride, out_mask, to + (c + kHalf) * y_stride);
      } else if (c < width) {
        Vec::store(out_mask, to + c * y_stride, out[c]);
      }
    }
  }
}

template <class T>
void transpose_few_columns(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  constexpr int kHalf = (Vec::kWidth + 1) / 2;
  const Vec::Mask in_mask = Vec::first(columns), none = Vec::first(0);
  for (Index i = 0; i < rows; i += Vec::kWidth) {
    const Index height = smaller(Vec::kWidth, rows - i);
    const Vec::Mask out_mask = Vec::first(height);
    const float* const from = x + i * x_stride;
    Vec::Reg in[kHalf], out[kHalf];
    VITRO_UNROLL
    for (int r = 0; r < kHalf; ++r) {
      const bool low = r < height, high = r + kHalf < height;
      in[r] = T::load_halves(low ? in_mask : none, low ? from + r * x_stride : from, high ? in_mask : none,
                             high ? from + (r + kHalf) * x_stride : from);
    }
    T::transpose_halves(in, out);
    VITRO_UNROLL
    for (int c = 0; c < kHalf; ++c) {
      if (c < columns) Vec::store(out_mask, y + c * y_stride + i, out[c]);
    }
  }
}

template <class T>
void transpose_with(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  if constexpr (Vec::kWidth == 16) {
    if (rows <= Vec::kWidth / 2) return transpose_few_rows<T>(rows, columns, x, x_stride, y, y_stride);
    if (columns <= Vec::kWidth / 2) return transpose_few_columns<T>(rows, columns, x, x_stride, y, y_stride);
  }
  transpose_tiles(rows, columns, x, x_stride, y, y_stride);
}

void body_transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept {
  transpose_with<Tuning>(rows, columns, x, x_stride, y, y_stride);
}

}  // namespace
}  // namespace vitro::simd
