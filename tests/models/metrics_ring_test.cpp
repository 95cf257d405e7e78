// SPDX-License-Identifier: Apache-2.0
// The ring of what steps report: order, wrapping round, and the flag that one step hands to the next.
#include <catch2/catch_test_macros.hpp>
#include <vitro/models/metrics_ring.hpp>

using namespace vitro;

TEST_CASE("Records come back in the order in which they were pushed, however often the ring has gone round") {
  MetricsRing ring;
  CHECK(ring.empty());
  Index pushed = 0, popped = 0;
  for (const std::size_t burst : {1U, 64U, 3U, 63U, 64U, 40U, 64U}) {
    for (std::size_t i = 0; i < burst; ++i, ++pushed) {
      ring.push(pushed / 100, pushed % 100, 7).metrics.loss = static_cast<float>(pushed);
    }
    CHECK(ring.full() == (burst == MetricsRing::kCapacity));
    while (!ring.empty()) {
      const StepRecord record = ring.pop();
      CHECK(record.metrics.loss == static_cast<float>(popped));
      CHECK(record.epoch == popped / 100);
      CHECK(record.step == popped % 100);
      CHECK(record.samples == 7);
      ++popped;
    }
  }
  CHECK(popped == pushed);
}

TEST_CASE("The last record's flag is there for the next step, also when the record was popped or the ring is full") {
  MetricsRing ring;
  CHECK(*ring.last_ok() == 1);
  ring.push(0, 0, 1).metrics.ok = 0;
  CHECK(*ring.last_ok() == 0);
  ring.pop();
  const std::int32_t* const flag = ring.last_ok();
  for (std::size_t i = 0; i < MetricsRing::kCapacity; ++i) {
    CHECK(*flag == 0);
    ring.push(0, 1, 1).metrics.ok = 1;
  }
  CHECK(*flag == 0);  // none of as many as the ring holds has written over it
  CHECK(*ring.last_ok() == 1);
  ring.clear();
  CHECK(ring.empty());
  CHECK(*ring.last_ok() == 1);
}

TEST_CASE("A push that is taken back leaves the ring as it was") {
  MetricsRing ring;
  ring.push(0, 0, 1).metrics = {1.0F, 2, 3.0F, 0};
  ring.push(0, 1, 1);
  ring.drop_last();
  CHECK(*ring.last_ok() == 0);
  CHECK(ring.pop().metrics.loss == 1.0F);
  CHECK(ring.empty());
}
