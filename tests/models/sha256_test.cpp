// SPDX-License-Identifier: Apache-2.0
// SHA-256 against its published vectors and against Python's hashlib.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#include <vitro/models/sha256.hpp>

using vitro::Sha256;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string hash(std::string_view text) { return vitro::to_hex(vitro::sha256(bytes(text))); }

// Byte i of a message of the given length, as the Python line below makes it.
std::string message(unsigned length) {
  std::string text(length, '\0');
  for (unsigned i = 0; i < length; ++i) text[i] = static_cast<char>((i * 131 + length) & 0xFF);
  return text;
}

}  // namespace

TEST_CASE("SHA-256 of the published messages is the published digest") {
  // FIPS 180-2 appendix B; the empty message from NIST's byte-oriented vectors.
  CHECK(hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hash(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 of every length around the edges of a block agrees with Python's hashlib") {
  // python3 -c 'import hashlib; h = hashlib.sha256()
  // for n in range(300): h.update(hashlib.sha256(bytes((i * 131 + n) & 255 for i in range(n))).digest())
  // print(h.hexdigest())'
  Sha256 all;
  for (unsigned length = 0; length < 300; ++length) all.update(vitro::sha256(bytes(message(length))));
  CHECK(vitro::to_hex(all.finish()) == "963c6431c7b0d2cf57c972d7c6e86c23ae1b2c8ee7553bb57ca7df5598c1d517");
}

TEST_CASE("how a message is cut into pieces does not change its digest") {
  const std::string text = message(5000);
  std::mt19937 engine(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t length = engine() % text.size();
    const std::size_t longest = 1 + engine() % 200;
    Sha256 pieces;
    for (std::size_t at = 0; at < length;) {
      const std::size_t size = std::min<std::size_t>(engine() % (longest + 1), length - at);  // 0 among them
      pieces.update(bytes(text).subspan(at, size));
      at += size;
    }
    REQUIRE(vitro::to_hex(pieces.finish()) == hash(text.substr(0, length)));
  }
}

TEST_CASE("a digest depends on every bit of the message") {
  const std::string text = message(150);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(hash(flipped) != hash(text));
  }
}
