// SPDX-License-Identifier: Apache-2.0
// Steps and conversions of JsonReader, and the sentences it gives for what does not fit.
#include "json_reader.hpp"

#include "../core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace vitro {
namespace {

// What stands in the document where something else was expected: short enough for a message.
std::string describe(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::number: return escaped(value.number().substr(0, 40));
    case Json::Kind::string: return quoted(value.string(), 60);
    case Json::Kind::boolean: return value.boolean() ? "true" : "false";
    default: return to_string(value.kind());
  }
}

}  // namespace

JsonReader::JsonReader(const Json& document, std::string_view origin) : value_(&document), origin_(origin) {}

JsonReader::JsonReader(const JsonReader& parent, const Json* value, std::string path)
    : value_(value), origin_(parent.origin_), path_(std::move(path)), error_(parent.error_) {}

Error JsonReader::error(std::string_view what) const {
  if (error_) return *error_;
  return Error(ErrorCode::format,
               quoted(origin_) + ": " + (path_.empty() ? "the document" : escaped(path_)) + " " + std::string(what));
}

Error JsonReader::wrong(std::string_view expected) const {
  if (error_) return *error_;
  return error("must be " + std::string(expected) + ", found " + describe(*value_));
}

JsonReader JsonReader::operator[](std::string_view key) const {
  JsonReader result(*this, nullptr, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
  if (error_) return result;
  if (!value_->is(Json::Kind::object)) {
    result.error_ = wrong("an object with the member " + quoted(key));
  } else if ((result.value_ = value_->find(key)) == nullptr) {
    result.error_ = result.error("is missing");
  }
  return result;
}

JsonReader JsonReader::operator[](Index element) const {
  JsonReader result(*this, nullptr, path_ + "[" + std::to_string(element) + "]");
  if (error_) return result;
  if (!value_->is(Json::Kind::array)) {
    result.error_ = wrong("an array");
  } else if (element < 0 || static_cast<std::size_t>(element) >= value_->elements().size()) {
    result.error_ = result.error("is missing: the array has " + std::to_string(value_->elements().size()) + " elements");
  } else {
    result.value_ = &value_->elements()[static_cast<std::size_t>(element)];
  }
  return result;
}

bool JsonReader::has(std::string_view key) const noexcept { return value_ != nullptr && value_->find(key) != nullptr; }

// from_chars takes what JSON calls a number and more; that the text is a JSON number is known from parsing.
template <class T>
Result<T> JsonReader::parsed(std::string_view expected) const {
  if (error_) return *error_;
  if (!value_->is(Json::Kind::number)) return wrong(expected);
  const std::string& text = value_->number();
  T number{};
  const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (reason != std::errc() || end != text.data() + text.size()) return wrong(expected);
  return number;
}

Result<bool> JsonReader::boolean() const {
  if (error_) return *error_;
  if (!value_->is(Json::Kind::boolean)) return wrong("true or false");
  return value_->boolean();
}

Result<std::int64_t> JsonReader::integer(std::int64_t low, std::int64_t high) const {
  const std::string expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  Result<std::int64_t> number = parsed<std::int64_t>(expected);
  if (number && (number.value() < low || number.value() > high)) return wrong(expected);
  return number;
}

Result<std::uint64_t> JsonReader::unsigned_integer() const {
  return parsed<std::uint64_t>("a whole number from 0 to 18446744073709551615");
}

Result<float> JsonReader::float32() const { return parsed<float>("a number in the range of a 32-bit float"); }

Result<double> JsonReader::float64() const { return parsed<double>("a number in the range of a 64-bit float"); }

Result<std::string> JsonReader::string() const {
  if (error_) return *error_;
  if (!value_->is(Json::Kind::string)) return wrong("a string");
  return value_->string();
}

Result<std::size_t> JsonReader::choice(std::span<const std::string_view> names) const {
  if (error_) return *error_;
  std::string expected = "one of";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (value_->is(Json::Kind::string) && value_->string() == names[i]) return i;
    expected += (i == 0 ? " " : ", ") + quoted(names[i]);
  }
  return wrong(expected);
}

Result<Shape> JsonReader::shape() const {
  const Result<Index> rank = size();
  if (!rank) return rank.error();
  if (rank.value() > kMaxRank) return error("has " + std::to_string(rank.value()) + " dimensions; at most 6 are supported");
  std::array<Index, kMaxRank> dims{};
  for (Index axis = 0; axis < rank.value(); ++axis) {
    const Result<std::int64_t> dim = (*this)[axis].integer(0, PTRDIFF_MAX);
    if (!dim) return dim.error();
    dims[static_cast<std::size_t>(axis)] = static_cast<Index>(dim.value());
  }
  Result<Shape> shape = Shape::make(std::span<const Index>(dims.data(), static_cast<std::size_t>(rank.value())));
  if (!shape) return error("is not a shape: " + shape.error().message());
  return shape;
}

Result<Index> JsonReader::size() const {
  if (error_) return *error_;
  if (!value_->is(Json::Kind::array)) return wrong("an array");
  return static_cast<Index>(value_->elements().size());
}

Status JsonReader::only(std::initializer_list<std::string_view> keys) const {
  if (error_) return *error_;
  if (!value_->is(Json::Kind::object)) return wrong("an object");
  for (const Json::Member& member : value_->members()) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    std::string known;
    for (const std::string_view key : keys) known += (known.empty() ? "" : ", ") + quoted(key);
    return error("has the unknown member " + quoted(member.key, 60) + "; known are " + known);
  }
  return {};
}

}  // namespace vitro
