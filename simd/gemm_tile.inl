// SPDX-License-Identifier: Apache-2.0
// The micro-kernel of the matrix products, written once over the vector vocabulary: one register tile of C through all of k.
//
// Included by gemm_body.inl, after a vec_*.hpp and the constants `Tuning` of the ISA.

#ifdef __clang__
#define VITRO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VITRO_UNROLL _Pragma("GCC unroll 16")
#endif

// Arrays of registers are arguments below: a call that is not inlined would put them in memory, at a third of the speed.
#define VITRO_INLINE [[gnu::always_inline]] inline

namespace vitro::simd {
namespace {

constexpr int kMaxRows = 12;    // of any tile: what the arrays of row pointers hold
constexpr int kMaxVectors = 8;  // of columns in any tile

constexpr Index kLine = 64, kFloat = 4;  // bytes

// What a tile multiplies and where it puts the result. Row i of A is `segments` segments, a[i * row_segments + s] + a_offset
// (or with a_segments a[i * row_segments] + a_segments[s] + a_offset), each of segment_length elements a_stride apart; row p of
// B's column panel stands at b + p * b_stride. Null pointers in the first row: the tile lacks that segment.
struct Tile {
  const float* const* a = nullptr;
  Index row_segments = 1;  // pointers from one row to the next
  const Index* a_segments = nullptr;
  Index segments = 1, segment_length = 0, a_stride = 1, a_offset = 0;
  const float* b = nullptr;
  Index b_stride = 0;
  Index b_panel = 0;                   // from one panel of B to the next, for a tile wider than a panel
  const Index* b_segments = nullptr;   // first row of B for each segment; null: the segments follow one another
  std::uintptr_t ahead = 0;            // address of the share of the next panel that this tile brings near: its step p
  std::uintptr_t ahead_step = 0;       // prefetches ahead + p * ahead_step (bytes); any address may be prefetched
  std::uintptr_t ahead_tile = 0;       // bytes from this tile's share to the next one's
  Index ahead_tiles = 0;               // tiles that have a share, from this one on
  Vec::Mask b_last = Vec::first(0);    // lanes of the last vector that B has, unless b_whole
  bool b_whole = false;                // all of them
  float* packed = nullptr;             // takes what is read of B as rows of whole vectors, unless null or b_whole
  Vec::Mask c_last;                    // and that C has
  Index column = 0;                    // of the rows below, where the tile begins
  const float* const* from = nullptr;  // rows from which the chains start; null: from +0
  float* const* to = nullptr;          // rows that take the result
  bool add = false;                    // to = to + chain, instead of to = chain
  const float* row_bias = nullptr;     // at the tile's first row, or null
  const float* bias = nullptr;         // at the tile's first column, or null
  const float* const* residual = nullptr;
  bool relu = false;
};

// Of the vectors of a row, only the last one may be cut short; and it can only where vectors have several lanes: elsewhere the
// mask would cost a branch an element.
template <bool is_last>
Vec::Reg load_vector(Vec::Mask last, const float* p) noexcept {
  if constexpr (is_last && Vec::kWidth > 1) {
    return Vec::load(last, p);
  } else {
    return Vec::load(p);
  }
}

template <int vectors>
VITRO_INLINE void load_row(Vec::Reg (&row)[vectors], Vec::Mask last, const float* p) noexcept {
  VITRO_UNROLL
  for (int j = 0; j < vectors - 1; ++j) row[j] = load_vector<false>(last, p + j * Vec::kWidth);
  row[vectors - 1] = load_vector<true>(last, p + (vectors - 1) * Vec::kWidth);
}

template <bool whole, int vectors>
VITRO_INLINE void load_b_row(Vec::Reg (&row)[vectors], const Tile& tile, const float* p) noexcept {
  constexpr auto at = [](int j, Index panel) { return j / Tuning::kVectors * panel + j % Tuning::kVectors * Vec::kWidth; };
  VITRO_UNROLL
  for (int j = 0; j < vectors - 1; ++j) row[j] = Vec::load(p + at(j, tile.b_panel));
  row[vectors - 1] = load_vector<!whole>(tile.b_last, p + at(vectors - 1, tile.b_panel));
}

template <int vectors>
VITRO_INLINE void store_row(const Vec::Reg (&row)[vectors], Vec::Mask last, float* p) noexcept {
  VITRO_UNROLL
  for (int j = 0; j < vectors - 1; ++j) Vec::store(p + j * Vec::kWidth, row[j]);
  float* end = p + (vectors - 1) * Vec::kWidth;
  if constexpr (Vec::kWidth > 1) {
    Vec::store(last, end, row[vectors - 1]);
  } else {
    Vec::store(end, row[vectors - 1]);
  }
}

template <int vectors>
VITRO_INLINE void add_to_row(Vec::Reg (&row)[vectors], const Vec::Reg (&other)[vectors]) noexcept {
  VITRO_UNROLL
  for (int j = 0; j < vectors; ++j) row[j] = Vec::add(row[j], other[j]);
}

// What comes after the chains: each step for all rows, so that the five questions are asked once a tile and not once a row.
template <int rows, int vectors>
VITRO_INLINE void finish_tile(Vec::Reg (&chain)[rows][vectors], const Tile& tile) noexcept {
  Vec::Reg other[vectors];
  if (tile.add) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      load_row(other, tile.c_last, tile.to[i] + tile.column);
      add_to_row(chain[i], other);
    }
  }
  if (tile.row_bias != nullptr) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      const Vec::Reg value = Vec::set1(tile.row_bias[i]);
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::add(chain[i][j], value);
    }
  }
  if (tile.bias != nullptr) {
    load_row(other, tile.c_last, tile.bias);
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) add_to_row(chain[i], other);
  }
  if (tile.residual != nullptr) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      load_row(other, tile.c_last, tile.residual[i] + tile.column);
      add_to_row(chain[i], other);
    }
  }
  if (tile.relu) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) {
        chain[i][j] = Vec::select(Vec::less(chain[i][j], Vec::zero()), Vec::zero(), chain[i][j]);
      }
    }
  }
  VITRO_UNROLL
  for (int i = 0; i < rows; ++i) store_row(chain[i], tile.c_last, tile.to[i] + tile.column);
}

