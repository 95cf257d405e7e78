// SPDX-License-Identifier: Apache-2.0
// JsonReader: values come out in their types, and every error names the place.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vitro/models/json_reader.hpp>

using vitro::Json;
using vitro::JsonReader;
using vitro::Shape;

namespace {

const Json& document() {
  static const Json json = Json::parse(R"({
    "name": "lenet5",
    "seed": 18446744073709551615,
    "train": true,
    "layers": [
      {"kind": "conv2d", "filters": [5, 5, 1, 6], "rate": 0.1},
      {"kind": "pool", "size": 2.5, "huge": 1e999, "tiny": 1e-999, "dims": [1, -1], "wide": [1,1,1,1,1,1,1],
       "large": [4611686018427387904, 4]}
    ]
  })",
                                       "m")
                               .value();
  return json;
}

JsonReader root() { return JsonReader(document(), "digits/model.json"); }

template <class T>
std::string message(const vitro::Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == vitro::ErrorCode::format);
  const std::string& text = result.error().message();
  const std::string origin = "\"digits/model.json\": ";
  REQUIRE(text.substr(0, origin.size()) == origin);
  return text.substr(origin.size());
}

}  // namespace

TEST_CASE("values are read in their types") {
  CHECK(root()["name"].string().value() == "lenet5");
  CHECK(root()["train"].boolean().value());
  CHECK(root()["seed"].unsigned_integer().value() == std::numeric_limits<std::uint64_t>::max());
  CHECK(root()["layers"].size().value() == 2);
  CHECK(root()["layers"][0]["filters"].shape().value() == Shape({5, 5, 1, 6}));
  CHECK(root()["layers"][0]["filters"][3].integer(1, 6).value() == 6);
  CHECK(root()["layers"][0]["rate"].float32().value() == 0.1F);
  CHECK(root()["layers"][0]["rate"].float64().value() == 0.1);
  CHECK(root()["layers"][1]["size"].float32().value() == 2.5F);
}

TEST_CASE("the extremes of whole numbers are read, and nothing beyond") {
  const Json json =
      Json::parse("[-9223372036854775808, 9223372036854775807, 9223372036854775808, -1, 18446744073709551616, 1.0, -0]", "m")
          .value();
  const JsonReader reader(json, "digits/model.json");
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  CHECK(reader[0].integer(kLow, kHigh).value() == kLow);
  CHECK(reader[1].integer(kLow, kHigh).value() == kHigh);
  CHECK(message(reader[2].integer(kLow, kHigh)) ==
        "[2] must be a whole number from -9223372036854775808 to 9223372036854775807, found 9223372036854775808");
  CHECK(message(reader[3].unsigned_integer()) == "[3] must be a whole number from 0 to 18446744073709551615, found -1");
  CHECK_FALSE(reader[4].unsigned_integer());
  CHECK(message(reader[5].integer(0, 5)) == "[5] must be a whole number from 0 to 5, found 1.0");
  CHECK(reader[6].integer(0, 5).value() == 0);
}

TEST_CASE("a member that is missing is named with its path, however the chain goes on") {
  CHECK(message(root()["optimizer"].string()) == "optimizer is missing");
  CHECK(message(root()["layers"][1]["kernel"][0].integer(1, 9)) == "layers[1].kernel is missing");
  CHECK(message(root()["layers"][2]["kind"].string()) == "layers[2] is missing: the array has 2 elements");
  CHECK(message(root()["layers"][-1].size()) == "layers[-1] is missing: the array has 2 elements");
}

TEST_CASE("a value of the wrong kind is named with what it should be and what it is") {
  CHECK(message(root()["name"]["first"].string()) == "name must be an object with the member \"first\", found \"lenet5\"");
  CHECK(message(root()[0].string()) == "the document must be an array, found an object");
  CHECK(message(root()["name"].boolean()) == "name must be true or false, found \"lenet5\"");
  CHECK(message(root()["train"].string()) == "train must be a string, found true");
  CHECK(message(root()["layers"].float64()) == "layers must be a number in the range of a 64-bit float, found an array");
  CHECK(message(root()["name"].size()) == "name must be an array, found \"lenet5\"");
  CHECK(message(root()["layers"][0]["filters"][0].integer(6, 9)) ==
        "layers[0].filters[0] must be a whole number from 6 to 9, found 5");
}

TEST_CASE("numbers out of a float's range are errors") {
  CHECK(message(root()["layers"][1]["huge"].float64()) ==
        "layers[1].huge must be a number in the range of a 64-bit float, found 1e999");
  CHECK_FALSE(root()["layers"][1]["huge"].float32());
  CHECK_FALSE(root()["layers"][1]["tiny"].float32());
  const Json json = Json::parse("[1e39, 3.4028235e38, 1e-45]", "m").value();
  const JsonReader reader(json, "x");
  CHECK_FALSE(reader[0].float32());
  CHECK(reader[1].float32().value() == std::numeric_limits<float>::max());
  CHECK(reader[2].float32().value() == std::numeric_limits<float>::denorm_min());
}

TEST_CASE("shapes are checked like any other") {
  CHECK(message(root()["layers"][1]["dims"].shape()) ==
        "layers[1].dims[1] must be a whole number from 0 to 9223372036854775807, found -1");
  CHECK(message(root()["layers"][1]["wide"].shape()) == "layers[1].wide has 7 dimensions; at most 6 are supported");
  CHECK(message(root()["layers"][1]["large"].shape()).find("layers[1].large is not a shape: ") == 0);
}

TEST_CASE("a choice gives the index of its name, and the error lists the names") {
  constexpr std::array<std::string_view, 2> kKinds = {"conv2d", "linear"};
  CHECK(root()["layers"][0]["kind"].choice(kKinds).value() == 0);
  CHECK(message(root()["layers"][1]["kind"].choice(kKinds)) ==
        "layers[1].kind must be one of \"conv2d\", \"linear\", found \"pool\"");
  CHECK_FALSE(root()["train"].choice(kKinds));
}

TEST_CASE("members may be left out, but none may be unknown") {
  CHECK(root().has("name"));
  CHECK_FALSE(root().has("names"));
  CHECK_FALSE(root()["name"].has("name"));
  CHECK_FALSE(root()["nothing"].has("name"));
  CHECK(root().only({"name", "seed", "train", "layers", "more"}));
  CHECK(message(root().only({"name", "seed", "layers"})) ==
        "the document has the unknown member \"train\"; known are \"name\", \"seed\", \"layers\"");
  CHECK(message(root()["name"].only({"a"})) == "name must be an object, found \"lenet5\"");
}

TEST_CASE("a caller's own error is put at the same place") {
  CHECK(root()["layers"][0].error("does not fit the input").message() ==
        "\"digits/model.json\": layers[0] does not fit the input");
  CHECK(root()["nothing"].error("is odd").message() == "\"digits/model.json\": nothing is missing");
}

TEST_CASE("what a hostile document says is quoted and cut in messages") {
  const Json json = Json::parse(R"({"a\n": [")" + std::string(5000, 'x') + R"("]})", "m").value();
  const std::string text = message(JsonReader(json, "digits/model.json")["a\n"][0].integer(0, 1));
  CHECK(text.find("a\\n[0] must be") == 0);
  CHECK(text.size() < 200);
}
