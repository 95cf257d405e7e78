// SPDX-License-Identifier: Apache-2.0
// What the tests of the operations share: drawn tensors, every context that must give the same bits, comparisons.
#pragma once

#include "../../core/random.hpp"
#include "../../core/tensor.hpp"
#include "../../ops/context.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace vitro_test {

using namespace vitro;

// Numbers drawn one after the other from one stream.
class Draw {
 public:
  explicit Draw(std::uint64_t stream) : random_(20260, stream) {}

  Index range(Index low, Index high) {  // both included
    return low + static_cast<Index>(random_.below(next_++, static_cast<std::uint32_t>(high - low + 1)));
  }
  bool one_in(Index n) { return range(1, n) == 1; }
  float number() { return std::fma(2.0f, random_.uniform(next_++), -1.0f); }  // [-1, 1)
  // One of the values at which kernels differ, or a number.
  float awkward_number() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kValues[] = {std::numeric_limits<float>::quiet_NaN(),
                                 kInfinity,
                                 -kInfinity,
                                 0.0f,
                                 -0.0f,
                                 1e-41f,
                                 -1e-41f,
                                 1e-30f,
                                 3e38f,
                                 -3e38f,
                                 1.0f};
    return one_in(12) ? kValues[range(0, 10)] : number();
  }

  Tensor tensor(const Shape& shape, bool awkward = false) {
    Tensor result(shape);
    for (float& value : result.span()) value = awkward ? awkward_number() : number();
    return result;
  }
  LabelTensor labels(Index count, Index classes) {
    LabelTensor result(Shape{count});
    for (std::int32_t& label : result.span()) label = static_cast<std::int32_t>(range(0, classes - 1));
    return result;
  }

 private:
  Philox random_;
  std::uint64_t next_ = 0;
};

// Every instruction set of this machine on one thread, and the best one on 2 to 7 threads that split even the smallest loop.
// context_test.cpp reports as skipped what the machine lacks.
inline std::vector<std::unique_ptr<Context>> make_contexts() {
  std::vector<std::unique_ptr<Context>> contexts;
  for (const Isa isa : {Isa::scalar, Isa::blocked, Isa::avx2, Isa::avx512}) {
    if (Result<std::unique_ptr<Context>> context = Context::try_make({.isa = isa}))
      contexts.push_back(std::move(context).value());
  }
  for (int threads = 2; threads <= 7; ++threads) {
    Result<std::unique_ptr<Context>> context = Context::try_make({.threads = threads, .parallel_work = 0, .wake_work = 0});
    if (context) contexts.push_back(std::move(context).value());  // none in a build without threads
  }
  return contexts;
}

inline std::string name_of(const Context& context) {
  return std::string(context.kernels().name) + ", " + std::to_string(context.threads()) + " threads";
}

// The float's bits; one and the same for every NaN, whose payload and sign are not part of the contract.
inline std::uint32_t canonical_bits(float value) { return value != value ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value); }

// Fails at the first element whose bits differ.
inline void require_same_bits(const Tensor& got, const Tensor& want) {
  REQUIRE(got.shape() == want.shape());
  for (Index i = 0; i < got.elements(); ++i) {
    if (canonical_bits(got.data()[i]) == canonical_bits(want.data()[i])) continue;
    CAPTURE(to_string(got.shape()), i, got.data()[i], want.data()[i]);
    REQUIRE(canonical_bits(got.data()[i]) == canonical_bits(want.data()[i]));
  }
  SUCCEED();
}

// One element computed in double, with the sum of its terms' magnitudes and their number.
struct Exact {
  double value = 0.0;
  double magnitude = 0.0;
  Index terms = 0;

  void add(double a, double b = 1.0) {
    value += a * b;
    magnitude += std::abs(a * b);
    ++terms;
  }
  // A chain of n rounded operations is off by at most n * 2^-24 of the magnitude (to first order; 1 % covers the rest).
  double tolerance() const { return 1.01 * std::ldexp(static_cast<double>(terms + 3) * magnitude, -24) + 1e-44; }
};

inline void require_near(float got, const Exact& want) {
  if (std::abs(static_cast<double>(got) - want.value) <= want.tolerance()) return;
  CAPTURE(got, want.value, want.tolerance(), want.terms);
  REQUIRE(std::abs(static_cast<double>(got) - want.value) <= want.tolerance());
}

// The two kinds of sums of the contract, written out. element(i) gives the i-th number.
template <class Element>
float sum_lanes(Index n, const Element& element) {
  float lane[16] = {};
  for (Index i = 0; i < n; ++i) lane[i % 16] += element(i);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

template <class Element>
float sum_chunks(Index n, const Element& element) {
  float total = 0.0f;
  for (Index begin = 0; begin < n; begin += 512) {
    float chain = 0.0f;
    for (Index i = begin; i < std::min(n, begin + 512); ++i) chain += element(i);
    total += chain;
  }
  return total;
}

}  // namespace vitro_test
