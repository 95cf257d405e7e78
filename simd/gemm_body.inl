// SPDX-License-Identifier: Apache-2.0
// The loop nest of the matrix products, written once over the vector vocabulary: panels of columns, blocks of k, tiles of rows.
//
// Expects a vec_*.hpp and a struct Tuning in an anonymous namespace before it:
//   kVectors           vectors of columns in a tile: a panel of B is kVectors * Vec::kWidth columns wide
//   kRows[v]           rows of a tile with v vectors
//   kDepth             k of a block
//   kColumnBlock       n of a block of packed B, a multiple of the panel
//   kRowBlock          m of a block of packed A
//   kPackNearBFrom     m from which packing a B with dense rows pays where they are at most 512 floats apart; below, or where
//                      m is small, its rows are read in place
//   kPackFarBFrom      the same where they are farther apart, and each is on a page of its own
//   kPackStridedAFrom  n from which packing an A whose rows are not dense pays; dense ones are always read in place
//   transpose          of a square of Vec::kWidth registers
//   transpose_piece    kPiece columns of Vec::kWidth rows in memory, as kPiece registers
//   interleave_planes  of a few rows, returns whether it could
#include "gemm_tile.inl"

namespace vitro::simd {
namespace {

constexpr Index kPanel = Tuning::kVectors * Vec::kWidth;
constexpr Index kWide = kMaxVectors * Vec::kWidth;
static_assert(kMaxVectors % Tuning::kVectors == 0);
static_assert(kPackedColumns % kPanel == 0);

constexpr Index kFarRows = 512;  // a row stride beyond which rows share neither pages nor the prefetchers' attention

// k of a block whose B is read in place: at most as many rows, 2 KB apart, as the second-level cache has sets and ways for, and
// half of them where several tiles read them and k is long: 49 x 512 x 4608 ran at 84 GFLOP/s with 1152, at 135 with 512, and
// runs at 148 with 256. 196 x 256 x 2304 does not care; 100 x 300 x 1000 would lose 2 %, 64 columns of 392 rows added to C 4 %
// (AVX-512).
constexpr Index kDepthInPlace = 512, kDepthOfTiles = 256, kLong = 2 * kDepthInPlace;

// m from which it pays that the first tile packs a panel of a B in place for the others: one with columns beyond whole vectors,
// as the others then need no masks (64 x 120 x 256 takes 0.97 of the time, 64 x 84 x 120 0.96, 200 x 30 x 64 0.9), and one of
// far rows (70 x 2048 x 1024 0.5, 30 x 1024 x 1024 0.8, 64 x 1000 x 512 0.96; AVX-512).
constexpr Index kPackPanelsFrom = 24;

constexpr Index smaller(Index a, Index b) noexcept { return a < b ? a : b; }
constexpr Index round_up(Index value, Index step) noexcept { return (value + step - 1) / step * step; }

// The size of the blocks, equal but for the last one, that cut `whole` into as few as blocks of at most `most` (rounded up to
// `step`, of which `most` is a multiple) can.
constexpr Index even_share(Index whole, Index most, Index step) noexcept {
  if (whole <= most) return whole;  // without a division: a small product takes less time than a few of them
  const Index blocks = (whole + most - 1) / most;
  return round_up((whole + blocks - 1) / blocks, step);
}

// The columns of one tile, and what follows from their number.
struct Panel {
  // As many columns as a tile of `rows` rows takes from `columns` that are left: a panel; for a single row, which would leave
  // too few chains to hide the latency of fma, several panels at once where they are there.
  Panel(Index columns_, Index rows) noexcept {
    const bool wide = rows == 1 && columns_ > kWide - Vec::kWidth;
    columns = smaller(columns_, wide ? kWide : kPanel);
    vectors = (columns + Vec::kWidth - 1) / Vec::kWidth;
    last = Vec::first(columns - (vectors - 1) * Vec::kWidth);
  }

  Index tile_rows() const noexcept { return vectors > Tuning::kVectors ? 1 : Tuning::kRows[vectors]; }
  // Columns rounded up to whole vectors: how far apart the rows of a packed panel are.
  Index width() const noexcept { return smaller(vectors * Vec::kWidth, kPanel); }

