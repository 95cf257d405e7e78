// SPDX-License-Identifier: Apache-2.0
// XXH64, the 64-bit hash of the xxHash family: tells one data set from another at the speed of memory. No cryptographic hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitro {

// As the xxHash specification has it, the same on every machine.
std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;

}  // namespace vitro
