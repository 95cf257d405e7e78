// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a tensor file, as they are and with size and checksum put right, so that what lies behind them is
// reached too. What is accepted must be the one encoding of the tensors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include <vitro/models/sha256.hpp>
#include <vitro/models/tensor_file.hpp>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::span<const std::byte> file) {
  const auto result = vitro::decode_tensor_file(file, "input");
  if (!result) {
    require(result.error().message().starts_with("tensor file \"input\" "));
    return;
  }
  std::vector<vitro::NamedTensorView> views;
  for (const vitro::NamedTensor& named : result.value()) views.push_back({named.name, named.tensor.view()});
  const auto again = vitro::encode_tensor_file(views);
  require(again.ok() && std::ranges::equal(again.value(), file));
  vitro::weights_sha256(views);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  check(input);
  if (size < 24 + 32) return 0;
  std::vector<std::byte> mended(input.begin(), input.end());
  for (std::size_t i = 0; i < 8; ++i) mended[16 + i] = static_cast<std::byte>(std::uint64_t{size} >> (8 * i));
  const std::span<std::byte> all(mended);
  std::ranges::copy(vitro::sha256(all.first(size - 32)), all.last(32).begin());
  check(mended);
  return 0;
}
