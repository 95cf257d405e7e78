// SPDX-License-Identifier: Apache-2.0
// XXH64 after the xxHash fast digest algorithm's specification: four lanes over stripes of 32 bytes, then the rest, then
// mixing.
#include "xxh64.hpp"

#include <array>
#include <bit>

namespace vitro {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5;

// Little-endian; compilers make one load of it where the machine is little-endian too.
std::uint64_t load(const std::byte* bytes, int count) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) noexcept {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  std::uint64_t hash = seed + kPrime5;
  const std::size_t size = bytes.size();
  if (size >= 32) {
    std::array<std::uint64_t, 4> lanes = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; bytes.size() >= 32; bytes = bytes.subspan(32)) {
      for (std::size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load(bytes.data() + 8 * i, 8));
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += size;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    hash = std::rotl(hash ^ round(0, load(bytes.data(), 8)), 27) * kPrime1 + kPrime4;
  }
  if (bytes.size() >= 4) {
    hash = std::rotl(hash ^ load(bytes.data(), 4) * kPrime1, 23) * kPrime2 + kPrime3;
    bytes = bytes.subspan(4);
  }
  for (const std::byte byte : bytes) hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(byte) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace vitro
