// SPDX-License-Identifier: Apache-2.0
// JSON: what is legal is read and written back, what is not is an error at the right place.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <vitro/models/json.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Json;

namespace {

Json parse(std::string_view text) { return Json::parse(text, "test").value(); }

// The message for a text that must be refused, without the origin.
std::string complaint(std::string_view text) {
  const vitro::Result<Json> result = Json::parse(text, "dir/model.json");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::format);
  const std::string& message = result.error().message();
  const std::string origin = "\"dir/model.json\", ";
  REQUIRE(message.substr(0, origin.size()) == origin);
  return message.substr(origin.size());
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("each kind of value is read") {
  CHECK(parse("null").is(Json::Kind::null));
  CHECK(parse("true").boolean());
  CHECK_FALSE(parse(" false ").boolean());
  CHECK(parse("-12.5e+3").number() == "-12.5e+3");
  CHECK(parse("\"text\"").string() == "text");
  CHECK(parse("[1, [2], {}]").elements().size() == 3);
  const Json object = parse("\t{\"b\": 1,\r\n \"a\": {\"c\": []}}\n");
  REQUIRE(object.members().size() == 2);
  CHECK(object.members()[0].key == "b");  // in the order of the text
  CHECK(object.members()[1].key == "a");
  REQUIRE(object.find("a") != nullptr);
  CHECK(object.find("a")->find("c")->is(Json::Kind::array));
  CHECK(object.find("d") == nullptr);
  CHECK(parse("[]").find("a") == nullptr);
}

TEST_CASE("strings are unescaped, surrogate pairs included") {
  CHECK(parse(R"("\" \\ \/ \b \f \n \r \t")").string() == "\" \\ / \b \f \n \r \t");
  CHECK(parse(R"("\u0041\u00e4\u20AC\ud83d\uDE00")").string() == "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(parse(R"("\ud800\udc00\udbff\udfff")").string() == "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  CHECK(parse(R"("\u0000")").string() == std::string(1, '\0'));
  CHECK(parse("\"\xF0\x9F\x98\x80\"").string() == "\xF0\x9F\x98\x80");
}

TEST_CASE("a number keeps the text it was written with") {
  for (const char* text : {"0", "-0", "7", "-7", "10", "0.5", "1e9", "1E-9", "0.1e+05", "18446744073709551616", "1e999",
                           "3.14159265358979323846264338327950288"}) {
    CHECK(parse(text).number() == text);
    CHECK(parse(text).dump() == text);
  }
}

TEST_CASE("every error says where it is, what was expected and what is there") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1, column 1: expected a value, found the end of the text"},
      {"  \n ", "line 2, column 2: expected a value, found the end of the text"},
      {"x", "line 1, column 1: expected a value, found \"x\""},
      {"nul", "line 1, column 1: expected a value, found \"n\""},
      {"True", "line 1, column 1: expected a value, found \"T\""},
      {"'a'", "line 1, column 1: expected a value, found \"'\""},
      {"// c\n1", "line 1, column 1: expected a value, found \"/\""},
      {"NaN", "line 1, column 1: expected a value, found \"N\""},
      {"+1", "line 1, column 1: expected a value, found \"+\""},
      {".5", "line 1, column 1: expected a value, found \".\""},
      {"-", "line 1, column 2: expected a digit, found the end of the text"},
      {"-x", "line 1, column 2: expected a digit, found \"x\""},
      {"1.", "line 1, column 3: expected a digit, found the end of the text"},
      {"1.e3", "line 1, column 3: expected a digit, found \"e\""},
      {"1e", "line 1, column 3: expected a digit, found the end of the text"},
      {"1e+-2", "line 1, column 4: expected a digit, found \"-\""},
      {"01", "line 1, column 2: a number must not begin with a zero"},
      {"-00", "line 1, column 3: a number must not begin with a zero"},
      {"1 2", "line 1, column 3: expected nothing more after the document, found \"2\""},
      {"1x", "line 1, column 2: expected nothing more after the document, found \"x\""},
      {"{} ]", "line 1, column 4: expected nothing more after the document, found \"]\""},
      {"[1, 2", "line 1, column 6: expected ',' or ']' after an element, found the end of the text"},
      {"[1 2]", "line 1, column 4: expected ',' or ']' after an element, found \"2\""},
      {"[1,]", "line 1, column 4: expected a value, found \"]\""},
      {"[,1]", "line 1, column 2: expected a value, found \",\""},
      {"[}", "line 1, column 2: expected a value, found \"}\""},
      {"{\"a\": 1,}", "line 1, column 9: expected a key in double quotes, found \"}\""},
      {"{a: 1}", "line 1, column 2: expected a key in double quotes, found \"a\""},
      {"{1: 1}", "line 1, column 2: expected a key in double quotes, found \"1\""},
      {"{\"a\" 1}", "line 1, column 6: expected ':' after the key \"a\", found \"1\""},
      {"{\"a\": }", "line 1, column 7: expected a value, found \"}\""},
      {"{\"a\": 1 \"b\": 2}", "line 1, column 9: expected ',' or '}' after a member, found \"\\\"\""},
      {"{\n  \"a\": 1,\n  \"b\": 2,\n  \"a\": 3\n}", "line 4, column 3: the key \"a\" is in this object twice"},
      {"{\"a\": 1, \"\\u0061\": 2}", "line 1, column 10: the key \"a\" is in this object twice"},
      {"\"abc", "line 1, column 5: expected '\"' at the end of a string, found the end of the text"},
      {"\"a\nb\"", "line 1, column 3: the control character \"\\n\" in a string must be escaped"},
      {"\"a\x1f\"", "line 1, column 3: the control character \"\\x1f\" in a string must be escaped"},
      {std::string("\"a\0\"", 4), "line 1, column 3: the control character \"\\x00\" in a string must be escaped"},
      {"\"\\x\"", "line 1, column 3: expected one of \" \\ / b f n r t u after a backslash, found \"x\""},
      {"\"\\", "line 1, column 3: expected one of \" \\ / b f n r t u after a backslash, found the end of the text"},
      {"\"\\u12\"", "line 1, column 6: expected four hexadecimal digits after \\u, found \"\\\"\""},
      {"\"\\u12g4\"", "line 1, column 6: expected four hexadecimal digits after \\u, found \"g\""},
      {"\"\\ud800\"", "line 1, column 2: the escape \"\\\\ud800\" is half of a surrogate pair"},
      {"\"\\ud800x\"", "line 1, column 2: the escape \"\\\\ud800\" is half of a surrogate pair"},
      {"\"\\ud800\\u0041\"", "line 1, column 2: the escape \"\\\\ud800\" is half of a surrogate pair"},
      {"\"\\ud800\\udbff\"", "line 1, column 2: the escape \"\\\\ud800\" is half of a surrogate pair"},
      {"\"\\udc00\\ud800\"", "line 1, column 2: the escape \"\\\\udc00\" is half of a surrogate pair"},
      {"\"a\xFF\"", "line 1, column 3: the byte \"\\xff\" in a string does not belong to a UTF-8 character"},
      {"\"\xC0\x80\"", "line 1, column 2: the byte \"\\xc0\" in a string does not belong to a UTF-8 character"},
      {"\"\xED\xA0\x80\"", "line 1, column 2: the byte \"\\xed\" in a string does not belong to a UTF-8 character"},
      {"\"\xE2\x82", "line 1, column 2: the byte \"\\xe2\" in a string does not belong to a UTF-8 character"},
      {"\xEF\xBB\xBF{}", "line 1, column 1: expected a value, found \"\\xef\\xbb\\xbf\""},
      {std::string("1\0", 2), "line 1, column 2: expected nothing more after the document, found \"\\x00\""},
      {"[\"\xC3\xA4\xC3\xB6\xC3\xBC\", x]", "line 1, column 9: expected a value, found \"x\""},  // columns count characters
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK_THAT(complaint(text), Catch::Matchers::StartsWith(expected));
  }
}

