// SPDX-License-Identifier: Apache-2.0
// gemm_planes of every table against a chain of std::fma: rows of B that overlap, columns of C that are left alone, epilogues.
#include "gemm_cases.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace vitro::simd;
using namespace vitro_test;

namespace {

struct Case {
  Index rows, n, k;
  bool awkward;
};

float drawn(Draw& draw, bool awkward) { return awkward ? draw.awkward_number() : draw.number(); }

bool all_tables_agree(Draw& draw, const Case& size) {
  const auto [rows, n, k, awkward] = size;
  const Matrix a = draw_matrix(draw, rows, k, awkward);
  // Rows of B begin anywhere in one array, and the last may end where the array does.
  const Guarded<float> b(n + (k == 0 ? 0 : 3 * k), draw.chance(50));
  for (Index i = 0; i < n + (k == 0 ? 0 : 3 * k); ++i) b[i] = drawn(draw, awkward);
  std::vector<Index> b_rows;
  for (Index p = 0; p < k; ++p) b_rows.push_back(p == 0 ? 3 * k : draw.below(3 * k + 1));
  const Matrix c(rows, n, n + (draw.chance(50) ? 0 : 1 + draw.below(20)), 1, draw.chance(50));
  const Guarded<std::int32_t> taken(n);
  for (Index j = 0; j < n; ++j) taken[j] = draw.chance(70) ? -1 : 0;
  const Guarded<float> row_bias(rows);
  for (Index i = 0; i < rows; ++i) row_bias[i] = drawn(draw, awkward);
  GemmPlanes args;
  args.rows = rows, args.n = n, args.k = k;
  args.a = a.data(), args.a_row_stride = a.row_stride(), args.a_column_stride = a.column_stride();
  args.b = b.data(), args.b_rows = b_rows.data();
  args.c = c.data(), args.c_stride = c.row_stride();
  args.chain = draw.chance(50);
  if (draw.chance(50)) args.taken = taken.data();
  if (draw.chance(40)) args.row_bias = row_bias.data();
  args.relu = draw.chance(40);

  std::vector<float> start(static_cast<std::size_t>(rows * n)), expected(start.size());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i * n + j);
      start[at] = drawn(draw, awkward);
      float chain = args.chain ? start[at] : 0.0f;
      for (Index p = 0; p < k; ++p) chain = std::fma(a(i, p), b[b_rows[static_cast<std::size_t>(p)] + j], chain);
      chain = epilogue(chain, args.row_bias == nullptr ? nullptr : args.row_bias + i, nullptr, args.relu);
      expected[at] = args.taken != nullptr && taken[j] == 0 ? start[at] : chain;
    }
  }
  for (const KernelTable* table : runnable_tables()) {
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < n; ++j) c(i, j) = start[static_cast<std::size_t>(i * n + j)];
    }
    table->gemm_planes(args);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < n; ++j) {
        const float want = expected[static_cast<std::size_t>(i * n + j)];
        if (canonical_bits(c(i, j)) == canonical_bits(want)) continue;
        UNSCOPED_INFO(table->name << " rows=" << rows << " n=" << n << " k=" << k << " at (" << i << ", " << j
                                  << "): " << c(i, j) << ", expected " << want << "; chain " << args.chain << ", taken "
                                  << (args.taken != nullptr));
        return false;
      }
      // Between the rows stands the NaN that Matrix put there.
      for (const float* gap = &c(i, 0) + n; i + 1 < rows && gap != &c(i + 1, 0); ++gap) {
        if (!std::isnan(*gap)) return false;
      }
    }
  }
  return true;
}

}  // namespace

TEST_CASE("Planes give the chain's bits at every tile height and width") {
  Draw draw(31);
  for (Index rows = 1; rows <= 13; ++rows) {
    for (Index n = kPlaneStep; n <= 9 * kPlaneStep; n += kPlaneStep) {
      for (const Index k : {0, 1, 2, 7, 25}) {
        if (!all_tables_agree(draw, {rows, n, k, draw.chance(30)})) FAIL();
      }
    }
  }
}

TEST_CASE("Without rows or columns gemm_planes touches nothing") {
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    GemmPlanes args;
    args.n = kPlaneStep, args.k = 2;
    table->gemm_planes(args);
    args.rows = 3, args.n = 0;
    table->gemm_planes(args);
  }
}