  Index columns;
  Index vectors;
  Vec::Mask last;  // lanes of the last vector
};

// Rows are cut into tiles of almost equal height: with 49 rows and tiles of 6, 5 + 5 + ... instead of 6 + 6 + ... + 1, because
// a tile of one row has too few chains to hide the latency of fma.
struct RowTiles {
  RowTiles(Index rows, Index most) noexcept : count((rows + most - 1) / most), height(rows / count), higher(rows % count) {}

  Index count;
  Index height;  // of a tile; the first `higher` tiles have one row more
  Index higher;
};

}  // namespace
}  // namespace vitro::simd

#include "gemm_pack.inl"

namespace vitro::simd {
namespace {

// How the loops cut a product, and what they copy before they multiply. Only sizes and strides decide, and nothing here changes
// a bit of the result.
struct Cut {
  Cut(const Gemm& args, Index a_column_stride, Index b_row_stride, Index b_column_stride) noexcept {
    const Index m = args.m, n = args.n, k = args.k;
    const bool far_rows = b_row_stride > kFarRows || b_row_stride < -kFarRows;
    pack_b = b_column_stride != 1 || m >= (far_rows ? Tuning::kPackFarBFrom : Tuning::kPackNearBFrom);
    const bool tiles = !pack_b && m >= kPackPanelsFrom;
    pack_panels = tiles && Vec::kWidth > 1 && far_rows;
    pack_ragged = tiles && Vec::kWidth > 1 && n % Vec::kWidth != 0;
    pack_a = a_column_stride != 1 && m > Tuning::kRows[Tuning::kVectors] && n >= Tuning::kPackStridedAFrom;
    depth = even_share(k, pack_b ? Tuning::kDepth : tiles && !pack_panels && k > kLong ? kDepthOfTiles : kDepthInPlace, 16);
    keep_chains = args.accumulate == Accumulate::add && k > depth;
    rows = keep_chains ? smaller(m, Tuning::kRowBlock) : m;
    columns = smaller(round_up(n, Vec::kWidth), keep_chains ? kPanel : Tuning::kColumnBlock);
    row_block = smaller(m, Tuning::kRowBlock);
    a_stride = round_up(depth, 16) + 16;
  }
  explicit Cut(const Gemm& args) noexcept : Cut(args, args.a_column_stride, args.b_row_stride, args.b_column_stride) {}

  Index packed_b_size() const noexcept {
    if (pack_b) return round_up(depth * columns, 16);
    return pack_panels || pack_ragged ? round_up(depth * smaller(columns, kPanel), 16) : 0;
  }
  Index packed_a_size() const noexcept { return pack_a ? row_block * a_stride : 0; }
  Index chains_size() const noexcept { return keep_chains ? round_up(rows * kPanel, 16) : 0; }