TEST_CASE("nesting is legal up to 64 levels") {
  CHECK(Json::parse(repeated("[", 64) + repeated("]", 64), "x").ok());
  CHECK_THAT(complaint(repeated("[", 65) + repeated("]", 65)),
             ContainsSubstring("column 65: arrays and objects are nested deeper than 64"));
  CHECK(Json::parse(repeated("{\"a\":", 63) + "{}" + repeated("}", 63), "x").ok());
  CHECK_THAT(complaint(repeated("{\"a\":[", 1000000 / 6)), ContainsSubstring("nested deeper"));
}

TEST_CASE("a document is legal up to 4 MiB") {
  const std::string largest = "\"" + std::string((4 << 20) - 2, 'a') + "\"";
  CHECK(Json::parse(largest, "x").ok());
  const vitro::Error error = Json::parse(largest + " ", "big.json").error();
  CHECK(error.code() == ErrorCode::format);
  CHECK_THAT(error.message(),
             ContainsSubstring("\"big.json\"") && ContainsSubstring("4194305") && ContainsSubstring("4194304"));
}

TEST_CASE("an object with very many members is read without delay") {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 200000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  CHECK(parse(text + "}").members().size() == 200001);
  CHECK_THAT(complaint(text + ", \"k77\": 1}"), ContainsSubstring("the key \"k77\" is in this object twice"));
}

TEST_CASE("every beginning of a document is refused, and every one with a byte more") {
  const std::string text = R"({"a": [1.5e-3, true, null, "\u00e4\n"], "b": {"c": false}})";
  REQUIRE(Json::parse(text, "x").ok());
  for (std::size_t size = 0; size < text.size(); ++size) CHECK_FALSE(Json::parse(text.substr(0, size), "x").ok());
  for (const char c : std::string("]},:\"0atfn\\")) CHECK_FALSE(Json::parse(text + c, "x").ok());
}

