// SPDX-License-Identifier: Apache-2.0
// Sealed documents: what they look like, and that nothing about them can be changed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vitro/models/sealed_json.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;

namespace {

const Json kDocument = Json::object({{"format", "test"}, {"version", 3}, {"list", Json::array({Json(1), Json(2)})}});

// The hash is that of the lines before it, by sha256sum: printf '{\n  "format": "test",\n  "version": 3,\n  "list": [1, 2]'
const std::string kText =
    "{\n  \"format\": \"test\",\n  \"version\": 3,\n  \"list\": [1, 2],\n"
    "  \"sha256\": \"c508ed912b196e8dcdb4cd3af8b62eac0fcfe2d9bb64af931d946e0c6627e192\"\n}\n";

ErrorCode refusal(const std::string& text) {
  const Result<Json> result = open_sealed_json(text, "file", "test", 3);
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().message(), ContainsSubstring("\"file\""));
  return result.error().code();
}

}  // namespace

TEST_CASE("A sealed document ends with the SHA-256 of everything before it, and opens as it was") {
  CHECK(seal_json(kDocument) == kText);
  CHECK(open_sealed_json(kText, "file", "test", 3).value() == kDocument);
}

TEST_CASE("White space, order, spelling and the last line break of a sealed document are as fixed as its values") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kText;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(refusal(with("[1, 2]", "[1, 3]")) == ErrorCode::corrupt);
  CHECK(refusal(with("[1, 2]", "[1,2]")) == ErrorCode::corrupt);
  CHECK(refusal(with("3,\n", "3,\r\n")) == ErrorCode::corrupt);
  CHECK(refusal(with("}\n", "}")) == ErrorCode::corrupt);
  CHECK(refusal(with("}\n", "}\n\n")) == ErrorCode::corrupt);
  CHECK(refusal(with("\"sha256\": \"", "\"sha256\": \"0")) == ErrorCode::corrupt);
  CHECK(refusal(kDocument.dump()) == ErrorCode::corrupt);
  CHECK(refusal(with("\"test\"", "\"rest\"")) == ErrorCode::format);
  CHECK(refusal(with("3,", "2,")) == ErrorCode::unsupported);
  CHECK(refusal("{\"format\": \"test\", \"version\": 3}") == ErrorCode::corrupt);
  CHECK(refusal("") == ErrorCode::format);
}

TEST_CASE("Every truncation and every flipped bit of a sealed document is found") {
  for (std::size_t size = 0; size < kText.size(); ++size) {
    REQUIRE_FALSE(open_sealed_json(kText.substr(0, size), "file", "test", 3).ok());
  }
  for (std::size_t bit = 0; bit < 8 * kText.size(); ++bit) {
    std::string text = kText;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    REQUIRE_FALSE(open_sealed_json(text, "file", "test", 3).ok());
  }
}
