// SPDX-License-Identifier: Apache-2.0
// idx files, the format of MNIST: a header that announces a shape, then that many bytes.
//
// Layout (all numbers big-endian): two zero bytes; the element type (0x08 = unsigned byte); the rank; one 32-bit dimension per
// axis, outermost first; the elements in row-major order; nothing after them. Source: yann.lecun.com/exdb/mnist.
#pragma once

#include "../core/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vitro {

using ByteTensor = BasicTensor<std::uint8_t>;

// No idx file is read, and none unfolds from a gzip file, beyond this. MNIST's largest has 47 MB.
inline constexpr std::size_t kMaxIdxBytes = std::size_t{1} << 30;

// The tensor in an idx file of unsigned bytes, rank 1 to 6; a dimension may be 0. `file` is raw idx or gzip, told apart by its
// first bytes; `name` (a path, say) is for the messages. Nothing is allocated before the size is known to be what the file
// holds (for gzip: what it can hold), and decompression stops at the first byte beyond what the header announces. Errors:
// `format` (another magic, an impossible rank, a header or data cut short, bytes left over), `unsupported` (an element type
// other than unsigned byte), `overflow` (dimensions whose product is out of range), `invalid_argument` (more than
// kMaxIdxBytes), and those of GzipReader. Each names the file, what stands there and what would be right.
Result<ByteTensor> try_decode_idx(std::span<const std::byte> file, const std::string& name);

// The same from a file; also the errors of read_file.
Result<ByteTensor> try_read_idx(const std::string& path);

#if defined(__cpp_exceptions)
inline ByteTensor read_idx(const std::string& path) { return try_read_idx(path).value(); }
#endif

}  // namespace vitro