TEST_CASE("a document is printed for people: an indent a level, plain arrays on one line") {
  Json layer = Json::object();
  layer.set("kind", "conv2d");
  layer.set("kernel", Json::array({5, 5, 1, 6}));
  layer.set("bias", true);
  Json json = Json::object();
  json.set("name", "lenet5");
  json.set("layers", Json::array({layer, Json::object(), Json::array()}));
  json.set("note", Json());
  json.set("rate", 0.01F);
  CHECK(json.dump() == R"({
  "name": "lenet5",
  "layers": [
    {
      "kind": "conv2d",
      "kernel": [5, 5, 1, 6],
      "bias": true
    },
    {},
    []
  ],
  "note": null,
  "rate": 0.01
})");
  CHECK(json.dump(0) == R"({"name": "lenet5", "layers": [{"kind": "conv2d", "kernel": [5, 5, 1, 6], "bias": true}, {}, []], )"
                        R"("note": null, "rate": 0.01})");
  CHECK(parse(json.dump()) == json);
  CHECK(parse(json.dump(0)) == json);
}

TEST_CASE("strings are escaped so that they are read back, and bytes that are no text become the replacement character") {
  const std::string hard = std::string("\0\x01\x1F\x7F", 4) + "\"\\/\b\f\n\r\t\xC3\xA4\xF0\x9F\x98\x80";
  CHECK(Json(hard).dump() == "\"\\u0000\\u0001\\u001f\x7F\\\"\\\\/\\u0008\\u000c\\n\\r\\t\xC3\xA4\xF0\x9F\x98\x80\"");
  CHECK(parse(Json(hard).dump()).string() == hard);
  CHECK(Json("a\xFF\xC3").dump() == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(Json::object({{"k\n", 1}}).dump(0) == "{\"k\\n\": 1}");
}

TEST_CASE("whole numbers are written in full") {
  CHECK(Json(0).dump() == "0");
  CHECK(Json(std::numeric_limits<std::int64_t>::min()).dump() == "-9223372036854775808");
  CHECK(Json(std::numeric_limits<std::uint64_t>::max()).dump() == "18446744073709551615");
  CHECK(Json(std::uint8_t{200}).dump() == "200");
  CHECK(Json(std::size_t{3}).dump() == "3");
  CHECK(Json(true).dump() == "true");
}

TEST_CASE("floats are written in the fewest digits that read back to the same bits") {
  CHECK(Json(0.1F).dump() == "0.1");
  CHECK(Json(0.1).dump() == "0.1");
  CHECK(Json(-0.0F).dump() == "-0");
  CHECK(Json(16777216.0F).dump() == "16777216");
  CHECK(Json(std::numeric_limits<float>::infinity()).is(Json::Kind::null));
  CHECK(Json(-std::numeric_limits<double>::infinity()).is(Json::Kind::null));
  CHECK(Json(std::numeric_limits<float>::quiet_NaN()).dump() == "null");
  std::mt19937_64 engine(3);
  for (int round = 0; round < 20000; ++round) {
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    const auto wide = std::bit_cast<double>(engine());
    if (!std::isfinite(single) || !std::isfinite(wide)) continue;
    // strtod is correctly rounded in the C library of this test's machines and not the code under test.
    REQUIRE(std::strtof(Json(single).number().c_str(), nullptr) == single);
    REQUIRE(std::strtod(Json(wide).number().c_str(), nullptr) == wide);
    REQUIRE(parse(Json(wide).dump()) == Json(wide));
  }
}

TEST_CASE("a German locale changes nothing") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const char* german = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE"}) {
    if (german == nullptr) german = std::setlocale(LC_ALL, name);
  }
  if (german == nullptr) SKIP("no German locale is installed");
  CHECK(std::localeconv()->decimal_point == std::string(","));
  CHECK(Json(0.5).dump() == "0.5");
  CHECK(parse("0.5").number() == "0.5");
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("a member that is set again keeps its place") {
  Json json = Json::object({{"a", 1}, {"b", 2}});
  json.set("a", "new");
  json.set("c", 3);
  CHECK(json.dump(0) == R"({"a": "new", "b": 2, "c": 3})");
  Json array = Json::array();
  array.push(1);
  array.push(Json::array({2}));
  CHECK(array.dump(0) == "[1, [2]]");
}

TEST_CASE("values are equal if kinds, texts and order are") {
  CHECK(parse("[1, {\"a\": null}]") == parse("[1,{\"a\":null}]"));
  CHECK_FALSE(parse("1") == parse("1.0"));
  CHECK_FALSE(parse("1") == parse("\"1\""));
  CHECK_FALSE(parse("{\"a\": 1, \"b\": 2}") == parse("{\"b\": 2, \"a\": 1}"));
}
