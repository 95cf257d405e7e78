// SPDX-License-Identifier: Apache-2.0
// Blocks of a matrix transposed on their way through registers, written once over the vector vocabulary.
//
// Included by gemm_pack.inl; gemm_body.inl says what it expects of Tuning.

namespace vitro::simd {
namespace {

// out[q][i] = from[i][q] for i < rows and q < columns, both at most Vec::kWidth; +0 for the other i and q.
VITRO_INLINE void load_transposed(Index rows, Index columns, const float* from, Index stride,
                                  Vec::Reg (&out)[Vec::kWidth]) noexcept {
  const Vec::Mask mask = Vec::first(columns);
  Vec::Reg in[Vec::kWidth];
  VITRO_UNROLL
  for (int i = 0; i < Vec::kWidth; ++i) in[i] = i < rows ? Vec::load(mask, from + i * stride) : Vec::zero();
  Tuning::transpose(in, out);
}

// Rows so far apart fall into one set of the first-level cache, which does not hold the 16 of a block until its next piece is
// read: packing 1024 columns of 64 rows took 1.17 times as long by pieces.
constexpr Index kSameSet = 1024;

// Calls store(q, out) with out[i] = from[i][q] for i < rows, +0 for the other i, for q < columns; both are at least 1 and at
// most Vec::kWidth. The last piece begins earlier than its turn where it would be cut short, and is stored twice.
template <class Store>
VITRO_INLINE void for_each_transposed(Index rows, Index columns, const float* from, Index stride, const Store& store) noexcept {
  constexpr bool kByPieces = Vec::kWidth == 16;  // of 8 lanes, two pieces take 1.1 times as long as a square
  if (!kByPieces || rows < Vec::kWidth || columns < Tuning::kPiece || stride % kSameSet == 0) {
    Vec::Reg out[Vec::kWidth];
    load_transposed(rows, columns, from, stride, out);
    VITRO_UNROLL
    for (int q = 0; q < Vec::kWidth; ++q) {
      if (q < columns) store(q, out[q]);
    }
    return;
  }
  for (Index column = 0; column < columns; column += Tuning::kPiece) {
    const Index first = smaller(column, columns - Tuning::kPiece);
    Vec::Reg out[Tuning::kPiece];
    Tuning::transpose_piece({from + first, stride}, out);
    VITRO_UNROLL
    for (int q = 0; q < Tuning::kPiece; ++q) store(first + q, out[q]);
  }
}

// to[q][i] = from[i][q] for i < rows and q < columns, both at least 1 and at most Vec::kWidth; to[q][i] = +0 for the other i.
void transpose_block(Index rows, Index columns, const float* from, Index from_stride, float* to, Index to_stride) noexcept {
  for_each_transposed(rows, columns, from, from_stride,
                      [=](Index q, Vec::Reg column) { Vec::store(to + q * to_stride, column); });
}

}  // namespace
}  // namespace vitro::simd
