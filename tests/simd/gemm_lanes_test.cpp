// SPDX-License-Identifier: Apache-2.0
// gemm_lanes of every table against a chain of std::fma in each lane: lines of A that overlap, lanes of C that are left alone.
#include "gemm_cases.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace vitro::simd;
using namespace vitro_test;

namespace {

struct Case {
  Index rows, columns, lanes, lines, line_length;
  bool awkward;
};

// count elements of kGemmLanes floats, against a guard page.
Guarded<float> draw_elements(Draw& draw, Index count, bool awkward) {
  Guarded<float> array(count * kGemmLanes, draw.chance(50));
  for (Index i = 0; i < count * kGemmLanes; ++i) array[i] = awkward ? draw.awkward_number() : draw.number();
  return array;
}

bool all_tables_agree(Draw& draw, const Case& size) {
  const auto [rows, columns, lanes, lines, length, awkward] = size;
  const Index k = lines * length;
  // The elements of A lie `step` apart and its lines `line`, closer than they are long or farther; rows begin anywhere.
  const Index step = 1 + draw.below(3), line = draw.below(2 * length * step + 1), furthest = draw.below(9);
  const Index reach = k == 0 ? 0 : furthest + (lines - 1) * line + (length - 1) * step + 1;
  const Guarded<float> a = draw_elements(draw, reach, awkward), b = draw_elements(draw, k * columns, awkward);
  const Guarded<float> start = draw_elements(draw, rows * columns, awkward), c = draw_elements(draw, rows * columns, false);
  std::vector<Index> a_rows;
  for (Index i = 0; i < rows; ++i) a_rows.push_back((i == 0 ? furthest : draw.below(furthest + 1)) * kGemmLanes);
  GemmLanes args;
  args.rows = rows, args.columns = columns, args.lanes = lanes, args.lines = lines, args.line_length = length;
  args.a = a.data(), args.a_rows = a_rows.data(), args.a_line = line * kGemmLanes, args.a_step = step * kGemmLanes;
  args.b = b.data(), args.c = c.data();
  args.chain = draw.chance(50);

  std::vector<float> expected;
  for (Index element = 0; element < rows * columns; ++element) {
    for (Index lane = 0; lane < kGemmLanes; ++lane) {
      const float before = start[element * kGemmLanes + lane];
      float chain = args.chain ? before : 0.0f;
      Index p = 0;
      for (Index s = 0; s < lines; ++s) {
        for (Index t = 0; t < length; ++t, ++p) {
          const Index at = a_rows[static_cast<std::size_t>(element / columns)] + (s * line + t * step) * kGemmLanes;
          chain = std::fma(a[at + lane], b[(p * columns + element % columns) * kGemmLanes + lane], chain);
        }
      }
      expected.push_back(lane < lanes ? chain : before);
    }
  }
  for (const KernelTable* table : runnable_tables()) {
    for (std::size_t i = 0; i < expected.size(); ++i) c[static_cast<Index>(i)] = start[static_cast<Index>(i)];
    table->gemm_lanes(args);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float got = c[static_cast<Index>(i)];
      if (canonical_bits(got) == canonical_bits(expected[i])) continue;
      UNSCOPED_INFO(table->name << " rows=" << rows << " columns=" << columns << " lanes=" << lanes << " lines=" << lines
                                << " length=" << length << " at " << i << ": " << got << ", expected " << expected[i]
                                << "; chain " << args.chain);
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("Products in the lanes give the chain's bits at every tile and number of lanes") {
  Draw draw(41);
  for (Index rows = 1; rows <= 9; ++rows) {
    for (Index columns = 1; columns <= 13; ++columns) {
      for (const Index lanes : {1, 7, 8, 9, 15, 16}) {
        if (!all_tables_agree(draw, {rows, columns, lanes, 1 + draw.below(3), 1 + draw.below(5), draw.chance(30)})) FAIL();
      }
    }
  }
}

TEST_CASE("Products in the lanes without lines or elements are chains of nothing") {
  Draw draw(42);
  for (const Index lines : {0, 2}) {
    if (!all_tables_agree(draw, {5, 7, 16, lines, lines == 0 ? 3 : 0, false})) FAIL();
  }
}

TEST_CASE("Without rows, columns or lanes gemm_lanes touches nothing") {
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    GemmLanes args;
    args.lanes = 16, args.lines = 1, args.line_length = 1;
    args.columns = 2;
    table->gemm_lanes(args);
    args.rows = 3, args.columns = 0;
    table->gemm_lanes(args);
    args.columns = 2, args.lanes = 0;
    const Index rows[] = {0, 0, 0};
    args.a_rows = rows;
    table->gemm_lanes(args);
  }
}