// Takes an address, not a pointer: it may lie beyond the arrays.
VITRO_INLINE void prefetch_second_level(std::uintptr_t address) noexcept {
  constexpr int kRead = 0, kSecondLevel = 2;
  __builtin_prefetch(reinterpret_cast<const void*>(address), kRead, kSecondLevel);  // NOLINT(performance-no-int-to-ptr)
}

// Several steps of k of a tile narrower than a panel, where both operands are dense; steps on. One by one, the counting and
// stepping costs one vector as much as the fma: 12 x 16 x 1500 ran at 81 GFLOP/s and runs at 177, the peak, by fours. Two
// vectors by threes took 0.9 of the time in a convolution of 3 channels, 0.965 in one of 32 (AVX-512).
template <int steps, int rows, int vectors>
VITRO_INLINE void take_steps(Vec::Reg (&chain)[rows][vectors], const float* (&a)[rows], const float*& b) noexcept {
  VITRO_UNROLL
  for (int t = 0; t < steps; ++t) {
    Vec::Reg columns[vectors];
    VITRO_UNROLL
    for (int j = 0; j < vectors; ++j) columns[j] = Vec::load(b + (t * vectors + j) * Vec::kWidth);
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      const Vec::Reg value = Vec::set1(a[i][t]);
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::fma(value, columns[j], chain[i][j]);
    }
  }
  VITRO_UNROLL
  for (int i = 0; i < rows; ++i) a[i] += steps;
  b += steps * vectors * Vec::kWidth;
}

