// SPDX-License-Identifier: Apache-2.0
// gemm_rows of every table against a chain of std::fma: segments and gaps, chosen rows of B, scattered rows of C,
// epilogues.
#include "gemm_cases.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>

using namespace vitro::simd;
using namespace vitro_test;

namespace {

struct Case {
  Index rows, n, segments, segment_length;
  bool awkward;
};

using Rows = std::vector<std::unique_ptr<Matrix>>;

// count rows of n elements, each in an array of its own.
Rows scattered_rows(Draw& draw, Index count, Index n, Index stride, bool awkward) {
  Rows rows;
  for (Index i = 0; i < count; ++i) {
    rows.push_back(std::make_unique<Matrix>(1, n, 1, stride, draw.chance(50)));
    for (Index j = 0; j < n; ++j) (*rows.back())(0, j) = awkward ? draw.awkward_number() : draw.number();
  }
  return rows;
}

std::vector<float*> pointers(const Rows& rows) {
  std::vector<float*> result;
  for (const auto& row : rows) result.push_back(row->data());
  return result;
}

// Some runs of rows, and in each the same segments taken away from every row: their pointers become null. Returns the runs'
// ends.
std::vector<Index> take_segments_away(Draw& draw, Index rows, Index segments, std::vector<float*>& a) {
  std::vector<Index> ends;
  for (Index begin = 0; begin < rows;) {
    const Index end = begin + 1 + draw.below(rows - begin);
    for (Index s = 0; s < segments; ++s) {
      if (!draw.chance(40)) continue;
      for (Index i = begin; i < end; ++i) a[static_cast<std::size_t>(i * segments + s)] = nullptr;
    }
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

const Matrix& row_of(const Rows& rows, Index i) { return *rows[static_cast<std::size_t>(i)]; }

bool all_tables_agree(Draw& draw, const Case& size) {
  const auto [rows, n, segments, segment_length, awkward] = size;
  const Index a_stride = draw.chance(60) ? 1 : draw.below(5) - 2;
  // One array for each segment of each row; or one for each row, whose segments lie in it at distances that all rows share.
  const bool shared = draw.chance(30);
  const Index distance = segment_length * (a_stride < 0 ? -a_stride : a_stride) + 2;
  const Rows a = shared ? scattered_rows(draw, rows, (segments + 1) * distance, 1, awkward)
                        : scattered_rows(draw, rows * segments, segment_length, a_stride, awkward);
  std::vector<Index> a_segments;
  for (Index s = 0; shared && s < segments; ++s) {
    a_segments.push_back((a_stride < 0 ? distance : 0) + draw.below(segments * distance + 1));
  }
  const auto element_of_a = [&](Index i, Index s, Index t) {
    if (!shared) return row_of(a, i * size.segments + s)(0, t);  // not the binding: Clang 14 cannot capture those
    return row_of(a, i)(0, a_segments[static_cast<std::size_t>(s)] + t * a_stride);
  };
  const Rows c = scattered_rows(draw, rows, n, 1, awkward);
  const Rows residual = scattered_rows(draw, rows, n, 1, awkward);
  const bool choose = draw.chance(50);
  const Index packed_k = choose ? (segments + 2) * segment_length + 1 : segments * segment_length;
  const Matrix b = draw_matrix(draw, packed_k, n, awkward);
  const Rows bias = scattered_rows(draw, 1, n, 1, awkward);

  // Any rows of B in any order, some twice, some never, not all on a multiple of the segment's length.
  std::vector<Index> b_segments;
  for (Index s = 0; s < segments; ++s)
    b_segments.push_back(choose ? draw.below(packed_k - segment_length + 1) : s * segment_length);
  std::vector<float*> a_pointers = pointers(a);
  const std::vector<Index> run_ends =
      shared || draw.chance(60) ? std::vector<Index>() : take_segments_away(draw, rows, segments, a_pointers);
  const std::vector<float*> c_pointers = pointers(c), residual_pointers = pointers(residual);
  GemmRows args;
  args.rows = rows, args.n = n;
  args.a = a_pointers.data(), args.segments = segments, args.segment_length = segment_length, args.a_stride = a_stride;
  args.a_segments = shared ? a_segments.data() : nullptr;
  args.run_ends = run_ends.empty() ? nullptr : run_ends.data();
  args.runs = static_cast<Index>(run_ends.size());
  args.packed_k = packed_k;
  args.b_segments = choose ? b_segments.data() : nullptr;
  args.c = c_pointers.data();
  args.accumulate = static_cast<Accumulate>(draw.below(3));
  if (draw.chance(40)) args.bias = bias[0]->data();
  const Rows row_bias = scattered_rows(draw, 1, rows, 1, awkward);
  if (draw.chance(30)) args.row_bias = row_bias[0]->data();
  if (draw.chance(40)) args.residual = residual_pointers.data();
  args.relu = draw.chance(40);
  const Guarded<float> chains(rows * kGemmRowsScratch);
  args.scratch = draw.chance(60) ? chains.data() : nullptr;

  std::vector<float> start(static_cast<std::size_t>(rows * n)), expected(start.size());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i * n + j);
      start[at] = row_of(c, i)(0, j);
      float chain = args.accumulate == Accumulate::chain ? start[at] : 0.0f;
      for (Index s = 0; s < segments; ++s) {
        if (!shared && a_pointers[static_cast<std::size_t>(i * segments + s)] == nullptr) continue;
        for (Index t = 0; t < segment_length; ++t) {
          chain = std::fma(element_of_a(i, s, t), b(b_segments[static_cast<std::size_t>(s)] + t, j), chain);
        }
      }
      if (args.accumulate == Accumulate::add) chain = start[at] + chain;
      if (args.row_bias != nullptr) chain = chain + args.row_bias[i];
      expected[at] = epilogue(chain, args.bias == nullptr ? nullptr : args.bias + j,
                              args.residual == nullptr ? nullptr : &row_of(residual, i)(0, j), args.relu);
    }
  }
  for (const KernelTable* table : runnable_tables()) {
    const Guarded<float> packed((table->packed_b_size(packed_k, n) + 15) / 16 * 16);
    // In two parts, as by two threads.
    const Index cut = packed_k / 3;
    for (const auto& [begin, end] : {std::pair{cut, packed_k}, {Index{0}, cut}}) {
      table->pack_b(
          {packed_k, n, b.data() + begin * b.row_stride(), b.row_stride(), b.column_stride(), packed.data(), begin, end});
    }
    args.packed_b = packed.data();
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < n; ++j) row_of(c, i)(0, j) = start[static_cast<std::size_t>(i * n + j)];
    }
    table->gemm_rows(args);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < n; ++j) {
        const float want = expected[static_cast<std::size_t>(i * n + j)];
        if (canonical_bits(row_of(c, i)(0, j)) == canonical_bits(want)) continue;
        UNSCOPED_INFO(table->name << " rows=" << rows << " n=" << n << " segments=" << segments << " of " << segment_length
                                  << (choose ? " chosen" : "") << (shared ? " shared" : "") << " in " << run_ends.size()
                                  << " runs at (" << i << ", " << j << "): " << row_of(c, i)(0, j) << ", expected " << want
                                  << "; a_stride " << a_stride << "; accumulate " << static_cast<int>(args.accumulate));
        return false;
      }
    }
  }
  return true;
}

}  // namespace

