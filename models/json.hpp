// SPDX-License-Identifier: Apache-2.0
// Json: a JSON document (RFC 8259) as a value, strictly parsed and printed for people to read.
#pragma once

#include "../core/error.hpp"

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace vitro {

// Null, boolean, number, string, array or object. A number is kept as its text, so that what was read is what is written, in
// every digit, and a float or a 64-bit seed survives. Objects keep the order in which members were added.
// To read a document from outside, with errors that name the member, use JsonReader (json_reader.hpp).
class Json {
 public:
  enum class Kind : unsigned char { null, boolean, number, string, array, object };
  struct Member;

  static constexpr int kMaxDepth = 64;                            // arrays and objects inside each other
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;  // of a document that is parsed

  Json();
  template <std::same_as<bool> T>  // a template, so that a pointer does not turn into true
  Json(T value);
  // The shortest text that reads back as the same number in the same type; null for an infinity or NaN, which JSON lacks.
  Json(float value);
  Json(double value);
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Json(T value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  static Json array();
  static Json array(std::vector<Json> elements);
  static Json object();
  static Json object(std::vector<Member> members);

  // Parses one document. `origin` is what the errors (format) call it; they add line and column (from 1, in characters), what
  // was expected and what is there. Stricter than the RFC where it leaves a choice: equal keys in one object, a byte order
  // mark, and documents over kMaxDepth or kMaxBytes are errors. Strings must be UTF-8 and have no unpaired surrogates.
  static Result<Json> parse(std::string_view text, std::string_view origin);

  // `indent` spaces a level; arrays of plain values stay on one line. indent = 0: everything on one line. No line break at the
  // end. The same value gives the same text. Bytes that are not UTF-8 are written as U+FFFD.
  std::string dump(int indent = 2) const;

  Kind kind() const noexcept { return static_cast<Kind>(value_.index()); }
  bool is(Kind kind) const noexcept { return this->kind() == kind; }

  // Each requires the kind that its name says.
  bool boolean() const noexcept { return *std::get_if<bool>(&value_); }
  const std::string& number() const noexcept { return std::get_if<Number>(&value_)->text; }
  const std::string& string() const noexcept { return *std::get_if<std::string>(&value_); }
  const std::vector<Json>& elements() const noexcept { return *std::get_if<std::vector<Json>>(&value_); }
  const std::vector<Member>& members() const noexcept;

  // The member's value; null if this is no object or has no such member.
  const Json* find(std::string_view key) const noexcept;

  // Adds an element at the end. Requires an array.
  void push(Json element);
  // Adds a member at the end, or gives the one that is there a new value. Requires an object.
  void set(std::string_view key, Json value);

  // Equal kinds, texts and order.
  friend bool operator==(const Json& a, const Json& b) noexcept;

 private:
  struct Number {
    std::string text;
    bool operator==(const Number&) const = default;
  };
  friend class JsonParser;

  // The order of the alternatives is that of Kind.
  std::variant<std::monostate, bool, Number, std::string, std::vector<Json>, std::vector<Member>> value_;
};

struct Json::Member {
  std::string key;
  Json value;
  friend bool operator==(const Member&, const Member&) noexcept = default;
};

template <std::same_as<bool> T>
Json::Json(T value) : value_(value) {}

template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) Json::Json(T value) : value_(Number{std::to_string(value)}) {}

inline const std::vector<Json::Member>& Json::members() const noexcept { return *std::get_if<std::vector<Member>>(&value_); }

// The kind with its article, for messages: "an array".
const char* to_string(Json::Kind kind) noexcept;

}  // namespace vitro
