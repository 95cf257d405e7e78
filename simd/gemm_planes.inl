// SPDX-License-Identifier: Apache-2.0
// The product whose columns are pixels of planes, written once over the vector vocabulary: tiles of whole vectors, all of k.
//
// Included after gemm_body.inl, whose tiles of rows it uses.

namespace vitro::simd {
namespace {

// row, column: where the tile begins, c: C there.
template <int rows, int vectors>
VITRO_INLINE void finish_plane_tile(Vec::Reg (&chain)[rows][vectors], const GemmPlanes& args, Index row, Index column,
                                    float* c) noexcept {
  if (args.row_bias != nullptr) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      const Vec::Reg value = Vec::set1(args.row_bias[row + i]);
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::add(chain[i][j], value);
    }
  }
  if (args.relu) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) {
        chain[i][j] = Vec::select(Vec::less(chain[i][j], Vec::zero()), Vec::zero(), chain[i][j]);
      }
    }
  }
  if (args.taken == nullptr) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) Vec::store(c + i * args.c_stride + j * Vec::kWidth, chain[i][j]);
    }
  } else {
    VITRO_UNROLL
    for (int j = 0; j < vectors; ++j) {
      const Vec::Mask taken = Vec::equal_int(Vec::load_ints(args.taken + column + j * Vec::kWidth), Vec::set1_int(-1));
      VITRO_UNROLL
      for (int i = 0; i < rows; ++i) Vec::store(taken, c + i * args.c_stride + j * Vec::kWidth, chain[i][j]);
    }
  }
}

// All of k for the rows and columns from (row, column) on.
template <int rows, int vectors>
void multiply_plane_tile(const GemmPlanes& args, Index row, Index column) noexcept {
  float* const c = args.c + row * args.c_stride + column;
  Vec::Reg chain[rows][vectors];
  const float* a[rows];
  VITRO_UNROLL
  for (int i = 0; i < rows; ++i) {
    a[i] = args.a + (row + i) * args.a_row_stride;
    VITRO_UNROLL
    for (int j = 0; j < vectors; ++j) {
      chain[i][j] = args.chain ? Vec::load(c + i * args.c_stride + j * Vec::kWidth) : Vec::zero();
    }
  }
  Index at = 0;
  for (Index p = 0; p < args.k; ++p) {
    const float* const b = args.b + args.b_rows[p] + column;
    Vec::Reg columns[vectors];
    VITRO_UNROLL
    for (int j = 0; j < vectors; ++j) columns[j] = Vec::load(b + j * Vec::kWidth);
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      const Vec::Reg value = Vec::set1(a[i][at]);
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::fma(value, columns[j], chain[i][j]);
    }
    at += args.a_column_stride;
  }
  finish_plane_tile(chain, args, row, column, c);
}

constexpr int kPlaneRows = Tuning::kRows[Tuning::kVectors];

// multiply_plane_tile<rows, vectors> for every number of rows up to kPlaneRows.
template <int vectors>
struct PlaneTiles {
  void (*of[kPlaneRows + 1])(const GemmPlanes&, Index row, Index column) noexcept = {};

  template <int rows = kPlaneRows>
  constexpr void add() noexcept {
    of[rows] = multiply_plane_tile<rows, vectors>;
    if constexpr (rows > 1) add<rows - 1>();
  }
  constexpr PlaneTiles() noexcept { add(); }
};

// Columns [column, n): as many tiles of `vectors` vectors as fit, then narrower ones. Rows stand in the inner loop: what they
// read of B, once for each tile, is still in the first-level cache then.
template <int vectors>
void multiply_planes(const GemmPlanes& args, Index column) noexcept {
  static constexpr PlaneTiles<vectors> kTiles;
  constexpr Index kColumns = vectors * Vec::kWidth;
  const RowTiles tiles(args.rows, kPlaneRows);
  for (; column + kColumns <= args.n; column += kColumns) {
    Index row = 0;
    for (Index t = 0; t < tiles.count; ++t) {
      const Index height = tiles.height + (t < tiles.higher ? 1 : 0);
      kTiles.of[height](args, row, column);
      row += height;
    }
  }
  if constexpr (kColumns > kPlaneStep) multiply_planes<vectors / 2>(args, column);
}

void body_gemm_planes(const GemmPlanes& args) noexcept {
  if (args.rows > 0) multiply_planes<Tuning::kVectors>(args, 0);
}

}  // namespace
}  // namespace vitro::simd