TEST_CASE("Rows in segments give the chain's bits at every tile height and width") {
  Draw draw(11);
  for (Index rows = 1; rows <= 14; ++rows) {
    for (const Index n : {1, 4, 5, 8, 9, 15, 16, 17, 31, 33, 48, 49, 63, 64, 65, 80}) {
      const Case size{rows, n, 1 + draw.below(5), 1 + draw.below(9), draw.chance(20)};
      if (!all_tables_agree(draw, size)) FAIL();
    }
  }
}

TEST_CASE("Segments of the shapes that convolutions use agree") {
  Draw draw(12);
  for (const Case& size : {Case{24, 6, 5, 5, false}, Case{16, 16, 5, 30, false}, Case{14, 64, 3, 192, false},
                           Case{7, 130, 9, 130, false}, Case{30, 20, 25, 1, true}, Case{9, 70, 1, 1100, false}}) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      if (!all_tables_agree(draw, size)) FAIL();
    }
  }
}

TEST_CASE("Chains longer than a block of k are cut between segments and inside them") {
  Draw draw(14);
  for (const Case& size : {Case{13, 70, 30, 90, false}, Case{7, 130, 3, 1300, false}, Case{1, 200, 2, 1200, false},
                           Case{20, 33, 600, 5, false}, Case{5, 9, 1, 3500, true}}) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      if (!all_tables_agree(draw, size)) FAIL();
    }
  }
}