  Index depth;      // k of a block
  Index rows;       // m of the outermost loop
  Index columns;    // n of a block of packed B
  Index row_block;  // m of a block of A
  Index a_stride;   // of packed A's rows; an odd number of cache lines, so that the rows do not fall into the same sets
  bool pack_a, pack_b;
  bool pack_panels;  // of a B in place each panel in turn
  bool pack_ragged;  // the last one, if it needs masks
  bool keep_chains;  // chains of several blocks of k wait in scratch, because Accumulate::add may add to C only once
};

// One block of a product: rows [row, row + rows), columns [column, column + columns), k [k0, k0 + depth).
struct Block {
  Index row, rows, column, columns, k0, depth;
};

// Where matrices begin and how far apart their rows are, for one panel.
struct PanelRows {
  const float* a = nullptr;
  Index a_stride = 0;
  bool far_a = false;  // and in rows so short that a tile of one vector fetches them
  const float* from = nullptr;
  Index from_stride = 0;
  float* to = nullptr;
  Index to_stride = 0;
  const float* residual = nullptr;
  Index residual_stride = 0;
  const float* next_b = nullptr;  // the panel of B to bring near meanwhile, or null
  bool b_in_place = false;
  float* packed = nullptr;  // where the first tile packs a panel of B that stands in place for the others, or null
};

// Which part of the next panel each tile of this one prefetches: without it the panel's first tile waits for the last cache
// level or the memory behind it, 6 % of the time of 1024 and 2048 cubed (AVX-512). Spread over all tiles, because prefetches
// of everything at once block the loads behind them. next may be null.
void share_prefetch(Tile& tile, const float* next, Index width, Index tiles) noexcept {
  const bool elsewhere = next != nullptr && next != tile.b;
  const Index step = elsewhere ? smaller((width + tiles - 1) / tiles * kFloat, kLine) : 0;
  tile.ahead = reinterpret_cast<std::uintptr_t>(elsewhere ? next : tile.b);
  tile.ahead_step = static_cast<std::uintptr_t>(step);
  tile.ahead_tile = static_cast<std::uintptr_t>(tile.segments * tile.segment_length * step);
  tile.ahead_tiles = tiles;
}

// The same for a B in place, of whose rows each of the first tiles takes one cache line: 0.95 of the time of 64 x 1024 x 256,
// 0.97 of that of 49 x 512 x 4608 (AVX-512).
void share_prefetch_in_place(Tile& tile, const float* next, Index columns) noexcept {
  tile.ahead = reinterpret_cast<std::uintptr_t>(next);
  tile.ahead_step = static_cast<std::uintptr_t>(tile.b_stride * kFloat);
  tile.ahead_tile = static_cast<std::uintptr_t>(kLine);
  tile.ahead_tiles = (columns * kFloat + kLine - 1) / kLine;
}

void advance_prefetch(Tile& tile) noexcept {
  tile.ahead += tile.ahead_tile;
  if (--tile.ahead_tiles == 0) tile.ahead_step = 0;
}

// A tile of one vector is bound by its loads, and a prefetch is one more: only where A is larger than the second-level cache,
// and rows are so short that the processor's own prefetchers miss their beginnings, does it pay. 4096 x 16 x 150 takes 0.94 of
// the time, 8000 x 16 x 64 0.91, 3000 x 16 x 500 0.99, 4096 x 16 x 600 1.08; where A is near 1.02 (AVX-512).
constexpr Index kShortRow = 512, kFarA = 1 << 18;  // floats

// Where there is no other panel, the tile brings near what the next one reads of A for the first time: as much as lies between
// `now`, where this tile's first row is, and `next`. One panel of 3136 x 64 x 576 went from 160.7 to 166.7 GFLOP/s (AVX-512).
void prefetch_next_rows(Tile& tile, const float* now, const float* next) noexcept {
  const std::uintptr_t to = reinterpret_cast<std::uintptr_t>(next);
  const std::uintptr_t span = to - reinterpret_cast<std::uintptr_t>(now);  // huge where next lies before now
  const std::uintptr_t steps = static_cast<std::uintptr_t>(tile.segments * tile.segment_length);
  const bool worthwhile = span > 0 && span <= static_cast<std::uintptr_t>(kLine) * steps;
  tile.ahead = worthwhile ? to : reinterpret_cast<std::uintptr_t>(tile.b);
  tile.ahead_step = worthwhile ? (span + steps - 1) / steps : 0;
}

// Rows of C that lie on pages of their own are brought into cache while the tile before them is computed: 2048 cubed gained 4
// %, where C is small there was nothing to gain.
void prefetch_rows(const PanelRows& at, Index row, Index end, Index columns) noexcept {
  for (; row < end; ++row) {
    for (Index j = 0; j < columns; j += kLine / kFloat) __builtin_prefetch(at.to + row * at.to_stride + j, 1);
  }
}

void read_in_place(Tile& tile, const Panel& panel, const float* b, Index b_stride) noexcept {
  tile.b = b;
  tile.b_stride = b_stride;
  tile.b_panel = kPanel;
  tile.b_last = panel.last;
  tile.b_whole = panel.columns == panel.vectors * Vec::kWidth;
  tile.packed = nullptr;
}

void read_packed(Tile& tile, const Panel& panel, const float* packed, Index depth) noexcept {
  tile.b = packed;
  tile.b_stride = panel.width();
  tile.b_panel = kPanel * depth;
  tile.b_whole = true;
  tile.packed = nullptr;
}

// `tile` says where B is. With at.packed it is in place, and packed for the next product of rows.
void multiply_panel(Index rows, const Panel& panel, const PanelRows& at, Tile& tile) noexcept {
  const float* a[kMaxRows];
  const float* from[kMaxRows];
  float* to[kMaxRows];
  const float* residual[kMaxRows];
  tile.a = a;
  tile.from = at.from == nullptr ? nullptr : from;
  tile.to = to;
  tile.residual = at.residual == nullptr ? nullptr : residual;
  const bool far_rows = at.to_stride > kFarRows;
  const RowTiles tiles(rows, panel.tile_rows());
  if (at.b_in_place && at.next_b != nullptr) {
    share_prefetch_in_place(tile, at.next_b, panel.columns);
  } else {
    share_prefetch(tile, at.next_b, panel.width(), tiles.count);
  }
  const bool one_panel = tile.ahead_step == 0;
  const bool fetches_rows = one_panel && (panel.vectors > 1 || at.far_a);
  if (at.packed != nullptr) {
    tile.b_whole = false;
    tile.packed = at.packed;
  }
  Index row = 0;
  for (Index t = 0; t < tiles.count; ++t) {
    const Index height = tiles.height + (t < tiles.higher ? 1 : 0);
    for (Index i = 0; i < height; ++i) {
      a[i] = at.a + (row + i) * at.a_stride;
      to[i] = at.to + (row + i) * at.to_stride;
      if (at.from != nullptr) from[i] = at.from + (row + i) * at.from_stride;
      if (at.residual != nullptr) residual[i] = at.residual + (row + i) * at.residual_stride;
    }
    if (far_rows && tile.segment_length >= 128) prefetch_rows(at, row + height, smaller(row + 2 * height, rows), panel.columns);
    if (fetches_rows && row + height < rows) prefetch_next_rows(tile, a[0], at.a + (row + height) * at.a_stride);
    kTileFunctions.of[height][panel.vectors](tile);
    if (!one_panel) advance_prefetch(tile);
    if (t == 0 && at.packed != nullptr) read_packed(tile, panel, at.packed, tile.segment_length);
    row += height;
  }
}

// The panel of a B in place that begins at `column`, or behind the block the first one of the next block, or null.
const float* next_panel_in_place(const Gemm& args, const Block& block, Index column) noexcept {
  if (column < block.column + block.columns) return args.b + block.k0 * args.b_row_stride + column;
  const Index k0 = block.k0 + block.depth;
  if (k0 < args.k) return args.b + k0 * args.b_row_stride + block.column;
  return column < args.n ? args.b + column : nullptr;
}

// Where the panels of a block of B are.
enum class Source : unsigned char {
  in_place,
  packed,
  packing,  // in place, and packed by the first tile of each: 1024 cubed takes 0.96 of the time with a pass before (AVX-512)
};

// All panels of one block of A and one block of B. packed_b: of the whole block, or of one panel of a B in place;
// packed_a: null where A is; chains: null, or rows of kPanel floats where the block's chains are kept between blocks of k.
void multiply_block(const Gemm& args, const Cut& cut, const Block& block, const float* packed_a, Source source, float* packed_b,
                    float* chains) noexcept {
  const bool first = block.k0 == 0;
  const bool last = block.k0 + block.depth == args.k;
  const Epilogue& epilogue = args.epilogue;
  Tile tile;
  tile.segment_length = block.depth;
  tile.a_stride = packed_a == nullptr ? args.a_column_stride : 1;
  tile.add = last && args.accumulate == Accumulate::add;
  tile.relu = last && epilogue.relu;
  PanelRows rows;
  rows.far_a = packed_a == nullptr && args.m * args.a_row_stride >= kFarA && block.depth <= kShortRow;
  rows.b_in_place = source != Source::packed;
  rows.a = packed_a == nullptr ? args.a + block.row * args.a_row_stride + block.k0 * args.a_column_stride : packed_a;
  rows.a_stride = packed_a == nullptr ? args.a_row_stride : cut.a_stride;
  for (Index column = block.column, step = 0; column < block.column + block.columns; column += step) {
    const Panel panel(block.column + block.columns - column, block.rows);
    step = panel.columns;
    tile.c_last = panel.last;
    float* const packed = packed_b + (source == Source::in_place ? 0 : (column - block.column) * block.depth);
    if (source == Source::packed) {
      read_packed(tile, panel, packed, block.depth);
    } else {
      read_in_place(tile, panel, args.b + block.k0 * args.b_row_stride + column, args.b_row_stride);
      rows.packed = source == Source::packing || cut.pack_panels || (cut.pack_ragged && !tile.b_whole) ? packed : nullptr;
    }
    float* c = args.c + block.row * args.c_stride + column;
    rows.to = chains != nullptr && !last ? chains : c;
    rows.to_stride = chains != nullptr && !last ? kPanel : args.c_stride;
    if (!first || args.accumulate == Accumulate::chain) {
      rows.from = chains != nullptr ? chains : c;
      rows.from_stride = chains != nullptr ? kPanel : args.c_stride;
    }
    if (last && epilogue.bias != nullptr) tile.bias = epilogue.bias + column;
    if (last && epilogue.residual != nullptr) {
      rows.residual = epilogue.residual + block.row * epilogue.residual_stride + column;
      rows.residual_stride = epilogue.residual_stride;
    }
    const Index next = column + step;
    if (source != Source::packed) {
      rows.next_b = next_panel_in_place(args, block, next);
    } else {  // after the last panel the first one, which the next rows begin with
      rows.next_b = next < block.column + block.columns ? packed + step * block.depth : packed_b;
    }
    multiply_panel(block.rows, panel, rows, tile);
  }
}

}  // namespace
}  // namespace vitro::simd

