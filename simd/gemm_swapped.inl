// SPDX-License-Identifier: Apache-2.0
// The product with few columns as that of the transposes, written once over the vector vocabulary.
//
// Included by gemm_body.inl.

namespace vitro::simd {
namespace {

// In gemm_copy.inl.
void body_transpose(Index rows, Index columns, const float* x, Index x_stride, float* y, Index y_stride) noexcept;

// Few columns leave most lanes idle: then C^T = B^T * A^T is computed, panels of A's rows becoming columns, where C need not be
// read. 36864 x 6 x 25 went from 32 to 50 GFLOP/s (AVX-512).
bool swaps_roles(const Gemm& args) noexcept {
  return 5 * args.n <= 2 * Vec::kWidth && args.m >= 2 * kPanel && args.k <= Tuning::kDepth &&
         args.accumulate == Accumulate::overwrite && args.epilogue.residual == nullptr;
}

// Scratch of the swapped product: one panel of packed A^T, then C^T.
Index swapped_scratch(Index n, Index k) noexcept { return round_up(k, 16) * kPanel + n * kPanel; }

void multiply_swapped(const Gemm& args) noexcept {
  float* const packed = args.scratch;
  float* const transposed = packed + round_up(args.k, 16) * kPanel;
  const float* a[kMaxRows];
  float* to[kMaxRows];
  Tile tile;
  tile.a = a;
  tile.to = to;
  tile.segment_length = args.k;
  tile.a_stride = args.b_row_stride;
  tile.b = packed;
  tile.b_whole = true;
  tile.c_last = Vec::first(Vec::kWidth);
  tile.relu = args.epilogue.relu;
  share_prefetch(tile, nullptr, 0, 1);
  for (Index row = 0; row < args.m; row += kPanel) {
    const Panel panel(args.m - row, 0);
    pack_panel(args.k, panel, args.a + row * args.a_row_stride, args.a_column_stride, args.a_row_stride, packed);
    tile.b_stride = panel.width();
    const RowTiles tiles(args.n, panel.tile_rows());
    Index column = 0;
    for (Index t = 0; t < tiles.count; ++t) {
      const Index height = tiles.height + (t < tiles.higher ? 1 : 0);
      for (Index j = 0; j < height; ++j) {
        a[j] = args.b + (column + j) * args.b_column_stride;
        to[j] = transposed + (column + j) * kPanel;
      }
      tile.row_bias = args.epilogue.bias == nullptr ? nullptr : args.epilogue.bias + column;
      kTileFunctions.of[height][panel.vectors](tile);
      column += height;
    }
    body_transpose(args.n, panel.columns, transposed, kPanel, args.c + row * args.c_stride, args.c_stride);
  }
}

}  // namespace
}  // namespace vitro::simd
