// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as gzip data. What comes out must not depend on the pieces in which it is asked for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include <vitro/data/gzip.hpp>

namespace {

constexpr std::size_t kLimit = std::size_t{1} << 15;  // of decompressed bytes; a bomb would only cost time

struct Outcome {
  bool ok = true;
  std::vector<std::byte> bytes;
};

// Reads to the end, an error or the limit.
Outcome unfold(std::span<const std::byte> compressed, std::size_t piece) {
  vitro::GzipReader reader(compressed, "input");
  Outcome outcome;
  std::vector<std::byte> buffer(piece);
  while (outcome.bytes.size() < kLimit) {
    const std::size_t wanted = std::min(piece, kLimit - outcome.bytes.size());
    const vitro::Result<std::size_t> got = reader.read(std::span(buffer).first(wanted));
    if (!got) {
      outcome.ok = false;
      return outcome;
    }
    if (got.value() > wanted) std::abort();
    outcome.bytes.insert(outcome.bytes.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got.value()));
    if (got.value() < wanted) return outcome;
  }
  return outcome;
}

}  // namespace

// The first byte chooses the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> compressed = std::as_bytes(std::span(data + 1, size - 1));
  const Outcome whole = unfold(compressed, kLimit);
  const Outcome pieces = unfold(compressed, std::size_t{data[0]} + 1);
  // At the limit one of the two may already have seen that the next byte is an error.
  if (whole.bytes.size() == kLimit || pieces.bytes.size() == kLimit) return 0;
  if (whole.ok != pieces.ok || (whole.ok && whole.bytes != pieces.bytes)) std::abort();
  if (whole.ok && whole.bytes.size() > compressed.size() * vitro::kMaxGzipRatio) std::abort();
  return 0;
}