// A single row reads B once, and from afar where B stands in place: 1 x 1000 x 512 takes 0.95 and 1 x 120 x 256 0.9 of the time
// with the row of four steps later on its way (AVX-512; rows 4 KB apart lose 1 %).
template <int vectors>
VITRO_INLINE void prefetch_later_row(const Tile& tile, const float* b) noexcept {
  constexpr Index kSteps = 4;
  VITRO_UNROLL
  for (Index j = 0; j < vectors * Vec::kWidth; j += kLine / kFloat) {
    // An address, not a pointer: it may lie beyond the array.
    const std::uintptr_t row =
        reinterpret_cast<std::uintptr_t>(b) + static_cast<std::uintptr_t>(tile.b_stride * kSteps * kFloat);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    __builtin_prefetch(reinterpret_cast<const void*>(row + static_cast<std::uintptr_t>(j * kFloat)));
  }
}

// One step of k; steps on.
template <bool whole, int rows, int vectors>
VITRO_INLINE void take_step(Vec::Reg (&chain)[rows][vectors], const Tile& tile, const float* const (&a)[rows], Index& at,
                            const float*& b, [[maybe_unused]] std::uintptr_t& ahead, [[maybe_unused]] float*& packed) noexcept {
  Vec::Reg columns[vectors];
  load_b_row<whole>(columns, tile, b);
  if constexpr (!whole && rows > 1) {
    if (packed != nullptr) {
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) Vec::store(packed + j * Vec::kWidth, columns[j]);
      packed += vectors * Vec::kWidth;
    }
  }
  if constexpr (rows > 1 && vectors == Tuning::kVectors && Vec::kWidth > 1) {
    prefetch_second_level(ahead);
    ahead += tile.ahead_step;
  }
  if constexpr (rows == 1 && vectors == kMaxVectors && Vec::kWidth > 1) {
    if (tile.b_stride > Tuning::kVectors * Vec::kWidth) prefetch_later_row<vectors>(tile, b);
  }
  VITRO_UNROLL
  for (int i = 0; i < rows; ++i) {
    const Vec::Reg value = Vec::set1(a[i][at]);
    VITRO_UNROLL
    for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::fma(value, columns[j], chain[i][j]);
  }
  at += tile.a_stride;
  b += tile.b_stride;
}

// How a tile steps through k; asked once a tile.
enum class Steps : unsigned char {
  masked,  // of the last vector of B some lanes only: a load under a mask takes one of the two units that fma needs. Without it
           // 256 cubed with B packed went from 0.91 to 0.95 of the peak, 3136 x 64 x 576 from 0.90 to 0.96 (AVX-512)
  whole,   // tile.b_whole
  dense,   // and the numbers of a row of A follow one another, and so do the rows of B
  fetching,  // and what the tile is to bring near is
};

