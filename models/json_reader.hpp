// SPDX-License-Identifier: Apache-2.0
// Internal: walks into a document from outside and, where something is missing or wrong, says where.
#pragma once

#include "../core/shape.hpp"
#include "json.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vitro {

// A place in a document, or the first error met on the way to it: steps can be chained and the result tested once.
//   Result<Index> kernel = JsonReader(document, "digits/model.json")["layers"][2]["kernel"].integer(1, 1024);
//   "digits/model.json": layers[2].kernel must be a whole number from 1 to 1024, found "five"
// Looks at the document, which must outlive it. All errors have code format.
class JsonReader {
 public:
  JsonReader(const Json& document, std::string_view origin);

  // The member or element; an error if this is no object (array) or has none such.
  JsonReader operator[](std::string_view key) const;
  JsonReader operator[](Index element) const;
  // Whether this is an object with that member: for members that may be left out.
  bool has(std::string_view key) const noexcept;

  Result<bool> boolean() const;
  // A number without fraction and exponent.
  Result<std::int64_t> integer(std::int64_t low, std::int64_t high) const;
  Result<std::uint64_t> unsigned_integer() const;
  // Read to the nearest value of the type; one that is out of its range (1e999) is an error.
  Result<float> float32() const;
  Result<double> float64() const;
  Result<std::string> string() const;
  // Which of `names` the string here is, as an index into them; the error lists them.
  Result<std::size_t> choice(std::span<const std::string_view> names) const;
  // An array of dimensions.
  Result<Shape> shape() const;

  // The number of elements of the array here.
  Result<Index> size() const;
  // An error if this is no object or has a member that is not among `keys`: a misspelt option is never ignored.
  Status only(std::initializer_list<std::string_view> keys) const;

  // An error about this place, for checks of the caller: origin, path, then `what`, e.g. "must be smaller than the input".
  Error error(std::string_view what) const;

 private:
  JsonReader(const JsonReader& parent, const Json* value, std::string path);
  Error wrong(std::string_view expected) const;
  template <class T>
  Result<T> parsed(std::string_view expected) const;

  const Json* value_ = nullptr;  // null after an error
  std::string origin_;
  std::string path_;
  std::optional<Error> error_;
};

// Takes the results of a reader one after the other: the first error stays, and everything after it is skipped.
class JsonTaker {
 public:
  // Stores the value in `target`, converted to its type.
  template <class T, class U>
  void take(Result<U> result, T& target) {
    if (!status_) return;
    if (result) {
      target = static_cast<T>(std::move(result).value());
    } else {
      status_ = std::move(result).error();
    }
  }
  void check(Status status) {
    if (status_) status_ = std::move(status);
  }
  bool ok() const noexcept { return status_.ok(); }
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

}  // namespace vitro