TEST_CASE("Without segments, or with empty ones, the chain is empty and the epilogue runs") {
  Draw draw(13);
  for (int repeat = 0; repeat < 20; ++repeat) {
    if (!all_tables_agree(draw, {1 + draw.below(8), 1 + draw.below(40), 0, 3, true})) FAIL();
    if (!all_tables_agree(draw, {1 + draw.below(8), 1 + draw.below(40), 2, 0, true})) FAIL();
  }
}

TEST_CASE("Without rows or columns gemm_rows and pack_b touch nothing") {
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    GemmRows args;
    args.n = 4, args.segments = 2, args.segment_length = 3, args.packed_k = 6;
    table->gemm_rows(args);
    args.rows = 2, args.n = 0;
    table->gemm_rows(args);
    CHECK(table->packed_b_size(0, 9) == 0);
    CHECK(table->packed_b_size(9, 0) == 0);
    table->pack_b({0, 9, nullptr, 9, 1, nullptr, 0, 0});
    table->pack_b({9, 0, nullptr, 0, 1, nullptr, 0, 9});
  }
}

TEST_CASE("Transposed copies of nothing touch nothing") {
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    const Guarded<float> none(0);
    table->transpose(0, 9, none.data(), 9, none.data(), 0);
    table->transpose(9, 0, none.data(), 0, none.data(), 9);
    CHECK(table->name != nullptr);  // still here
  }
}

TEST_CASE("Transposed copies move every element and touch no other") {
  Draw draw(15);
  for (int repeat = 0; repeat < 400; ++repeat) {
    const Index rows = 1 + draw.below(40), columns = 1 + draw.below(repeat % 3 == 0 ? 150 : 40);
    const Matrix x(rows, columns, columns + draw.below(4), 1, draw.chance(50));
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) x(i, j) = draw.awkward_number();
    }
    for (const KernelTable* table : runnable_tables()) {
      INFO(table->name << " " << rows << " x " << columns);
      const Matrix turned(columns, rows, rows + draw.below(4), 1, draw.chance(50));
      table->transpose(rows, columns, x.data(), x.row_stride(), turned.data(), turned.row_stride());
      bool same = true;
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < columns; ++j) same = same && canonical_bits(turned(j, i)) == canonical_bits(x(i, j));
      }
      // Between the rows stands the NaN that Matrix put there.
      for (Index j = 0; j + 1 < columns; ++j) {
        for (Index i = rows; i < turned.row_stride(); ++i) same = same && std::isnan(turned(j, i));
      }
      REQUIRE(same);
    }
  }
}

TEST_CASE("Rows put together from runs have every element and touch no other") {
  Draw draw(16);
  for (int repeat = 0; repeat < 600; ++repeat) {
    const Index blocks = 1 + draw.below(3), block = 1 + draw.below(7);
    const Index runs = draw.below(8), run = draw.chance(60) ? 1 + draw.below(9) : 1 + draw.below(80);
    const Index x_stride = draw.below(6), x_block_stride = draw.below(40), rows = blocks * block;
    std::vector<Index> offsets;
    for (Index r = 0; r < runs; ++r) offsets.push_back(r * run + (draw.chance(30) ? 0 : draw.below(20)));
    Index extent = 0;
    for (const Index offset : offsets) extent = std::max(extent, offset + run);
    if (runs > 0) extent += (blocks - 1) * x_block_stride + (block - 1) * x_stride;
    const Guarded<float> x(extent, draw.chance(50));
    for (Index i = 0; i < extent; ++i) x[i] = draw.awkward_number();
    for (const KernelTable* table : runnable_tables()) {
      INFO(table->name << " " << rows << " rows of " << runs << " runs of " << run);
      const Matrix y(rows, runs * run, runs * run + draw.below(4), 1, draw.chance(50));
      table->copy_runs({.rows = rows,
                        .block = block,
                        .runs = runs,
                        .run = run,
                        .offsets = offsets.data(),
                        .x = x.data(),
                        .x_stride = x_stride,
                        .x_block_stride = x_block_stride,
                        .y = y.data(),
                        .y_stride = y.row_stride()});
      bool same = true;
      for (Index i = 0; i < rows; ++i) {
        for (Index r = 0; r < runs; ++r) {
          const Index from = i / block * x_block_stride + i % block * x_stride + offsets[static_cast<std::size_t>(r)];
          for (Index t = 0; t < run; ++t) {
            same = same && canonical_bits(y(i, r * run + t)) == canonical_bits(x[from + t]);
          }
        }
        for (Index j = runs * run; i + 1 < rows && runs > 0 && j < y.row_stride(); ++j) same = same && std::isnan(y(i, j));
      }
      REQUIRE(same);
    }
  }
}
