// SPDX-License-Identifier: Apache-2.0
// Products with vectors, written once over the vector vocabulary: of a matrix and a vector, and of a column and a row.
//
// Included by gemm_body.inl.

namespace vitro::simd {
namespace {

// y = A x without an epilogue. Pieces of A are transposed on their way into registers and multiplied: it is read once, as it
// lies. The gradient of a linear layer's input for one row, 256 x 120: 6.4 us with A transposed in memory, 3.1 this way
// (AVX-512).
bool is_matrix_vector(const Gemm& args) noexcept {
  const Epilogue& epilogue = args.epilogue;
  return Vec::kWidth > 1 && args.n == 1 && args.a_column_stride == 1 && args.c_stride == 1 &&
         args.accumulate == Accumulate::overwrite && epilogue.bias == nullptr && epilogue.residual == nullptr && !epilogue.relu;
}

// The chains of up to Vec::kWidth rows from a on through columns [from, args.k), a square at a time, the last ones cut short.
VITRO_INLINE Vec::Reg multiply_ragged(const Gemm& args, const float* a, Index rows, Index from, Vec::Reg chain) noexcept {
  for (Index p = from; p < args.k; p += Vec::kWidth) {
    const Index columns = smaller(Vec::kWidth, args.k - p);
    Vec::Reg out[Vec::kWidth];
    load_transposed(rows, columns, a + p, args.a_row_stride, out);
    VITRO_UNROLL
    for (int q = 0; q < Vec::kWidth; ++q) {
      if (q < columns) chain = Vec::fma(out[q], Vec::set1(args.b[(p + q) * args.b_row_stride]), chain);
    }
  }
  return chain;
}

constexpr int kVectorBlocks = 4;  // of rows at once: one chain after the other would wait for each fma

// Rows [row, row + rows) as `blocks` blocks of Vec::kWidth, the last of which begins earlier where it would be cut short, and
// is computed twice in part.
template <int blocks>
void multiply_row_blocks(const Gemm& args, Index row, Index rows) noexcept {
  constexpr Index kPiece = Tuning::kPiece;
  Index first[blocks];
  const float* a[blocks];
  Vec::Reg chain[blocks];
  VITRO_UNROLL
  for (int i = 0; i < blocks; ++i) {
    first[i] = row + smaller(i * Vec::kWidth, rows - Vec::kWidth);
    a[i] = args.a + first[i] * args.a_row_stride;
    chain[i] = Vec::zero();
  }
  const Index stride = args.a_row_stride, step = args.b_row_stride;
  const float* b = args.b;
  Index p = 0;
  for (; p + kPiece <= args.k; p += kPiece) {
    Vec::Reg x[kPiece];
    VITRO_UNROLL
    for (int q = 0; q < kPiece; ++q) x[q] = Vec::set1(b[q * step]);
    b += kPiece * step;
    VITRO_UNROLL
    for (int i = 0; i < blocks; ++i) {
      Vec::Reg columns[kPiece];
      typename Tuning::PieceRows rows_of_piece(a[i], stride);
      rows_of_piece.hide();
      Tuning::transpose_piece(rows_of_piece, columns);
      a[i] += kPiece;
      VITRO_UNROLL
      for (int q = 0; q < kPiece; ++q) chain[i] = Vec::fma(columns[q], x[q], chain[i]);
    }
  }
  for (int i = 0; i < blocks; ++i) {
    Vec::store(args.c + first[i], multiply_ragged(args, args.a + first[i] * args.a_row_stride, Vec::kWidth, p, chain[i]));
  }
}

void multiply_vector(const Gemm& args) noexcept {
  for (Index row = 0; row < args.m; row += kVectorBlocks * Vec::kWidth) {
    const Index rows = smaller(kVectorBlocks * Vec::kWidth, args.m - row);
    if (rows < Vec::kWidth) {
      const Vec::Reg chain = multiply_ragged(args, args.a + row * args.a_row_stride, rows, 0, Vec::zero());
      Vec::store(Vec::first(rows), args.c + row, chain);
      continue;
    }
    switch ((rows + Vec::kWidth - 1) / Vec::kWidth) {
      case 1: multiply_row_blocks<1>(args, row, rows); break;
      case 2: multiply_row_blocks<2>(args, row, rows); break;
      case 3: multiply_row_blocks<3>(args, row, rows); break;
      default: multiply_row_blocks<kVectorBlocks>(args, row, rows);
    }
  }
}

// C = the outer product of a column and a dense row, + bias. The gradient of a linear layer's weights for one row, 256 x 120,
// took 4.6 us by tiles, whose rows end in the middle of cache lines, and takes 3.2 this way (AVX-512; AVX2 8.5 and 3.5).
bool is_outer_product(const Gemm& args) noexcept {
  return Vec::kWidth > 1 && args.k == 1 && args.b_column_stride == 1 && args.accumulate == Accumulate::overwrite &&
         args.epilogue.residual == nullptr && !args.epilogue.relu;
}

void multiply_outer(const Gemm& args) noexcept {
  constexpr Index kLongRow = 4 * Vec::kWidth;  // worth a store more to let the others begin at a multiple of their size
  const float* const bias = args.epilogue.bias;
  for (Index i = 0; i < args.m; ++i) {
    const Vec::Reg factor = Vec::set1(args.a[i * args.a_row_stride]);
    float* const c = args.c + i * args.c_stride;
    const auto part = [&](Index j, Index columns) {
      const Vec::Mask mask = Vec::first(columns);
      const Vec::Reg product = Vec::fma(factor, Vec::load(mask, args.b + j), Vec::zero());
      Vec::store(mask, c + j, bias == nullptr ? product : Vec::add(product, Vec::load(mask, bias + j)));
    };
    const auto misaligned = static_cast<Index>(reinterpret_cast<std::uintptr_t>(c) / sizeof(float) % Vec::kWidth);
    Index j = args.n < kLongRow || misaligned == 0 ? 0 : Vec::kWidth - misaligned;
    if (j > 0) part(0, j);
    for (; j + Vec::kWidth <= args.n; j += Vec::kWidth) {
      const Vec::Reg product = Vec::fma(factor, Vec::load(args.b + j), Vec::zero());
      Vec::store(c + j, bias == nullptr ? product : Vec::add(product, Vec::load(bias + j)));
    }
    if (j < args.n) part(j, args.n - j);
  }
}

}  // namespace
}  // namespace vitro::simd
