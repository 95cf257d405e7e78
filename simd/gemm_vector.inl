// SPDX-License-Identifier: Apache-2.0
// The product of a matrix with dense rows and a vector, written once over the vector vocabulary: rows in the lanes.
//
// Included by gemm_body.inl.

namespace vitro::simd {
namespace {

// y = A x without an epilogue. Pieces of A are transposed on their way into registers and multiplied: it is read once, as it
// lies. The gradient of a linear layer's input for one row, 256 x 120: 6.4 us with A transposed in memory, 2.6 this way
// (AVX-512).
bool is_matrix_vector(const Gemm& args) noexcept {
  const Epilogue& epilogue = args.epilogue;
  return Vec::kWidth > 1 && args.n == 1 && args.a_column_stride == 1 && args.c_stride == 1 &&
         args.accumulate == Accumulate::overwrite && epilogue.bias == nullptr && epilogue.residual == nullptr && !epilogue.relu;
}

constexpr int kVectorBlocks = 4;  // of rows at once: one chain after the other would wait for each fma

// Rows [row, row + rows) as `blocks` blocks of Vec::kWidth, or one of fewer. What would be cut short at the end begins earlier,
// and is computed twice.
template <int blocks>
void multiply_row_blocks(const Gemm& args, Index row, Index rows) noexcept {
  constexpr Index kPiece = Tuning::kPiece;
  const Index height = smaller(Vec::kWidth, rows);
  Index first[blocks];
  Vec::Reg chain[blocks];
  VITRO_UNROLL
  for (int i = 0; i < blocks; ++i) {
    first[i] = row + smaller(i * Vec::kWidth, rows - height);
    chain[i] = Vec::zero();
  }
  Index p = 0;
  for (; p + kPiece <= args.k; p += kPiece) {
    const float* const x = args.b + p * args.b_row_stride;
    VITRO_UNROLL
    for (int i = 0; i < blocks; ++i) {
      Vec::Reg columns[kPiece];
      load_piece(height, args.a + first[i] * args.a_row_stride + p, args.a_row_stride, columns);
      VITRO_UNROLL
      for (int q = 0; q < kPiece; ++q) chain[i] = Vec::fma(columns[q], Vec::set1(x[q * args.b_row_stride]), chain[i]);
    }
  }
  for (int i = 0; i < blocks && p < args.k; ++i) {
    Vec::Reg columns[Vec::kWidth];
    load_transposed(height, args.k - p, args.a + first[i] * args.a_row_stride + p, args.a_row_stride, columns);
    VITRO_UNROLL
    for (int q = 0; q < kPiece - 1; ++q) {
      if (p + q < args.k) chain[i] = Vec::fma(columns[q], Vec::set1(args.b[(p + q) * args.b_row_stride]), chain[i]);
    }
  }
  VITRO_UNROLL
  for (int i = 0; i < blocks; ++i) Vec::store(Vec::first(height), args.c + first[i], chain[i]);
}

void multiply_vector(const Gemm& args) noexcept {
  for (Index row = 0; row < args.m; row += kVectorBlocks * Vec::kWidth) {
    const Index rows = smaller(kVectorBlocks * Vec::kWidth, args.m - row);
    switch ((rows + Vec::kWidth - 1) / Vec::kWidth) {
      case 1: multiply_row_blocks<1>(args, row, rows); break;
      case 2: multiply_row_blocks<2>(args, row, rows); break;
      case 3: multiply_row_blocks<3>(args, row, rows); break;
      default: multiply_row_blocks<kVectorBlocks>(args, row, rows);
    }
  }
}

}  // namespace
}  // namespace vitro::simd
