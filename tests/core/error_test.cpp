// SPDX-License-Identifier: Apache-2.0
// Errors and results in a build with exceptions; no_exceptions.cpp is the other half.
#include "../support/errors.hpp"

#include <memory>
#include <set>
#include <string>
#include <vitro/core/error.hpp>

using vitro::Error;
using vitro::ErrorCode;
using vitro::Result;
using vitro::Status;

TEST_CASE("every error code has a name of its own") {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::non_finite); ++code) {
    names.insert(vitro::to_string(static_cast<ErrorCode>(code)));
  }
  CHECK(names.size() == static_cast<std::size_t>(ErrorCode::non_finite) + 1);
  CHECK(names.count("unknown") == 0);
  CHECK(std::string(vitro::to_string(ErrorCode::shape_mismatch)) == "shape_mismatch");
}

TEST_CASE("fail throws the error, which is a std::exception with the same sentence") {
  const Error error = vitro_test::error_of([] { vitro::fail(ErrorCode::overflow, "too much"); });
  CHECK(error.code() == ErrorCode::overflow);
  CHECK(error.message() == "too much");
  CHECK_THROWS_AS(vitro::fail(error), std::exception);
  try {
    vitro::fail(error);
  } catch (const std::exception& caught) {
    CHECK(std::string(caught.what()) == "too much");
  }
}

TEST_CASE("a failure handler is neither kept nor called where exceptions are on") {
  CHECK(vitro::set_failure_handler([](const Error&) { FAIL("called"); }) == nullptr);
  CHECK(vitro::set_failure_handler(nullptr) == nullptr);
  CHECK_THROWS_AS(vitro::fail(ErrorCode::io, "x"), Error);
}

TEST_CASE("a result holds its value, also one that can only be moved") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  REQUIRE(result.ok());
  REQUIRE(result);
  CHECK(*result.value() == 7);
  *result.value() = 8;
  const std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 8);
  const Result<int> constant = 3;
  CHECK(constant.value() == 3);
}

TEST_CASE("a result without a value gives its error, and value() fails with it") {
  Result<int> result = Error(ErrorCode::format, "no number");
  CHECK_FALSE(result.ok());
  CHECK_FALSE(result);
  CHECK(result.error().code() == ErrorCode::format);
  CHECK(vitro_test::error_of([&] { result.value(); }).message() == "no number");
  CHECK(vitro_test::error_of([&] { std::as_const(result).value(); }).message() == "no number");
  CHECK(vitro_test::error_of([&] { std::move(result).value(); }).message() == "no number");
  CHECK(std::move(result).error().message() == "no number");
}

TEST_CASE("a status is a success unless it holds an error") {
  const Status good;
  CHECK(good.ok());
  CHECK_NOTHROW(good.value());
  const Status bad = Error(ErrorCode::io, "no disk");
  CHECK_FALSE(bad);
  CHECK(bad.error().message() == "no disk");
  CHECK(vitro_test::error_of([&] { bad.value(); }).code() == ErrorCode::io);
}
