// SPDX-License-Identifier: Apache-2.0
// Decompression of gzip data (RFC 1952) piece by piece, so that the reader decides how much of an untrusted file may unfold.
#pragma once

#include "../core/error.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace vitro {

// Whether the bytes begin with gzip's magic, 1f 8b. A file is recognised by this and not by its name.
bool is_gzip(std::span<const std::byte> bytes) noexcept;

// Whether this build can decompress (VITRO_WITH_ZLIB).
bool gzip_available() noexcept;

// What DEFLATE (RFC 1951) can make of one byte at most: 258 bytes cost two bits or more. A file that announces more is lying.
inline constexpr std::size_t kMaxGzipRatio = 1032;

// The decompressed bytes of all members, one after the other. Memory beyond the caller's buffers: zlib's window of 32 KiB and
// its tables. Errors: `format` for data that stops early or has bytes after its last member, `corrupt` for a damaged stream or
// a checksum that disagrees, `unsupported` in a build without zlib. After an error every further read gives the same one.
class GzipReader {
 public:
  // Looks at `compressed` as long as it lives; `name` (a path, say) is for error messages.
  GzipReader(std::span<const std::byte> compressed, std::string name);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Fills `out` and returns its size, or less at the end of the data. Only a result below out.size() says that the last member
  // was complete and its checksum right; whoever knows the size beforehand therefore asks for one byte more.
  Result<std::size_t> read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vitro
