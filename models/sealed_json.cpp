// SPDX-License-Identifier: Apache-2.0
// Sealing and its check, both over the bytes of the text: what a parser would overlook is found as well.
#include "sealed_json.hpp"

#include "../core/text.hpp"
#include "json_reader.hpp"
#include "sha256.hpp"

#include <array>

namespace vitro {
namespace {

constexpr std::string_view kEnd = "\n}";

std::string hash_of(std::string_view text) { return to_hex(sha256(std::as_bytes(std::span(text)))); }

// What follows the text that is hashed.
std::string seal_for(std::string_view hashed) { return ",\n  \"sha256\": \"" + hash_of(hashed) + "\"\n}\n"; }

}  // namespace

std::string seal_json(const Json& object) {
  std::string text = object.dump();
  text.resize(text.size() - kEnd.size());
  return text + seal_for(text);
}

Result<Json> open_sealed_json(std::string_view text, std::string_view origin, std::string_view format, std::int64_t version) {
  Result<Json> document = Json::parse(text, origin);
  if (!document) return document;
  const JsonReader reader(document.value(), origin);
  if (Result<std::size_t> named = reader["format"].choice(std::array{format}); !named) return std::move(named).error();
  const Result<std::int64_t> found = reader["version"].integer(0, INT64_MAX);
  if (!found) return found.error();
  if (found.value() != version) {
    return Error(ErrorCode::unsupported, quoted(origin) + ": has version " + std::to_string(found.value()) +
                                             " of its format; this program reads and writes version " +
                                             std::to_string(version));
  }
  const std::size_t seal_size = seal_for("").size();
  const std::string_view hashed = text.substr(0, text.size() - std::min(text.size(), seal_size));
  if (text.substr(hashed.size()) != seal_for(hashed)) {
    return Error(ErrorCode::corrupt, quoted(origin) +
                                         ": was changed after it was written: it must end with the member sha256 \"" +
                                         hash_of(hashed) + "\" and a line break, as the text before it has that hash");
  }
  std::vector<Json::Member> members = document.value().members();
  members.pop_back();
  return Json::object(std::move(members));
}

}  // namespace vitro
