// SPDX-License-Identifier: Apache-2.0
// idx files: every promise of the format, and every way in which a file can break one.
#include "data_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/data/gzip.hpp>
#include <vitro/data/idx.hpp>

namespace {

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Shape;

struct Complaint {
  ErrorCode code;
  std::string message;
};

// The error for a file, which must be one and must name the file.
Complaint complaint(const Bytes& file) {
  const vitro::Result<vitro::ByteTensor> result = vitro::try_decode_idx(file, "some/file");
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().message(), ContainsSubstring("\"some/file\""));
  return {result.error().code(), result.error().message()};
}

void check_holds(const vitro::ByteTensor& tensor, const Bytes& data) {
  REQUIRE(tensor.span().size() == data.size());
  for (std::size_t i = 0; i < data.size(); ++i) REQUIRE(tensor.span()[i] == std::to_integer<std::uint8_t>(data[i]));
}

}  // namespace

TEST_CASE("a raw file of each rank is read in row-major order") {
  const Bytes data = pattern(120);
  const std::vector<std::pair<Bytes, Shape>> cases = {
      {idx_header({120}), Shape({120})},
      {idx_header({10, 12}), Shape({10, 12})},
      {idx_header({2, 3, 20}), Shape({2, 3, 20})},
      {idx_header({2, 3, 4, 5}), Shape({2, 3, 4, 5})},
      {idx_header({2, 1, 3, 4, 5}), Shape({2, 1, 3, 4, 5})},
      {idx_header({1, 2, 3, 4, 5, 1}), Shape({1, 2, 3, 4, 5, 1})},
  };
  for (const auto& [header, shape] : cases) {
    const vitro::ByteTensor tensor = vitro::try_decode_idx(header + data, "f").value();
    CHECK(tensor.shape() == shape);
    check_holds(tensor, data);
  }
}

TEST_CASE("dimensions are big-endian and use all four bytes") {
  const Bytes data = pattern(0x010203);
  const vitro::ByteTensor tensor = vitro::try_decode_idx(bytes({0, 0, 8, 1, 0, 1, 2, 3}) + data, "f").value();
  CHECK(tensor.shape() == Shape({66051}));
  check_holds(tensor, data);
  CHECK_THAT(complaint(bytes({0, 0, 8, 1, 4, 3, 2, 1})).message, ContainsSubstring("[67305985]"));
}

TEST_CASE("a gzip file gives what the raw file gives") {
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
  const Bytes data = pattern(150000);
  const Bytes raw = idx_header({150, 1000}) + data;
  check_holds(vitro::try_decode_idx(gzip_member(raw), "f").value(), data);
  // Members may split the file anywhere, the header too.
  for (const std::size_t cut : {1UL, 4UL, 11UL, 12UL, 13UL, 100000UL}) {
    CAPTURE(cut);
    const Bytes rest(raw.begin() + static_cast<std::ptrdiff_t>(cut), raw.end());
    check_holds(vitro::try_decode_idx(gzip_member(prefix(raw, cut)) + gzip_member(rest), "f").value(), data);
  }
}

TEST_CASE("an empty dimension gives an empty tensor") {
  CHECK(vitro::try_decode_idx(idx_header({0}), "f").value().shape() == Shape({0}));
  CHECK(vitro::try_decode_idx(idx_header({0, 28, 28}), "f").value().shape() == Shape({0, 28, 28}));
  CHECK_THAT(complaint(idx_header({0}) + bytes({1})).message, ContainsSubstring("does not end"));
}

TEST_CASE("another magic is named, with the bytes that stand there") {
  const Complaint html = complaint(bytes({'<', '!', 'd', 'o', 'c', 't', 'y', 'p', 'e'}));
  CHECK(html.code == ErrorCode::format);
  CHECK_THAT(html.message, ContainsSubstring("3c 21 64 6f"));
  CHECK(complaint(bytes({0, 1, 8, 1, 0, 0, 0, 0})).code == ErrorCode::format);
  CHECK(complaint(bytes({1, 0, 8, 1, 0, 0, 0, 0})).code == ErrorCode::format);
}

TEST_CASE("the magic's third byte is the element type") {
  for (const int type : {0x09, 0x0b, 0x0c, 0x0d, 0x0e}) {
    CAPTURE(type);
    const Complaint other = complaint(bytes({0, 0, type, 1, 0, 0, 0, 0}));
    CHECK(other.code == ErrorCode::unsupported);
    CHECK_THAT(other.message, ContainsSubstring("08 (unsigned byte)"));
  }
  CHECK_THAT(complaint(bytes({0, 0, 0x0d, 1, 0, 0, 0, 0})).message, ContainsSubstring("(float)"));
  for (const int type : {0, 7, 0x0a, 0x0f, 0xff})
    CHECK(complaint(bytes({0, 0, type, 1, 0, 0, 0, 0})).code == ErrorCode::format);
}

