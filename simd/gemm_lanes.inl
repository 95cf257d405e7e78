// SPDX-License-Identifier: Apache-2.0
// The products whose elements are vectors, one product a lane, written once over the vector vocabulary.
//
// Included after gemm_body.inl, whose tiles of rows it uses, here for columns as well.

namespace vitro::simd {
namespace {

// The chains of the rows and columns from (row, column) on, through all of k.
template <int rows, int columns>
void multiply_lane_tile(const GemmLanes& args, Index row, Index column) noexcept {
  const Index pixel = args.columns * kGemmLanes;
  for (Index lane = 0; lane < args.lanes; lane += Vec::kWidth) {
    const Vec::Mask used = Vec::first(args.lanes - lane);
    float* const c = args.c + row * pixel + column * kGemmLanes + lane;
    const float* b = args.b + column * kGemmLanes + lane;
    const float* a[rows];
    Vec::Reg chain[rows][columns];
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      a[i] = args.a + args.a_rows[row + i] + lane;
      VITRO_UNROLL
      for (int j = 0; j < columns; ++j) {
        chain[i][j] = args.chain ? Vec::load(used, c + i * pixel + j * kGemmLanes) : Vec::zero();
      }
    }
    for (Index line = 0; line < args.lines; ++line) {
      Index at = line * args.a_line;
      for (Index t = 0; t < args.line_length; ++t) {
        Vec::Reg held[rows];
        VITRO_UNROLL
        for (int i = 0; i < rows; ++i) held[i] = Vec::load(a[i] + at);
        VITRO_UNROLL
        for (int j = 0; j < columns; ++j) {
          const Vec::Reg value = Vec::load(b + j * kGemmLanes);
          VITRO_UNROLL
          for (int i = 0; i < rows; ++i) chain[i][j] = Vec::fma(held[i], value, chain[i][j]);
        }
        at += args.a_step;
        b += pixel;
      }
    }
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      VITRO_UNROLL
      for (int j = 0; j < columns; ++j) Vec::store(used, c + i * pixel + j * kGemmLanes, chain[i][j]);
    }
  }
}

// multiply_lane_tile<rows, columns> for every size up to the largest.
struct LaneTiles {
  void (*of[Tuning::kLaneRows + 1][Tuning::kLaneColumns + 1])(const GemmLanes&, Index row, Index column) noexcept = {};

  template <int rows, int columns>
  constexpr void add() noexcept {
    of[rows][columns] = multiply_lane_tile<rows, columns>;
    if constexpr (columns > 1) add<rows, columns - 1>();
    if constexpr (columns == Tuning::kLaneColumns && rows > 1) add<rows - 1, columns>();
  }
  constexpr LaneTiles() noexcept { add<Tuning::kLaneRows, Tuning::kLaneColumns>(); }
};

void body_gemm_lanes(const GemmLanes& args) noexcept {
  if (args.rows == 0 || args.columns == 0) return;
  static constexpr LaneTiles kTiles;
  const RowTiles rows(args.rows, Tuning::kLaneRows), columns(args.columns, Tuning::kLaneColumns);
  for (Index r = 0, row = 0; r < rows.count; ++r) {
    const Index height = rows.height + (r < rows.higher ? 1 : 0);
    for (Index s = 0, column = 0; s < columns.count; ++s) {
      const Index width = columns.height + (s < columns.higher ? 1 : 0);
      kTiles.of[height][width](args, row, column);
      column += width;
    }
    row += height;
  }
}

}  // namespace
}  // namespace vitro::simd
