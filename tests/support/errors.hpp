// SPDX-License-Identifier: Apache-2.0
// Catches the Error of a call that must fail, so that its code and its sentence can be checked.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <vitro/core/error.hpp>

namespace vitro_test {

// The Error that `call` throws; the test case fails if it throws none.
template <class Call>
vitro::Error error_of(const Call& call) {
  std::optional<vitro::Error> error;
  try {
    call();
  } catch (const vitro::Error& thrown) {
    error = thrown;
  }
  REQUIRE(error.has_value());
  return *error;
}

}  // namespace vitro_test
