// SPDX-License-Identifier: Apache-2.0
// The product with few columns as that of the transposes, written once over the vector vocabulary.
//
// Included by gemm_body.inl.

namespace vitro::simd {
namespace {

// In gemm_copy.inl.
void body_transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept;

// Few columns leave most lanes idle: then C^T = B^T * A^T is computed, rows of A becoming columns on their way through
// registers, where C need not be read. 36864 x 6 x 25 ran at 34 GFLOP/s without this, at 39 with panels of A transposed into
// memory first, and runs at 50 (AVX-512).
bool may_swap_roles(Index m, Index n) noexcept { return n <= Tuning::kMostColumnsInLanes && m >= 2 * Vec::kWidth; }

bool swaps_roles(const Gemm& args) noexcept {
  const bool readable = args.a_row_stride == 1 || (args.a_column_stride == 1 && args.k >= Tuning::kPiece);
  return may_swap_roles(args.m, args.n) && readable && args.accumulate == Accumulate::overwrite &&
         args.epilogue.residual == nullptr;
}

// Scratch of the swapped product: C^T of a panel of rows, then B as dense rows.
Index swapped_scratch(Index n, Index k) noexcept { return n * kPanel + k * n; }

// C^T of Vec::kWidth rows, its rows kPanel floats apart. b: dense.
template <int columns>
void multiply_swapped_rows(const Gemm& args, const float* a, const float* b, float* to) noexcept {
  constexpr int kPiece = Tuning::kPiece;
  Vec::Reg chain[columns];
  VITRO_UNROLL
  for (int j = 0; j < columns; ++j) chain[j] = Vec::zero();
  const auto take = [&](Vec::Reg column, const float* row) __attribute__((always_inline)) {
    VITRO_UNROLL
    for (int j = 0; j < columns; ++j) chain[j] = Vec::fma(column, Vec::set1(row[j]), chain[j]);
  };
  if (args.a_row_stride == 1) {
    for (Index p = 0; p < args.k; ++p, b += columns) take(Vec::load(a + p * args.a_column_stride), b);
  } else {
    typename Tuning::PieceRows rows(a, args.a_row_stride);
    const auto take_piece = [&]<int skipped>() __attribute__((always_inline)) {
      Vec::Reg piece[kPiece];
      rows.hide();
      Tuning::transpose_piece(rows, piece);
      VITRO_UNROLL
      for (int q = skipped; q < kPiece; ++q) take(piece[q], b + q * columns);
      rows.advance(kPiece);
      b += kPiece * columns;
    };
    Index rest = args.k;
    for (; rest >= kPiece; rest -= kPiece) take_piece.template operator()<0>();
    // The last piece begins earlier, and what was taken before is skipped.
    rows.advance(rest - kPiece);
    b += (rest - kPiece) * columns;
    if constexpr (kPiece == 4) {
      if (rest == 1) take_piece.template operator()<3>();
      if (rest == 2) take_piece.template operator()<2>();
      if (rest == 3) take_piece.template operator()<1>();
    }
  }
  VITRO_UNROLL
  for (int j = 0; j < columns; ++j) {
    if (args.epilogue.bias != nullptr) chain[j] = Vec::add(chain[j], Vec::set1(args.epilogue.bias[j]));
    if (args.epilogue.relu) chain[j] = Vec::select(Vec::less(chain[j], Vec::zero()), Vec::zero(), chain[j]);
    Vec::store(to + j * kPanel, chain[j]);
  }
}

// Requires Vec::kWidth <= args.m, of which the last vector of rows begins earlier where it would be cut short.
template <int columns>
void multiply_swapped_columns(const Gemm& args, const float* b, float* transposed) noexcept {
  if constexpr (columns > 1) {
    if (args.n < columns) return multiply_swapped_columns<columns - 1>(args, b, transposed);
  }
  for (Index row = 0; row < args.m; row += kPanel) {
    const Index first = smaller(row, args.m - Vec::kWidth), rows = smaller(kPanel, args.m - first);
    for (Index i = 0; i < rows; i += Vec::kWidth) {
      const Index start = smaller(i, rows - Vec::kWidth);
      multiply_swapped_rows<columns>(args, args.a + (first + start) * args.a_row_stride, b, transposed + start);
    }
    body_transpose(columns, rows, transposed, kPanel, args.c + first * args.c_stride, args.c_stride);
  }
}

void multiply_swapped(const Gemm& args) noexcept {
  if constexpr (Tuning::kMostColumnsInLanes > 0) {
    const float* b = args.b;
    if (args.b_column_stride != 1 || args.b_row_stride != args.n) {
      float* const dense = args.scratch + args.n * kPanel;
      for (Index p = 0; p < args.k; ++p) {
        for (Index j = 0; j < args.n; ++j) dense[p * args.n + j] = args.b[p * args.b_row_stride + j * args.b_column_stride];
      }
      b = dense;
    }
    multiply_swapped_columns<Tuning::kMostColumnsInLanes>(args, b, args.scratch);
  }
}

}  // namespace
}  // namespace vitro::simd
