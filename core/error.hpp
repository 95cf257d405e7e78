// SPDX-License-Identifier: Apache-2.0
// Errors: one enum, one sentence, and Result<T> for calls whose outcome depends on outside data.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace vitro {

enum class ErrorCode : unsigned char {
  invalid_argument,  // an option, index or count outside its documented range
  shape_mismatch,    // shapes or strides that do not fit the operation or each other
  overflow,          // a size whose product does not fit the index type
  out_of_memory,     // the system refused an allocation
  unsupported,       // a legal request that this build or this machine cannot serve
  io,                // the operating system refused to open, read, write or rename
  format,            // bytes that are not what their header or their name says
  corrupt,           // well-formed bytes whose checksum or hash disagrees
  non_finite,        // an infinity or NaN where a finite number is required
};

// The code's name as it is written above; a static string.
const char* to_string(ErrorCode code) noexcept;

// What went wrong, where, and what would be right. The message is one complete sentence that names the tensor, layer or
// file concerned; it is ASCII and ends without a line break.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

// Reports a programming error. With exceptions: throws `error`. Without: calls the handler installed below, then
// std::terminate() if that returns.
[[noreturn]] void fail(Error error);
[[noreturn]] inline void fail(ErrorCode code, std::string message) { fail(Error(code, std::move(message))); }

// What a build without exceptions calls before it terminates; null (the default) for nothing. Unused by a build with
// exceptions. This is the library's only process-wide variable, an atomic, as std::set_terminate's is. Returns the old one.
using FailureHandler = void (*)(const Error& error);
FailureHandler set_failure_handler(FailureHandler handler) noexcept;

// Either a T or the Error that explains why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // The value; fail()s with the error if there is none.
  T& value() & { return require(), *std::get_if<0>(&state_); }
  const T& value() const& { return require(), *std::get_if<0>(&state_); }
  T value() && { return require(), std::move(*std::get_if<0>(&state_)); }

  // The error. Requires !ok().
  const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  Error error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

 private:
  void require() const {
    if (const Error* error = std::get_if<1>(&state_)) fail(*error);
  }
  std::variant<T, Error> state_;
};

// Success without a value, or the Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  void value() const {
    if (const Error* error = std::get_if<1>(&state_)) fail(*error);
  }
  const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  Error error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};
using Status = Result<void>;

}  // namespace vitro
