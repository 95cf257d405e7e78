// SPDX-License-Identifier: Apache-2.0
// gemm of every table against a chain of std::fma: tile edges, k around the blocks, strides, epilogues, awkward numbers.
#include "gemm_cases.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>

using namespace vitro::simd;
using namespace vitro_test;

namespace {

struct Case {
  Index m, n, k;
  bool awkward;
};

// One drawn product; every table must give the bits of the naive chain and leave everything else as it was.
bool all_tables_agree(Draw& draw, const Case& size) {
  const auto [m, n, k, awkward] = size;
  const Matrix a = draw_matrix(draw, m, k, awkward);
  const Matrix b = draw_matrix(draw, k, n, awkward);
  const Index c_stride = n + (draw.chance(50) ? 0 : 1 + draw.below(4));
  const Matrix c(m, n, c_stride, 1, draw.chance(50));
  const Matrix bias(1, n, n, 1, draw.chance(50));
  const Matrix residual(m, n, n + draw.below(3), 1, draw.chance(50));
  for (Index j = 0; j < n; ++j) bias(0, j) = awkward ? draw.awkward_number() : draw.number();
  Gemm args;
  args.m = m, args.n = n, args.k = k;
  args.a = a.data(), args.a_row_stride = a.row_stride(), args.a_column_stride = a.column_stride();
  args.b = b.data(), args.b_row_stride = b.row_stride(), args.b_column_stride = b.column_stride();
  args.c = c.data(), args.c_stride = c_stride;
  args.accumulate = static_cast<Accumulate>(draw.below(3));
  if (draw.chance(40)) args.epilogue.bias = bias.data();
  if (draw.chance(40)) args.epilogue.residual = residual.data(), args.epilogue.residual_stride = residual.row_stride();
  args.epilogue.relu = draw.chance(40);

  std::vector<float> start(static_cast<std::size_t>(m * n)), expected(start.size());
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i * n + j);
      start[at] = awkward ? draw.awkward_number() : draw.number();
      residual(i, j) = awkward ? draw.awkward_number() : draw.number();
      float chain = args.accumulate == Accumulate::chain ? start[at] : 0.0f;
      for (Index p = 0; p < k; ++p) chain = std::fma(a(i, p), b(p, j), chain);
      if (args.accumulate == Accumulate::add) chain = start[at] + chain;
      expected[at] = epilogue(chain, args.epilogue.bias == nullptr ? nullptr : &bias(0, j),
                              args.epilogue.residual == nullptr ? nullptr : &residual(i, j), args.epilogue.relu);
    }
  }
  for (const KernelTable* table : runnable_tables()) {
    const Guarded<float> scratch((table->gemm_scratch(m, n, k) + 15) / 16 * 16);
    args.scratch = scratch.data();
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) c(i, j) = start[static_cast<std::size_t>(i * n + j)];
      if (i + 1 < m) std::fill(&c(i, 0) + n, &c(i + 1, 0), -77.0f);
    }
    table->gemm(args);
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) {
        const float want = expected[static_cast<std::size_t>(i * n + j)];
        if (canonical_bits(c(i, j)) == canonical_bits(want)) continue;
        UNSCOPED_INFO(table->name << " m=" << m << " n=" << n << " k=" << k << " at (" << i << ", " << j << "): " << c(i, j)
                                  << ", expected " << want << "; strides a " << a.row_stride() << "," << a.column_stride()
                                  << " b " << b.row_stride() << "," << b.column_stride() << " c " << c_stride << "; accumulate "
                                  << static_cast<int>(args.accumulate));
        return false;
      }
      for (const float* gap = &c(i, 0) + n; i + 1 < m && gap != &c(i + 1, 0); ++gap) {
        if (*gap != -77.0f) {
          UNSCOPED_INFO(table->name << " m=" << m << " n=" << n << " k=" << k << " wrote beside row " << i);
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

TEST_CASE("Every tile height and width gives the chain's bits on every table") {
  Draw draw(1);
  for (Index m = 1; m <= 13; ++m) {
    for (Index n = 1; n <= 66; n += n < 20 || n > 62 || n % 16 > 13 || n % 16 < 3 ? 1 : 5) {
      for (const Index k : {0, 1, 2, 3, 9, 16, 21}) {
        if (!all_tables_agree(draw, {m, n, k, draw.chance(20)})) FAIL();
      }
    }
  }
}

TEST_CASE("Chains longer than a block of k go on through every accumulate mode") {
  Draw draw(2);
  for (const Index k : {255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 1100}) {
    for (const Index m : {1, 6, 7, 25}) {
      for (const Index n : {1, 17, 33, 70}) {
        if (!all_tables_agree(draw, {m, n, k, draw.chance(20)})) FAIL();
      }
    }
  }
}

TEST_CASE("Products of several panels and many row tiles agree") {
  Draw draw(3);
  for (const Case& size :
       {Case{241, 70, 530, false}, Case{500, 10, 600, false}, Case{100, 200, 64, true}, Case{49, 129, 300, false},
        Case{1, 1000, 512, false}, Case{97, 1, 33, true}, Case{31, 260, 1, true}, Case{64, 84, 120, false},
        // Packed A in several blocks of rows, dense and strided; several blocks of packed B.
        Case{250, 700, 20, false}, Case{300, 130, 530, false}, Case{50, 1100, 30, false},
        // Panels of far rows, packed one at a time; chains beside them in scratch that is exactly as large as they need.
        Case{30, 700, 300, false}, Case{25, 530, 17, true}, Case{130, 60, 1030, false}, Case{130, 64, 520, false}}) {
    for (int repeat = 0; repeat < 16; ++repeat) {
      if (!all_tables_agree(draw, size)) FAIL();
    }
  }
}

TEST_CASE("One column, whose rows stand in the lanes where they are dense, agrees in every mode") {
  Draw draw(14);
  for (int i = 0; i < 1500; ++i) {
    if (!all_tables_agree(draw, {1 + draw.below(50), 1, draw.below(70), draw.chance(20)})) FAIL();
  }
}

TEST_CASE("Few columns, for which rows stand in the lanes, agree in every mode") {
  Draw draw(15);
  for (int i = 0; i < 1500; ++i) {
    if (!all_tables_agree(draw, {30 + draw.below(120), 1 + draw.below(12), draw.below(40), draw.chance(20)})) FAIL();
  }
}

TEST_CASE("Infinities, NaNs, denormals and negative zeros go through the chain like any number") {
  Draw draw(4);
  for (int repeat = 0; repeat < 400; ++repeat) {
    if (!all_tables_agree(draw, {1 + draw.below(14), 1 + draw.below(70), draw.below(12), true})) FAIL();
  }
}

TEST_CASE("Without rows, columns or depth nothing is touched beyond what the contract says") {
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    Gemm args;
    args.scratch = nullptr;
    args.n = 3, args.k = 2;
    table->gemm(args);
    args.m = 3, args.n = 0;
    table->gemm(args);
    CHECK(table->gemm_scratch(0, 5, 5) == 0);
    CHECK(table->gemm_scratch(5, 0, 5) == 0);

    const float bias[2] = {1.0f, -2.0f};
    const Guarded<float> c(4);
    args.m = 2, args.n = 2, args.k = 0, args.c = c.data(), args.c_stride = 2;
    args.epilogue.bias = bias;
    for (Index i = 0; i < 4; ++i) c[i] = 10.0f;
    table->gemm(args);
    CHECK((c[0] == 1.0f && c[1] == -2.0f && c[2] == 1.0f && c[3] == -2.0f));
    args.accumulate = Accumulate::chain;
    table->gemm(args);
    CHECK((c[0] == 2.0f && c[1] == -4.0f && c[2] == 2.0f && c[3] == -4.0f));
    args.accumulate = Accumulate::add;
    args.epilogue.relu = true;
    table->gemm(args);
    CHECK((c[0] == 3.0f && c[1] == 0.0f && c[2] == 3.0f && c[3] == 0.0f));
  }
}

TEST_CASE("The chain is within its error bound of the sum in double") {
  Draw draw(5);
  constexpr Index kSize = 33, kDepth = 700;
  const Matrix a = draw_matrix(draw, kSize, kDepth, false);
  const Matrix b = draw_matrix(draw, kDepth, kSize, false);
  const Matrix c(kSize, kSize, kSize, 1, false);
  for (const KernelTable* table : runnable_tables()) {
    INFO(table->name);
    const Guarded<float> scratch((table->gemm_scratch(kSize, kSize, kDepth) + 15) / 16 * 16);
    Gemm args;
    args.m = kSize, args.n = kSize, args.k = kDepth;
    args.a = a.data(), args.a_row_stride = a.row_stride(), args.a_column_stride = a.column_stride();
    args.b = b.data(), args.b_row_stride = b.row_stride(), args.b_column_stride = b.column_stride();
    args.c = c.data(), args.c_stride = kSize, args.scratch = scratch.data();
    table->gemm(args);
    bool close = true;
    for (Index i = 0; i < kSize; ++i) {
      for (Index j = 0; j < kSize; ++j) {
        double sum = 0, magnitude = 0;
        for (Index p = 0; p < kDepth; ++p) {
          const double product = static_cast<double>(a(i, p)) * static_cast<double>(b(p, j));
          sum += product;
          magnitude += std::abs(product);
        }
        // k roundings of at most half a unit in the last place of a partial sum.
        close = close && std::abs(static_cast<double>(c(i, j)) - sum) <= static_cast<double>(kDepth) * 0x1p-24 * magnitude;
      }
    }
    CHECK(close);
  }
}
