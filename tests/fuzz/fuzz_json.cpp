// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a JSON document. What is accepted must survive being printed and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vitro/core/text.hpp>
#include <vitro/models/json.hpp>
#include <vitro/models/json_reader.hpp>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_round_trip(const vitro::Json& json, int indent) {
  const std::string text = json.dump(indent);
  require(vitro::is_utf8(text));
  const vitro::Result<vitro::Json> again = vitro::Json::parse(text, "printed");
  // Indentation and escapes can take a document over the size limit; nothing else may be wrong with it.
  require(again.ok() ? again.value() == json : text.size() > vitro::Json::kMaxBytes);
}

// Asks every value for everything: each answer is a value or an error with a message.
void read_all(const vitro::JsonReader& reader, const vitro::Json& json) {
  const auto check = [](const auto& result) { require(result.ok() || !result.error().message().empty()); };
  check(reader.boolean());
  check(reader.integer(-10, 10));
  check(reader.unsigned_integer());
  check(reader.float32());
  check(reader.float64());
  check(reader.string());
  check(reader.shape());
  check(reader.size());
  check(reader.only({"name", "layers"}));
  if (json.is(vitro::Json::Kind::array)) {
    for (std::size_t i = 0; i < json.elements().size(); ++i) {
      read_all(reader[static_cast<vitro::Index>(i)], json.elements()[i]);
    }
  }
  if (json.is(vitro::Json::Kind::object)) {
    for (const vitro::Json::Member& member : json.members()) {
      require(reader.has(member.key));
      read_all(reader[member.key], member.value);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const vitro::Result<vitro::Json> result = vitro::Json::parse(text, "input");
  if (!result) {
    require(result.error().message().starts_with("\"input\""));
    return 0;
  }
  require(vitro::is_utf8(text));
  check_round_trip(result.value(), 2);
  check_round_trip(result.value(), 0);
  if (size < 4096) read_all(vitro::JsonReader(result.value(), "input"), result.value());
  return 0;
}