#include "gemm_swapped.inl"
#include "gemm_vector.inl"

namespace vitro::simd {
namespace {

Index body_scratch(Index m, Index n, Index k) noexcept {
  if (m == 0 || n == 0) return 0;
  // Strides and the accumulate mode are not known here: the largest of what any of them needs.
  constexpr Index kBStrides[][2] = {{0, 0}, {1, 1}, {kFarRows + 1, 1}};  // packed, in place, in place with far rows
  Index most = may_swap_roles(m, n) ? swapped_scratch(n, k) : 0;
  Gemm args;
  args.m = m, args.n = n, args.k = k;
  constexpr Accumulate kModes[] = {Accumulate::overwrite, Accumulate::add};
  for (const Accumulate accumulate : kModes) {
    args.accumulate = accumulate;
    for (const auto& [row_stride, column_stride] : kBStrides) {
      const Cut cut(args, 0, row_stride, column_stride);
      const Index size = cut.packed_b_size() + cut.packed_a_size() + cut.chains_size();
      if (size > most) most = size;
    }
  }
  return most;
}

void body_gemm(const Gemm& args) noexcept {
  if (args.m == 0 || args.n == 0) return;
  if (is_matrix_vector(args)) return multiply_vector(args);
  if (is_outer_product(args)) return multiply_outer(args);
  if (swaps_roles(args)) return multiply_swapped(args);
  const Cut cut(args);
  float* packed_b = cut.packed_b_size() > 0 ? args.scratch : nullptr;
  float* packed_a = cut.pack_a ? args.scratch + cut.packed_b_size() : nullptr;
  float* chains = cut.keep_chains ? args.scratch + cut.packed_b_size() + cut.packed_a_size() : nullptr;
  for (Index top = 0; top < args.m; top += cut.rows) {
    const Index bottom = smaller(top + cut.rows, args.m);
    for (Index column = 0; column < args.n; column += cut.columns) {
      const Index columns = smaller(cut.columns, args.n - column);
      Index k0 = 0;
      do {  // once even for k = 0: the epilogue runs
        const Index depth = smaller(cut.depth, args.k - k0);
        const bool dense = args.b_column_stride == 1;
        if (cut.pack_b && !dense) {
          const float* const b = args.b + k0 * args.b_row_stride + column * args.b_column_stride;
          pack_panels({depth, columns, b, args.b_row_stride, args.b_column_stride, packed_b, 0, depth});
        }
        for (Index row = top; row < bottom; row += cut.row_block) {
          const Index rows = smaller(cut.row_block, bottom - row);
          if (packed_a != nullptr) {
            pack_rows(rows, depth, args.a + row * args.a_row_stride + k0 * args.a_column_stride, args.a_row_stride,
                      args.a_column_stride, packed_a, cut.a_stride);
          }
          const Source packs = dense && row == top ? Source::packing : Source::packed;
          multiply_block(args, cut, {row, rows, column, columns, k0, depth}, packed_a, cut.pack_b ? packs : Source::in_place,
                         packed_b, chains);
        }
        k0 += depth;
      } while (k0 < args.k);
    }
  }
}

}  // namespace
}  // namespace vitro::simd
