// SPDX-License-Identifier: Apache-2.0
// GzipReader: members, pieces, checksums, and streams that end where they should not.
#include "data_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/data/gzip.hpp>

namespace {

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::GzipReader;

// `gzip -9n` of the twelve bytes "glass, glass" (GNU gzip 1.12).
const Bytes kGlass = bytes({0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0xcf, 0x49, 0x2c, 0x2e,
                            0xd6, 0x51, 0x48, 0x07, 0x51, 0x00, 0xa6, 0x5f, 0x5d, 0x79, 0x0c, 0x00, 0x00, 0x00});

void need_zlib() {
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
}

// All that a reader gives in pieces of `piece` bytes, or its error.
vitro::Result<Bytes> unfold(const Bytes& compressed, std::size_t piece = 4096) {
  GzipReader reader(compressed, "x.gz");
  Bytes all;
  for (;;) {
    Bytes buffer(piece);
    const vitro::Result<std::size_t> got = reader.read(buffer);
    if (!got) return got.error();
    all = all + prefix(buffer, got.value());
    if (got.value() < piece) return all;
  }
}

}  // namespace

TEST_CASE("gzip is recognised by its first two bytes") {
  CHECK(vitro::is_gzip(kGlass));
  CHECK(vitro::is_gzip(bytes({0x1f, 0x8b})));
  CHECK_FALSE(vitro::is_gzip(bytes({0x1f})));
  CHECK_FALSE(vitro::is_gzip(bytes({0x1f, 0x8c, 8})));
  CHECK_FALSE(vitro::is_gzip({}));
}

TEST_CASE("a file made by gzip(1) unfolds to what went in") {
  need_zlib();
  const char text[] = "glass, glass";
  const Bytes all = unfold(kGlass).value();
  CHECK(std::string(reinterpret_cast<const char*>(all.data()), all.size()) == text);
}

TEST_CASE("the size of the pieces does not matter") {
  need_zlib();
  const Bytes data = pattern(70000);  // more than one stored block
  const Bytes compressed = gzip_member(data);
  for (const std::size_t piece : {1UL, 7UL, 65535UL, 69999UL, 70000UL, 70001UL, 200000UL}) {
    CAPTURE(piece);
    CHECK(unfold(compressed, piece).value() == data);
  }
}

TEST_CASE("members follow one another, empty ones among them") {
  need_zlib();
  const Bytes a = pattern(100);
  const Bytes b = pattern(33);
  const Bytes empty = gzip_member({});
  CHECK(unfold(gzip_member(a) + empty + kGlass + empty + empty + gzip_member(b)).value() == a + unfold(kGlass).value() + b);
  CHECK(unfold(empty).value().empty());
}

TEST_CASE("a stream cut anywhere is an error and never a short result") {
  need_zlib();
  const Bytes whole = gzip_member(pattern(40)) + kGlass;
  const std::size_t between = whole.size() - kGlass.size();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const vitro::Result<Bytes> result = unfold(prefix(whole, size));
    if (size == between) {
      CHECK(result.ok());  // exactly one member
      continue;
    }
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code() == ErrorCode::format);
    CHECK_THAT(result.error().message(), ContainsSubstring("x.gz"));
  }
  CHECK_THAT(unfold(prefix(whole, 30)).error().message(), ContainsSubstring("stops early"));
}

TEST_CASE("a wrong byte in the data, the checksum or the length is found") {
  need_zlib();
  const Bytes good = gzip_member(pattern(40));
  // Data begin after 10 bytes of gzip header and 5 of block header; the CRC and the length are the last 8 bytes.
  for (const std::size_t at : {std::size_t{15}, std::size_t{54}, good.size() - 8, good.size() - 4, good.size() - 1}) {
    CAPTURE(at);
    Bytes bad = good;
    bad[at] ^= std::byte{0x10};
    const vitro::Result<Bytes> result = unfold(bad);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code() == ErrorCode::corrupt);
  }
}

TEST_CASE("a wrong byte in the header or an impossible block is found") {
  need_zlib();
  for (const std::size_t at : {2UL, 3UL, 10UL, 13UL}) {  // method, reserved flags, block type, complement of the block length
    CAPTURE(at);
    Bytes bad = gzip_member(pattern(40));
    bad[at] = std::byte{0xff};
    CHECK(unfold(bad).error().code() == ErrorCode::corrupt);
  }
}

TEST_CASE("bytes after the last member are an error, zeros too") {
  need_zlib();
  for (const Bytes& tail : {bytes({0}), bytes({'x', 'y'}), bytes({0x1f}), bytes({0, 0, 0, 0, 0, 0, 0, 0})}) {
    const vitro::Result<Bytes> result = unfold(kGlass + tail);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code() == ErrorCode::format);
    CHECK_THAT(result.error().message(), ContainsSubstring(std::to_string(tail.size()) + " bytes after its last member"));
  }
}

TEST_CASE("what is not gzip is refused, zlib's own format and nothing at all among it") {
  need_zlib();
  CHECK(unfold(bytes({0x78, 0x9c, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01})).error().code() == ErrorCode::format);
  CHECK(unfold({}).error().code() == ErrorCode::format);
}

TEST_CASE("a reader repeats its error") {
  need_zlib();
  const Bytes cut = prefix(kGlass, kGlass.size() - 1);
  GzipReader reader(cut, "x.gz");
  Bytes buffer(100);
  const vitro::Result<std::size_t> first = reader.read(buffer);
  const vitro::Result<std::size_t> second = reader.read(buffer);
  REQUIRE_FALSE(first.ok());
  REQUIRE_FALSE(second.ok());
  CHECK(first.error().message() == second.error().message());
}

TEST_CASE("a reader goes no further than it is asked") {
  need_zlib();
  Bytes bad = gzip_member(pattern(1000));
  bad.back() ^= std::byte{1};
  GzipReader reader(bad, "x.gz");
  Bytes buffer(999);
  CHECK(reader.read(buffer).value() == 999);
  CHECK(reader.read({}).value() == 0);
  CHECK_FALSE(reader.read(buffer).ok());
}

TEST_CASE("a build without zlib says what to do") {
  if (vitro::gzip_available()) SKIP("this build has zlib");
  const vitro::Result<Bytes> result = unfold(kGlass);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::unsupported);
  CHECK_THAT(result.error().message(), ContainsSubstring("gunzip") && ContainsSubstring("VITRO_WITH_ZLIB"));
}