// All segments.
template <Steps steps, int rows, int vectors>
VITRO_INLINE void multiply_segments(Vec::Reg (&chain)[rows][vectors], const Tile& tile) noexcept {
  constexpr bool whole = steps != Steps::masked, dense = steps == Steps::dense || steps == Steps::fetching;
  [[maybe_unused]] std::uintptr_t ahead = tile.ahead;
  [[maybe_unused]] float* packed = tile.packed;
  const float* a[rows] = {};
  const float* b = tile.b;
  const bool shared = tile.a_segments != nullptr;
  if (shared) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) a[i] = tile.a[i];
  }
  for (Index s = 0; s < tile.segments; ++s) {
    if (tile.b_segments != nullptr) b = tile.b + tile.b_segments[s] * tile.b_stride;
    if (!shared) {
      const float* const* const pointers = tile.a + s;
      if (pointers[0] == nullptr) {
        b += tile.segment_length * tile.b_stride;
        continue;
      }
      VITRO_UNROLL
      for (int i = 0; i < rows; ++i) a[i] = pointers[i * tile.row_segments];
    }
    Index at = tile.a_offset + (tile.a_segments == nullptr ? 0 : tile.a_segments[s]), remaining = tile.segment_length;
    if constexpr (dense) {
      const float* at_a[rows];
      VITRO_UNROLL
      for (int i = 0; i < rows; ++i) at_a[i] = a[i] + at;
      constexpr int kSteps = vectors == 1 ? 4 : 3;
      for (; remaining >= kSteps; remaining -= kSteps) {
        take_steps<kSteps>(chain, at_a, b);
        if constexpr (steps == Steps::fetching) {
          prefetch_second_level(ahead);
          ahead += kSteps * tile.ahead_step;
        }
      }
      if (remaining >= 2) take_steps<2>(chain, at_a, b), remaining -= 2;
      if (remaining > 0) take_steps<1>(chain, at_a, b);
      continue;
    }
    // Counting and stepping cost the largest tile 1 %, and 4 % where another thread runs on the same core. The others are too
    // many for several copies.
    if constexpr (whole && vectors == Tuning::kVectors && rows + 1 >= Tuning::kRows[vectors] && Vec::kWidth > 1) {
      for (; remaining >= 4; remaining -= 4) {
        VITRO_UNROLL
        for (int t = 0; t < 4; ++t) take_step<whole>(chain, tile, a, at, b, ahead, packed);
      }
    }
    for (; remaining > 0; --remaining) take_step<whole>(chain, tile, a, at, b, ahead, packed);
  }
}

template <int rows, int vectors>
void multiply_tile(const Tile& tile) noexcept {
  Vec::Reg chain[rows][vectors];
  if (tile.from == nullptr) {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) {
      VITRO_UNROLL
      for (int j = 0; j < vectors; ++j) chain[i][j] = Vec::zero();
    }
  } else {
    VITRO_UNROLL
    for (int i = 0; i < rows; ++i) load_row(chain[i], tile.c_last, tile.from[i] + tile.column);
  }
  constexpr bool narrow = vectors < Tuning::kVectors && Vec::kWidth > 1 &&
                          (vectors == 1 ? rows > 1 : vectors == 2 && rows + 1 >= Tuning::kRows[vectors]);
  constexpr bool fetches = narrow && vectors == 1 && rows == Tuning::kRows[vectors];
  const bool dense = narrow && tile.b_whole && tile.a_stride == 1 && tile.b_stride == vectors * Vec::kWidth;
  if (fetches && dense && tile.ahead_step != 0) {
    multiply_segments<fetches ? Steps::fetching : Steps::whole>(chain, tile);
  } else if (dense) {
    multiply_segments<narrow ? Steps::dense : Steps::whole>(chain, tile);
  } else if (tile.b_whole) {
    multiply_segments<Steps::whole>(chain, tile);
  } else {
    multiply_segments<Steps::masked>(chain, tile);
  }
  finish_tile(chain, tile);
}

// multiply_tile<rows, vectors> for every size of tile that Tuning allows, chosen by table.
using TileFunction = void (*)(const Tile&) noexcept;

struct TileFunctions {
  TileFunction of[kMaxRows + 1][kMaxVectors + 1] = {};
};

template <int vectors, int rows>
constexpr void add_tiles(TileFunctions& functions) noexcept {
  functions.of[rows][vectors] = multiply_tile<rows, vectors>;
  if constexpr (rows > 1) add_tiles<vectors, rows - 1>(functions);
}

template <int vectors>
constexpr void add_tiles(TileFunctions& functions) noexcept {
  static_assert(Tuning::kRows[vectors] <= kMaxRows);
  add_tiles<vectors, Tuning::kRows[vectors]>(functions);
  if constexpr (vectors > 1) add_tiles<vectors - 1>(functions);
}

constexpr TileFunctions make_tile_functions() noexcept {
  TileFunctions functions;
  add_tiles<Tuning::kVectors>(functions);
  functions.of[1][kMaxVectors] = multiply_tile<1, kMaxVectors>;
  return functions;
}

constexpr TileFunctions kTileFunctions = make_tile_functions();

}  // namespace
}  // namespace vitro::simd
