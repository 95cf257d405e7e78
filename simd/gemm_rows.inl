// SPDX-License-Identifier: Apache-2.0
// The loop nest of gemm_rows, written once over the vector vocabulary: blocks of k, panels of packed B, tiles of rows.
//
// Included after gemm_body.inl, whose panels and tiles it uses.

namespace vitro::simd {
namespace {

// Segments [segment, segment + segments) of a product of rows, and of each only the elements [offset, offset + length).
struct RowsBlock {
  Index segment, segments, offset, length;
  bool first, last;  // of the product
};

constexpr Index kNearB = 1 << 17;  // floats of a packed B that stays in the second-level cache

// The part of packed B that is needed after the panel at b: the block's next panel, or the first panel of the next block or of
// the next product.
const float* panel_after(const GemmRows& args, const RowsBlock& block, Index column, const Panel& panel,
                         const float* b) noexcept {
  if (column + panel.columns < args.n) return b + panel.width() * args.packed_k;
  if (block.last || args.b_segments != nullptr) return args.packed_b;
  const Index done = block.segment * args.segment_length + block.offset + block.segments * block.length;
  return args.packed_b + done * smaller(kPanel, round_up(args.n, Vec::kWidth));
}

// Rows [begin, end) that lack the same segments of a block.
struct RowsRun {
  Index begin = 0, end = 0;
  bool empty = false;  // all of the block's segments
};

// Whether rows i and j have the same segments of the block.
bool same_segments(const GemmRows& args, const RowsBlock& block, Index i, Index j) noexcept {
  for (Index s = block.segment; s < block.segment + block.segments; ++s) {
    if ((args.a[i * args.segments + s] == nullptr) != (args.a[j * args.segments + s] == nullptr)) return false;
  }
  return true;
}

// The run that begins at row `begin`: as many of the product's runs as do not differ in this block. `run`: the index of the
// first, then of the next one.
RowsRun next_run(const GemmRows& args, const RowsBlock& block, Index begin, Index& run) noexcept {
  if (args.run_ends == nullptr) return {begin, args.rows, false};
  RowsRun result{begin, args.run_ends[run++], true};
  while (run < args.runs && same_segments(args, block, begin, result.end)) result.end = args.run_ends[run++];
  for (Index s = block.segment; result.empty && s < block.segment + block.segments; ++s) {
    result.empty = args.a[begin * args.segments + s] == nullptr;
  }
  return result;
}

// What the tiles of one panel, from `column` on, have in common over one block of k.
Tile rows_tile(const GemmRows& args, const RowsBlock& block, Index column, const Panel& panel) noexcept {
  Tile tile;
  tile.row_segments = args.a_segments == nullptr ? args.segments : 1;
  tile.a_segments = args.a_segments == nullptr ? nullptr : args.a_segments + block.segment;
  tile.segments = block.segments;
  tile.segment_length = block.length;
  tile.a_stride = args.a_stride;
  tile.a_offset = block.offset * args.a_stride;
  const Index skipped = args.b_segments == nullptr ? block.segment * args.segment_length : 0;
  tile.b = args.packed_b + column * args.packed_k + (skipped + block.offset) * panel.width();
  tile.b_stride = panel.width();
  tile.b_panel = kPanel * args.packed_k;
  tile.b_segments = args.b_segments == nullptr ? nullptr : args.b_segments + block.segment;
  tile.b_whole = true;
  tile.c_last = panel.last;
  tile.column = column;
  tile.add = block.last && args.accumulate == Accumulate::add;
  tile.relu = block.last && args.relu;
  tile.bias = block.last && args.bias != nullptr ? args.bias + column : nullptr;
  return tile;
}

// The tiles of one panel over one block of k. `chains`: null, or rows of kPanel floats that keep the chains from block to block
// instead of C.
void multiply_rows_panel(const GemmRows& args, const RowsBlock& block, Index column, const Panel& panel,
                         float* chains) noexcept {
  Tile tile = rows_tile(args, block, column, panel);
  const bool starts = block.first && args.accumulate != Accumulate::chain;
  share_prefetch(tile, panel_after(args, block, column, panel, tile.b), panel.width(),
                 RowTiles(args.rows, panel.tile_rows()).count);
  // A small B stays near between its panels: the first one fetches the rows of A instead.
  const bool fetches_rows = panel.vectors > 1 && (tile.ahead_step == 0 || (column == 0 && args.packed_k * args.n <= kNearB));
  const bool fetches_c = fetches_rows && args.near_a;
  // The segment in which a convolution's next rows see new pixels.
  const Index newest = tile.a_segments == nullptr ? block.segments - 1 : 0;
  const Index shift = tile.a_segments == nullptr || block.segments == 0 ? 0 : tile.a_segments[block.segments - 1];
  // With chains the rows below begin at the panel, not at column 0.
  float *kept[kMaxRows], *to[kMaxRows];
  const float* residual[kMaxRows];
  if (chains != nullptr) tile.column = 0;
  for (Index row = 0, next = 0; row < args.rows;) {
    const RowsRun run = next_run(args, block, row, next);
    if (run.empty && !starts && !block.last) {
      row = run.end;
      continue;
    }
    const RowTiles tiles(run.end - run.begin, panel.tile_rows());
    for (Index t = 0; t < tiles.count; ++t) {
      const Index height = tiles.height + (t < tiles.higher ? 1 : 0);
      tile.a = args.a_segments == nullptr ? args.a + row * args.segments + block.segment : args.a + row;
      tile.to = args.c + row;
      tile.from = starts ? nullptr : args.c + row;
      tile.row_bias = block.last && args.row_bias != nullptr ? args.row_bias + row : nullptr;
      tile.residual = block.last && args.residual != nullptr ? args.residual + row : nullptr;
      if (chains != nullptr) {
        for (Index i = 0; i < height; ++i) {
          kept[i] = chains + (row + i) * kPanel;
          to[i] = tile.to[i] + column;
          if (tile.residual != nullptr) residual[i] = tile.residual[i] + column;
        }
        tile.from = starts ? nullptr : kept;
        tile.to = block.last ? to : kept;
        if (tile.residual != nullptr) tile.residual = residual;
      }
      if (fetches_c && row + height < args.rows) {
        // ResNet-18's first layer took 0.97 of the time with one image, 0.93 with eight (AVX-512).
        prefetch_next_rows(tile, args.c[row], args.c[row + height]);
      } else if (fetches_rows && newest >= 0 && row + height < args.rows) {
        prefetch_next_rows(tile, tile.a[newest] + shift, tile.a[height * tile.row_segments + newest] + shift);
      }
      // Of 64 images ResNet-18's forward passes took 0.975 to 0.985 of the time, its gradients of the input 0.94 to 1
      // (AVX-512); of one image, whose C is near, up to 1.03.
      for (Index i = 0; args.far_c && !fetches_c && i < height; ++i) {
        for (Index j = 0; j < panel.columns; j += kLine / kFloat) __builtin_prefetch(tile.to[i] + tile.column + j, 1);
      }
      kTileFunctions.of[height][panel.vectors](tile);
      if (!fetches_rows) advance_prefetch(tile);
      row += height;
    }
  }
}

// Calls body(RowsBlock) for blocks of k of at most Tuning::kDepth: several whole segments, or a part of one.
template <class Body>
void for_each_rows_block(const GemmRows& args, bool cut, const Body& body) noexcept {
  const Index k = args.segments * args.segment_length;
  if (!cut || k <= Tuning::kDepth) {
    body(RowsBlock{0, args.segments, 0, args.segment_length, true, true});
  } else if (args.segment_length <= Tuning::kDepth) {
    const Index step = even_share(args.segments, Tuning::kDepth / args.segment_length, 1);
    for (Index s = 0; s < args.segments; s += step) {
      const Index segments = smaller(step, args.segments - s);
      body(RowsBlock{s, segments, 0, args.segment_length, s == 0, s + segments == args.segments});
    }
  } else {
    const Index step = even_share(args.segment_length, Tuning::kDepth, 16);
    for (Index s = 0; s < args.segments; ++s) {
      for (Index t = 0; t < args.segment_length; t += step) {
        const Index length = smaller(step, args.segment_length - t);
        body(RowsBlock{s, 1, t, length, s == 0 && t == 0, s + 1 == args.segments && t + length == args.segment_length});
      }
    }
  }
}

template <class Body>
void for_each_rows_panel(const GemmRows& args, const Body& body) noexcept {
  for (Index column = 0; column < args.n;) {
    const Panel panel(args.n - column, args.rows);
    body(column, panel);
    column += panel.columns;
  }
}

// The loop over k is the outer one: a block of A stays in the second-level cache while all of B passes. Accumulate::add may
// touch C only once, and keeps its chains in scratch for one panel at a time.
void body_gemm_rows(const GemmRows& args) noexcept {
  if (args.rows == 0) return;
  if (args.accumulate == Accumulate::add) {
    for_each_rows_panel(args, [&](Index column, const Panel& panel) {
      const bool narrow = panel.columns <= kPanel;
      for_each_rows_block(args, args.scratch != nullptr && narrow, [&](const RowsBlock& block) {
        multiply_rows_panel(args, block, column, panel, block.first && block.last ? nullptr : args.scratch);
      });
    });
  } else {
    for_each_rows_block(args, true, [&](const RowsBlock& block) {
      for_each_rows_panel(args,
                          [&](Index column, const Panel& panel) { multiply_rows_panel(args, block, column, panel, nullptr); });
    });
  }
}

}  // namespace
}  // namespace vitro::simd
