// SPDX-License-Identifier: Apache-2.0
// Quoting for messages, and UTF-8 by brute force against the encoding's definition.
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vitro/core/text.hpp>

using vitro::quoted;

namespace {

// UTF-8 by its definition: 7, 11, 16 or 21 bits in 1, 2, 3 or 4 bytes.
std::string encoded(unsigned code) {
  const int tails = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kMarks[] = {0x00, 0xC0, 0xE0, 0xF0};
  std::string bytes(1, static_cast<char>(kMarks[tails] | code >> (6 * tails)));
  for (int tail = tails - 1; tail >= 0; --tail) bytes.push_back(static_cast<char>(0x80U | ((code >> (6 * tail)) & 0x3FU)));
  return bytes;
}

}  // namespace

TEST_CASE("decimal writes the shortest text that reads back") {
  CHECK(vitro::decimal(0.1f) == "0.1");
  CHECK(vitro::decimal(-3.0f) == "-3");
  CHECK(vitro::decimal(1e30f) == "1e+30");
  CHECK(vitro::decimal(16777217.0f) == "16777216");
}

TEST_CASE("quoted text is printable ASCII in double quotes") {
  CHECK(quoted("conv1.weight") == "\"conv1.weight\"");
  CHECK(quoted("") == "\"\"");
  CHECK(quoted("a\"b\\c") == R"("a\"b\\c")");
  CHECK(quoted("\n\r\t\x01\x7F\xC3\xA4") == R"("\n\r\t\x01\x7f\xc3\xa4")");
  CHECK(quoted(std::string_view("\0", 1)) == R"("\x00")");
  CHECK(vitro::escaped("a b\n") == "a b\\n");
}

TEST_CASE("quoted text is cut where it gets long, and says so") {
  CHECK(quoted("abcdef", 6) == "\"abcdef\"");
  CHECK(quoted("abcdefg", 6) == "\"abcdef\"...");
  CHECK(quoted(std::string(1000, 'x')).size() == 256 + 5);
}

TEST_CASE("a UTF-8 character is recognised exactly if some code point is encoded so") {
  // The encodings of all code points but the surrogates.
  std::set<std::string> valid;
  for (unsigned code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const std::string bytes = encoded(code);
    REQUIRE(vitro::utf8_length(bytes) == bytes.size());
    if (bytes.size() < 4) valid.insert(bytes);
  }
  // And no sequence of up to three bytes besides.
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0x70; second < 0xD0; ++second) {
      for (const unsigned third : {0x7FU, 0x80U, 0xA5U, 0xBFU, 0xC0U}) {
        std::string text(3, static_cast<char>(first));
        text[1] = static_cast<char>(second);
        text[2] = static_cast<char>(third);
        const std::size_t length = vitro::utf8_length(text);
        for (std::size_t size = 1; size <= 3; ++size) {
          if ((length == size) != (valid.count(text.substr(0, size)) == 1)) {
            CAPTURE(first, second, third, size);
            // Of a valid four-byte character no shorter start is valid either, so this is the whole truth for three bytes.
            FAIL("wrong length " << length);
          }
        }
      }
    }
  }
}

TEST_CASE("four-byte sequences that are overlong, too high or cut off are no characters") {
  CHECK(vitro::utf8_length("\xF0\x8F\xBF\xBF") == 0);
  CHECK(vitro::utf8_length("\xF4\x90\x80\x80") == 0);
  CHECK(vitro::utf8_length("\xF5\x80\x80\x80") == 0);
  CHECK(vitro::utf8_length("\xF0\x9F\x98") == 0);
  CHECK(vitro::utf8_length("\xF0\x9F\x98\x41") == 0);
  CHECK(vitro::utf8_length("") == 0);
}

TEST_CASE("text is UTF-8 if it is a sequence of characters") {
  CHECK(vitro::is_utf8(""));
  CHECK(vitro::is_utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"));
  CHECK_FALSE(vitro::is_utf8("gr\xFC\xDF"));
  CHECK_FALSE(vitro::is_utf8("cut \xC3"));
}
