// SPDX-License-Identifier: Apache-2.0
// Tensor files ("weights.*.bin"): named float tensors, the same bytes from every machine, checked to the last bit when read.
//
// Format, version 1. Integers are unsigned and little-endian; floats are IEEE 754 binary32, little-endian.
//   offset  bytes
//        0      8  magic: 56 49 54 52 4F 54 46 1A ("VITROTF" and a control-Z)
//        8      4  version: 1
//       12      4  number of tensors, at most 65536
//       16      8  size of the whole file
//       24         one entry a tensor, without gaps:
//                    4  length of the name, 1 to 255
//                    4  rank, 0 to 6
//                    8  each dimension, outermost first
//                       the name: UTF-8, no terminator; no two tensors have the same
//                  for each tensor in the same order: zero bytes up to the next multiple of 64 (from the file's start), then
//                  its elements in row-major order
//  size-32     32  SHA-256 of every byte before it
// Nothing else: the same tensors in the same order have exactly one encoding.
#pragma once

#include "../core/tensor.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitro {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Looks at its name too.
struct NamedTensorView {
  std::string_view name;
  ConstTensorView view;
};

// The views' strides may be any. Errors: invalid_argument for what the format excludes (more than 65536 tensors; a name that is
// empty, longer than 255 bytes, not UTF-8 or there twice).
Result<std::vector<std::byte>> encode_tensor_file(std::span<const NamedTensorView> tensors);

// Encodes and writes as write_file (core/file.hpp) does: `path` is the old file or the complete new one.
Status write_tensor_file(const std::string& path, std::span<const NamedTensorView> tensors);

// Every deviation from the format is an error that names the file (`origin`), the tensor or offset, and what would be right:
// unsupported for another version, corrupt for a wrong checksum, format for the rest. No size in the file is believed before it
// is known to fit the bytes that are there, so memory stays in proportion to the file.
Result<std::vector<NamedTensor>> decode_tensor_file(std::span<const std::byte> bytes, std::string_view origin);

// Reads and decodes; the file may have up to 64 GiB.
Result<std::vector<NamedTensor>> try_read_tensor_file(const std::string& path);

// SHA-256, in hexadecimal, over all elements' little-endian bytes: tensors in the given order, elements in row-major order.
// Names and shapes do not enter.
std::string weights_sha256(std::span<const NamedTensorView> tensors);

}  // namespace vitro
