// SPDX-License-Identifier: Apache-2.0
// Plans by shape: states, what makes room, and what an error leaves behind.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/autograd/plan_cache.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;

namespace {

Signature batch_of(Index count) { return Signature("train").add({count, 8}, DType::u8).add({count}, DType::i32); }

// Asks for a value and counts how often one had to be made.
class Counted {
 public:
  explicit Counted(std::size_t capacity) : cache(capacity) {}
  int get(Index count) {
    return *cache.try_get(batch_of(count), [&] { return ++made, Result<int>(static_cast<int>(10 * count)); }).value();
  }
  PlanCache<int> cache;
  int made = 0;
};

}  // namespace

TEST_CASE("Mode, number of tensors, shapes and types tell signatures apart") {
  const Signature one = batch_of(4);
  CHECK(one == batch_of(4));
  CHECK_FALSE(one == batch_of(5));
  CHECK_FALSE(one == Signature("infer").add({4, 8}, DType::u8).add({4}, DType::i32));
  CHECK_FALSE(one == Signature("train").add({4, 8}, DType::u8));
  CHECK_FALSE(one == Signature("train").add({4, 8}, DType::f32).add({4}, DType::i32));
  CHECK(one.text() == "train u8[4, 8] i32[4]");
}

TEST_CASE("A plan is made once, and the one that was not asked for longest makes room") {
  Counted counted(2);
  CHECK(counted.cache.state(batch_of(1)) == PlanState::never_captured);
  CHECK(counted.get(1) == 10);
  CHECK(counted.get(2) == 20);
  CHECK(counted.get(1) == 10);
  CHECK(counted.made == 2);
  CHECK(counted.get(3) == 30);  // instead of 2
  CHECK(counted.cache.size() == 2);
  CHECK(counted.cache.state(batch_of(1)) == PlanState::ready);
  CHECK(counted.cache.state(batch_of(2)) == PlanState::never_captured);
  CHECK(counted.get(2) == 20);  // instead of 1
  CHECK(counted.made == 4);
  CHECK(counted.cache.state(batch_of(1)) == PlanState::never_captured);
  counted.cache.clear();
  CHECK(counted.cache.size() == 0);
}

TEST_CASE("A value stays where it is while others are found") {
  PlanCache<int> cache(3);
  const auto make = [] { return Result<int>(7); };
  const int* const first = cache.try_get(batch_of(1), make).value();
  cache.try_get(batch_of(2), make).value();
  cache.try_get(batch_of(3), make).value();
  CHECK(cache.try_get(batch_of(1), make).value() == first);
}

TEST_CASE("While a plan is captured it is pending, and asking for it again is an error") {
  PlanCache<int> cache(2);
  PlanState inside{}, other{};
  std::string message;
  const auto make = [&] {
    inside = cache.state(batch_of(1));
    other = cache.state(batch_of(2));
    message = cache.try_get(batch_of(1), [] { return Result<int>(1); }).error().message();
    return Result<int>(5);
  };
  CHECK(*cache.try_get(batch_of(1), make).value() == 5);
  CHECK(inside == PlanState::pending);
  CHECK(other == PlanState::never_captured);
  CHECK_THAT(message, ContainsSubstring("train u8[1, 8] i32[1]") && ContainsSubstring("while it is captured"));
  CHECK(cache.state(batch_of(1)) == PlanState::ready);
}

TEST_CASE("Asking in a circle is an error, and a capture that throws is not pending any more") {
  PlanCache<int> cache(4);
  std::string message;
  const auto inner = [&] {
    message = cache.try_get(batch_of(1), [] { return Result<int>(1); }).error().message();
    return Result<int>(2);
  };
  const auto outer = [&] { return Result<int>(10 * *cache.try_get(batch_of(2), inner).value()); };
  CHECK(*cache.try_get(batch_of(1), outer).value() == 20);
  CHECK_THAT(message, ContainsSubstring("while it is captured"));
  CHECK(cache.size() == 2);
  CHECK_THROWS_AS(static_cast<void>(cache.try_get(batch_of(3), []() -> Result<int> { throw 1; })), int);
  CHECK(cache.state(batch_of(3)) == PlanState::never_captured);
  CHECK(*cache.try_get(batch_of(3), [] { return Result<int>(3); }).value() == 3);
}

TEST_CASE("A plan that cannot be captured leaves the others, and may be tried again") {
  Counted counted(1);
  counted.get(1);
  const auto fails = [] { return Result<int>(Error(ErrorCode::unsupported, "no")); };
  CHECK(counted.cache.try_get(batch_of(2), fails).error().message() == "no");
  CHECK(counted.cache.state(batch_of(2)) == PlanState::never_captured);
  CHECK(counted.cache.state(batch_of(1)) == PlanState::ready);
  CHECK(counted.get(2) == 20);
}
