// SPDX-License-Identifier: Apache-2.0
// Philox against its published vectors, and the distributions against what they promise.
#include "../support/errors.hpp"

#include <algorithm>
#include <array>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <vector>
#include <vitro/core/random.hpp>
#include <vitro/core/tensor.hpp>

using vitro::Index;
using vitro::Philox;
using vitro::PhiloxCounter;
using vitro::Shape;
using vitro::Tensor;
using vitro_test::error_of;

namespace {

constexpr std::uint64_t kSeed = 0x123456789ABCDEF0;
constexpr std::uint64_t kStream = 0x0FEDCBA987654321;

// Pearson's statistic for equally likely classes.
double chi_squared(const std::vector<int>& counts) {
  double total = 0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("Philox4x32-10 gives the numbers published with it") {
  // The known-answer vectors of the Random123 library, file kat_vectors.
  CHECK(vitro::philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(vitro::philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(vitro::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a block is the bijection of counter and stream under the seed, low halves first") {
  CHECK(Philox(kSeed, kStream).block(0xAAAABBBBCCCCDDDD) ==
        vitro::philox4x32({0xCCCCDDDD, 0xAAAABBBB, 0x87654321, 0x0FEDCBA9}, {0x9ABCDEF0, 0x12345678}));
}

TEST_CASE("numbers of a sequence can be had in any order, also far out") {
  // From a second implementation, in Python.
  const Philox random(kSeed, kStream);
  CHECK(random.bits((std::uint64_t{1} << 62) + 3) == 3339963180);
  CHECK(random.bits((std::uint64_t{1} << 34) + 5) == 2753924075);
  CHECK(random.bits(4) == 1770461601);
  CHECK(random.bits(3) == 3251040754);
  CHECK(random.bits(2) == 2543142997);
  CHECK(random.bits(1) == 754447373);
  CHECK(random.bits(0) == 1571821551);
}

TEST_CASE("a uniform number is the top 24 bits, divided by 2^24") {
  const Philox random(3, 4);
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const float number = random.uniform(i);
    REQUIRE(number >= 0.0F);
    REQUIRE(number < 1.0F);
    REQUIRE(static_cast<double>(number) * 16777216.0 == static_cast<double>(random.bits(i) / 256));
  }
}

TEST_CASE("uniform numbers are uniform and streams are independent") {
  const int count = 100000;
  double correlation = 0;
  std::vector<int> classes(256, 0);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const double a = static_cast<double>(Philox(5, 0).uniform(index));
    const double b = static_cast<double>(Philox(5, 1).uniform(index));
    ++classes[static_cast<std::size_t>(a * 256)];
    correlation += (a - 0.5) * (b - 0.5) * 12 / count;
  }
  CHECK(chi_squared(classes) < 350);                       // 255 degrees of freedom: 99.99 % are below 345
  CHECK(std::abs(correlation) < 4 / std::sqrt(100000.0));  // four standard deviations
}

TEST_CASE("a whole number is below its bound and all of them occur") {
  const Philox random(11, 0);
  std::vector<int> classes(7, 0);
  for (std::uint64_t i = 0; i < 70000; ++i) ++classes.at(random.below(i, 7));
  CHECK(chi_squared(classes) < 28);  // 6 degrees of freedom: 99.99 % are below 27.9
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(random.below(i, 1) == 0);
    CHECK(random.below(i, 0x80000000U) == random.bits(i) / 2);
    const double exact = static_cast<double>(random.bits(i)) * 4294967295.0 / 4294967296.0;
    CHECK(random.below(i, 0xFFFFFFFFU) == static_cast<std::uint32_t>(exact));
  }
}

TEST_CASE("a uniform fill follows its formula in row-major order") {
  Tensor tensor(Shape({7, 11}));
  const Philox random(1, 2);
  vitro::fill_uniform(tensor, -0.25F, 0.75F, random);
  for (std::size_t i = 0; i < 77; ++i) {
    // high - low is 1, so the one rounding is that of the sum, which is exact in double.
    const double exact = static_cast<double>(random.uniform(i)) - 0.25;
    REQUIRE(tensor.span()[i] == static_cast<float>(exact));
  }
  Tensor empty(Shape({0, 3}));
  CHECK_NOTHROW(vitro::fill_uniform(empty, 0.0F, 1.0F, random));
}

TEST_CASE("each initialiser is uniform within the bound of its source") {
  const Philox random(17, 0);
  Tensor tensor(Shape({200, 100}));
  const auto check_bound = [&](double bound) {
    double largest = 0;
    double square = 0;
    double sum = 0;
    for (const float element : tensor.span()) {
      const double x = static_cast<double>(element);
      largest = std::max(largest, std::abs(x));
      square += x * x / 20000;
      sum += x / 20000;
    }
    CHECK(largest <= bound * (1 + 1e-6));
    CHECK(largest > bound * 0.999);
    CHECK(std::abs(square / (bound * bound / 3) - 1) < 0.03);
    CHECK(std::abs(sum) < bound * 0.02);
  };
  vitro::fill_fan_in_uniform(tensor, 25, random);
  check_bound(1.0 / 5.0);
  vitro::fill_he_uniform(tensor, 150, random);
  check_bound(std::sqrt(6.0 / 150.0));
  vitro::fill_glorot_uniform(tensor, 100, 200, random);
  check_bound(std::sqrt(6.0 / 300.0));
}

TEST_CASE("initialisers refuse a fan below one and a strided view") {
  Tensor tensor(Shape({4, 4}));
  const Philox random(0, 0);
  for (const Index fan : {Index{0}, Index{-3}}) {
    CHECK(error_of([&] { vitro::fill_fan_in_uniform(tensor, fan, random); }).code() == vitro::ErrorCode::invalid_argument);
    CHECK(error_of([&] { vitro::fill_he_uniform(tensor, fan, random); }).code() == vitro::ErrorCode::invalid_argument);
    CHECK(error_of([&] { vitro::fill_glorot_uniform(tensor, fan, 1, random); }).code() == vitro::ErrorCode::invalid_argument);
    CHECK_THAT(
        error_of([&] { vitro::fill_glorot_uniform(tensor, 1, fan, random); }).message(),
        Catch::Matchers::ContainsSubstring("fill_glorot_uniform") && Catch::Matchers::ContainsSubstring(std::to_string(fan)));
  }
  const vitro::Error error = error_of([&] { vitro::fill_he_uniform(tensor.view().permute({1, 0}), 1, random); });
  CHECK(error.code() == vitro::ErrorCode::shape_mismatch);
}

TEST_CASE("a permutation holds every number once") {
  for (const Index count : {0, 1, 2, 3, 10, 1000, 60000}) {
    std::vector<std::uint32_t> order = vitro::permutation(count, Philox(9, static_cast<std::uint64_t>(count)));
    std::sort(order.begin(), order.end());
    REQUIRE(order.size() == static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i);
  }
}

TEST_CASE("every permutation of four is equally likely") {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) ++seen[vitro::permutation(4, Philox(seed, 1))];
  REQUIRE(seen.size() == 24);
  std::vector<int> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  CHECK(chi_squared(counts) < 58);  // 23 degrees of freedom: 99.99 % are below 57
}

TEST_CASE("a permutation is that of Fisher and Yates from the end") {
  // From a second implementation, in Python.
  CHECK(vitro::permutation(12, Philox(kSeed, kStream)) == std::vector<std::uint32_t>{0, 9, 10, 7, 3, 1, 8, 5, 2, 4, 6, 11});
}

TEST_CASE("a permutation of a negative or too large count is refused") {
  CHECK(error_of([] { vitro::permutation(-1, Philox(0, 0)); }).code() == vitro::ErrorCode::invalid_argument);
  CHECK(error_of([] { vitro::permutation(Index{1} << 32, Philox(0, 0)); }).code() == vitro::ErrorCode::invalid_argument);
}