TEST_CASE("the magic's fourth byte is the rank, from 1 to 6") {
  for (const int rank : {0, 7, 255}) {
    const Complaint wrong = complaint(bytes({0, 0, 8, rank}) + Bytes(1100));
    CHECK(wrong.code == ErrorCode::format);
    CHECK_THAT(wrong.message, ContainsSubstring("rank " + std::to_string(rank)));
  }
}

TEST_CASE("a file cut anywhere is an error") {
  const Bytes raw = idx_header({3, 2, 2}) + pattern(12);
  for (std::size_t size = 0; size < raw.size(); ++size) {
    CAPTURE(size);
    CHECK(complaint(prefix(raw, size)).code == ErrorCode::format);
  }
  CHECK_THAT(complaint(prefix(raw, 10)).message, ContainsSubstring("10 bytes") && ContainsSubstring("needs 16"));
  CHECK_THAT(complaint(prefix(raw, 27)).message, ContainsSubstring("[3, 2, 2], 12 bytes") && ContainsSubstring("11"));
}

TEST_CASE("a gzip file cut anywhere is an error and never a short tensor") {
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
  const Bytes raw = idx_header({3, 2, 2}) + pattern(12);
  const Bytes whole = gzip_member(raw);
  REQUIRE(vitro::try_decode_idx(whole, "f").ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    complaint(prefix(whole, size));
  }
  // A complete stream around an incomplete file.
  CHECK_THAT(complaint(gzip_member(prefix(raw, 27))).message,
             ContainsSubstring("[3, 2, 2], 12 bytes") && ContainsSubstring("but 11"));
}

TEST_CASE("bytes left over are an error") {
  const Bytes raw = idx_header({2, 2}) + pattern(4);
  CHECK(complaint(raw + bytes({0})).code == ErrorCode::format);
  CHECK_THAT(complaint(raw + pattern(100)).message, ContainsSubstring("[2, 2], 4 bytes") && ContainsSubstring("does not end"));
  if (vitro::gzip_available()) {
    CHECK_THAT(complaint(gzip_member(raw + bytes({0}))).message, ContainsSubstring("does not end"));
    CHECK_THAT(complaint(gzip_member(raw) + gzip_member(bytes({7}))).message, ContainsSubstring("does not end"));
  }
}

TEST_CASE("decompression stops at the first byte that the header does not announce") {
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
  // The checksum at the end is wrong: who reads on complains about that instead.
  Bytes bomb = gzip_member(idx_header({4}) + Bytes(1000000));
  bomb[bomb.size() - 5] ^= std::byte{1};
  CHECK_THAT(complaint(bomb).message, ContainsSubstring("does not end"));
}

TEST_CASE("sizes that the file cannot hold are refused before memory is taken") {
  const Complaint raw = complaint(idx_header({1000, 1000, 1000}) + pattern(100));
  CHECK(raw.code == ErrorCode::format);
  CHECK_THAT(raw.message, ContainsSubstring("[1000, 1000, 1000], 1000000000 bytes") && ContainsSubstring("at most 100"));
  if (vitro::gzip_available()) {
    CHECK_THAT(complaint(gzip_member(idx_header({1000, 1000, 1000}) + pattern(100))).message, ContainsSubstring("at most"));
  }
  CHECK(complaint(idx_header({1025, 1024, 1024}) + pattern(100)).code == ErrorCode::invalid_argument);
}

TEST_CASE("dimensions whose product overflows are refused, a zero among them or not") {
  const std::uint32_t most = 0xffffffff;
  CHECK(complaint(idx_header({most, most, most})).code == ErrorCode::overflow);
  CHECK(complaint(idx_header({0, most, most, most})).code == ErrorCode::overflow);
  CHECK(complaint(idx_header({65536, 65536, 65536, 65536})).code == ErrorCode::overflow);  // 2^64, 0 if it wrapped
  CHECK_THAT(complaint(idx_header({most, most, 2})).message, ContainsSubstring("[4294967295, 4294967295, 2]"));
}

TEST_CASE("reading a file names its path and what the system says") {
  DataFolder folder;
  folder.write("good", idx_header({3}) + pattern(3));
  CHECK(vitro::try_read_idx(folder.path() + "/good").value().shape() == Shape({3}));

  const auto missing = vitro::try_read_idx(folder.path() + "/none");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::io);
  CHECK_THAT(missing.error().message(), ContainsSubstring(folder.path() + "/none"));

  const auto directory = vitro::try_read_idx(folder.path());
  REQUIRE_FALSE(directory.ok());
  CHECK(directory.error().code() == ErrorCode::io);

  folder.write("empty", {});
  CHECK(vitro::try_read_idx(folder.path() + "/empty").error().code() == ErrorCode::format);
}

#if defined(__cpp_exceptions)
TEST_CASE("the throwing form throws the same error") {
  try {
    (void)vitro::read_idx("/nowhere/at all");
    FAIL("no exception");
  } catch (const vitro::Error& error) {
    CHECK(error.message() == vitro::try_read_idx("/nowhere/at all").error().message());
  }
}
#endif
