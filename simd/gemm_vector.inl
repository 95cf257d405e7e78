// SPDX-License-Identifier: Apache-2.0
// The product of a matrix with dense rows and a vector, written once over the vector vocabulary: rows in the lanes.
//
// Included by gemm_body.inl.

namespace vitro::simd {
namespace {

// y = A x without an epilogue. A square of A at a time is transposed in registers and multiplied: it is read once, as it lies.
// The gradient of a linear layer's input for one row, 256 x 120: 6.4 us with A transposed in memory, 4.2 this way (AVX-512).
bool is_matrix_vector(const Gemm& args) noexcept {
  const Epilogue& epilogue = args.epilogue;
  return Vec::kWidth > 1 && args.n == 1 && args.a_column_stride == 1 && args.c_stride == 1 &&
         args.accumulate == Accumulate::overwrite && epilogue.bias == nullptr && epilogue.residual == nullptr && !epilogue.relu;
}

// The chains of up to Vec::kWidth rows from a on through columns [from, args.k), a square at a time, the last ones cut short.
VITRO_INLINE Vec::Reg multiply_ragged(const Gemm& args, const float* a, Index rows, Index from, Vec::Reg chain) noexcept {
  for (Index p = from; p < args.k; p += Vec::kWidth) {
    const Index columns = smaller(Vec::kWidth, args.k - p);
    const Vec::Mask mask = Vec::first(columns);
    Vec::Reg in[Vec::kWidth], out[Vec::kWidth];
    VITRO_UNROLL
    for (int i = 0; i < Vec::kWidth; ++i) in[i] = i < rows ? Vec::load(mask, a + i * args.a_row_stride + p) : Vec::zero();
    Tuning::transpose(in, out);
    VITRO_UNROLL
    for (int q = 0; q < Vec::kWidth; ++q) {
      if (q < columns) chain = Vec::fma(out[q], Vec::set1(args.b[(p + q) * args.b_row_stride]), chain);
    }
  }
  return chain;
}

void multiply_vector(const Gemm& args) noexcept {
  for (Index row = 0; row < args.m; row += Vec::kWidth) {
    const Index rows = smaller(Vec::kWidth, args.m - row);
    const float* const a = args.a + row * args.a_row_stride;
    Vec::Reg chain = Vec::zero();
    Index p = 0;
    for (; rows == Vec::kWidth && p + Vec::kWidth <= args.k; p += Vec::kWidth) {
      Vec::Reg in[Vec::kWidth], out[Vec::kWidth];
      VITRO_UNROLL
      for (int i = 0; i < Vec::kWidth; ++i) in[i] = Vec::load(a + i * args.a_row_stride + p);
      Tuning::transpose(in, out);
      VITRO_UNROLL
      for (int q = 0; q < Vec::kWidth; ++q) chain = Vec::fma(out[q], Vec::set1(args.b[(p + q) * args.b_row_stride]), chain);
    }
    Vec::store(Vec::first(rows), args.c + row, multiply_ragged(args, a, rows, p, chain));
  }
}

}  // namespace
}  // namespace vitro::simd
