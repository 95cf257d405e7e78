// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): the checksum of tensor files and the fingerprint of a model's weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vitro {

using Sha256Digest = std::array<std::byte, 32>;

// Takes a message in pieces of any size; how it is cut does not change the digest.
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes) noexcept;
  // The digest of all bytes so far. Requires that nothing is called afterwards.
  Sha256Digest finish() noexcept;

 private:
  void compress(const std::byte* block) noexcept;  // 64 bytes

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};  // the first length_ % 64 bytes are not yet compressed
  std::uint64_t length_ = 0;             // bytes so far; the standard's limit of 2^61 is out of reach
};

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept;

// 64 lower-case hexadecimal digits, as sha256sum prints them.
std::string to_hex(const Sha256Digest& digest);

}  // namespace vitro
