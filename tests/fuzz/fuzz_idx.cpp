// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as an idx file, raw or gzip. What is accepted must be what the bytes say.
#include <cstdlib>
#include <cstring>
#include <vitro/data/gzip.hpp>
#include <vitro/data/idx.hpp>

namespace {

// Whether a raw file is exactly the header of the tensor's shape and then its bytes.
bool is_encoding_of(std::span<const std::byte> file, const vitro::ByteTensor& tensor) {
  const auto rank = static_cast<std::size_t>(tensor.shape().rank());
  const std::size_t header = 4 + 4 * rank;
  if (file.size() != header + tensor.span().size()) return false;
  if (file[0] != std::byte{0} || file[1] != std::byte{0} || file[2] != std::byte{8} || file[3] != std::byte(rank)) return false;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto dim = static_cast<std::uint32_t>(tensor.shape()[static_cast<int>(axis)]);
    for (std::size_t i = 0; i < 4; ++i) {
      if (file[4 + 4 * axis + i] != std::byte(dim >> (24 - 8 * i) & 255)) return false;
    }
  }
  return tensor.span().empty() || std::memcmp(file.data() + header, tensor.data(), tensor.span().size()) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const vitro::Result<vitro::ByteTensor> result = vitro::try_decode_idx(file, "input");
  if (!result) {
    if (result.error().message().empty()) std::abort();
    return 0;
  }
  if (!vitro::is_gzip(file) && !is_encoding_of(file, result.value())) std::abort();
  return 0;
}
