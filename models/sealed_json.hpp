// SPDX-License-Identifier: Apache-2.0
// Internal: JSON files that say what they are and find every change to themselves, to the last bit.
#pragma once

#include "json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace vitro {

// A sealed document is an object printed by Json::dump() with a line break at its end. Its first members are "format" and
// "version", its last is "sha256": the hex SHA-256 of all bytes before the comma in front of it. There is one way to write it,
// so that white space, the order of members and the last line break are as fixed as the values.

// The text of the file for an object without "sha256", which is not empty.
std::string seal_json(const Json& object);

// Parses the file and takes "sha256" away. `origin` names the file in errors, which are, in this order: format (no JSON
// document, or another "format"), unsupported (another version), corrupt (not sealed, or changed since).
Result<Json> open_sealed_json(std::string_view text, std::string_view origin, std::string_view format, std::int64_t version);

}  // namespace vitro
