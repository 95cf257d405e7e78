// SPDX-License-Identifier: Apache-2.0
// What lenet_train tells people at the end of a run, for evaluations that its own test images do not give.
#include "../../tools/report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::Evaluation;
using vitro::tools::confusion_text;

namespace {

// Three classes; rows are what is there.
Evaluation evaluation(std::vector<vitro::Index> confusion, vitro::Index samples) {
  Evaluation e;
  e.classes = 3;
  e.samples = samples;
  e.correct = confusion[0] + confusion[4] + confusion[8];
  e.confusion = std::move(confusion);
  return e;
}

}  // namespace

TEST_CASE("Images whose scores are NaN are told, and are not called right") {
  const std::string some = confusion_text(evaluation({4, 0, 0, 0, 3, 0, 0, 0, 1}, 10));
  CHECK_THAT(some, ContainsSubstring("2 of 10 images have no class"));
  CHECK_THAT(some, !ContainsSubstring("No image was taken"));
  CHECK_THAT(confusion_text(evaluation({0, 0, 0, 0, 0, 0, 0, 0, 0}, 10)), ContainsSubstring("10 of 10 images have no class"));
  const std::string none = confusion_text(evaluation({4, 0, 0, 0, 3, 0, 0, 0, 3}, 10));
  CHECK_THAT(none, ContainsSubstring("No image was taken for another class"));
  CHECK_THAT(none, !ContainsSubstring("have no class"));
}

TEST_CASE("Confused pairs are listed from the worst on, as what is there and what the model says") {
  const std::string text = confusion_text(evaluation({4, 2, 0, 7, 3, 0, 1, 0, 3}, 20));
  CHECK_THAT(text, ContainsSubstring("Most confused: 1 as 0 (7), 0 as 1 (2), 2 as 0 (1)\n"));
  CHECK_THAT(text, ContainsSubstring("   1   7  3  0\n"));
}
