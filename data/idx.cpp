// SPDX-License-Identifier: Apache-2.0
// Decoding of idx, from memory or through a GzipReader, with every number in the header distrusted.
#include "idx.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"
#include "gzip.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace vitro {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::byte kUnsignedByte{0x08};

// The bytes of a raw or compressed file, front to back.
class Source {
 public:
  Source(std::span<const std::byte> file, const std::string& name) : file_(file) {
    if (is_gzip(file)) gzip_.emplace(file, name);
  }

  // As GzipReader::read.
  Result<std::size_t> read(std::span<std::byte> out) {
    if (gzip_) return gzip_->read(out);
    const std::size_t size = std::min(out.size(), file_.size() - position_);
    if (size > 0) std::memcpy(out.data(), file_.data() + position_, size);
    position_ += size;
    return size;
  }

  // No more than this can follow.
  std::uint64_t most_remaining() const noexcept {
    return gzip_ ? std::uint64_t{file_.size()} * kMaxGzipRatio : file_.size() - position_;
  }

 private:
  std::span<const std::byte> file_;
  std::size_t position_ = 0;
  std::optional<GzipReader> gzip_;
};

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[std::to_integer<unsigned>(byte) / 16];
    text += kDigits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

Error idx_error(ErrorCode code, const std::string& name, const std::string& what) {
  return Error(code, "idx file " + quoted(name) + " " + what);
}

// The name of a type that the format defines and Vitro does not read; null for a byte that is no type.
const char* other_type(std::byte type) noexcept {
  switch (std::to_integer<int>(type)) {
    case 0x09: return "signed byte";
    case 0x0b: return "16-bit integer";
    case 0x0c: return "32-bit integer";
    case 0x0d: return "float";
    case 0x0e: return "double";
    default: return nullptr;
  }
}

// The rank, from the four bytes of the magic.
Result<int> parse_magic(std::span<const std::byte, kMagicBytes> magic, const std::string& name) {
  const int rank = std::to_integer<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    return idx_error(ErrorCode::format, name,
                     "starts with the bytes " + hex(magic) + ", where idx has 00 00, its type and its rank");
  }
  if (magic[2] != kUnsignedByte) {
    const char* type = other_type(magic[2]);
    if (type == nullptr)
      return idx_error(
          ErrorCode::format, name,
          "has the element type " + hex(magic.subspan(2, 1)) + ", which idx does not know; 08 (unsigned byte) is right");
    return idx_error(
        ErrorCode::unsupported, name,
        "holds elements of type " + hex(magic.subspan(2, 1)) + " (" + type + "); only 08 (unsigned byte) is supported");
  }
  if (rank < 1 || rank > kMaxRank) {
    return idx_error(ErrorCode::format, name,
                     "has rank " + std::to_string(rank) + "; 1 to " + std::to_string(kMaxRank) + " are right");
  }
  return rank;
}

Result<Shape> parse_shape(std::span<const std::byte> header, const std::string& name) {
  std::array<Index, kMaxRank> dims{};
  const std::size_t rank = header.size() / 4;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::uint32_t dim = 0;
    for (std::size_t i = 0; i < 4; ++i) dim = dim << 8 | std::to_integer<std::uint32_t>(header[4 * axis + i]);
    if (!std::in_range<Index>(dim))
      return idx_error(ErrorCode::overflow, name, "has the dimension " + std::to_string(dim) + ", too large for this machine");
    dims[axis] = static_cast<Index>(dim);
  }
  const std::span<const Index> all(dims.data(), rank);
  Result<Shape> shape = Shape::make(all);
  if (!shape)
    return idx_error(shape.error().code(), name, "announces the shape " + to_string(all) + ", whose size is out of range");
  return shape;
}

Result<Shape> read_header(Source& source, const std::string& name) {
  std::array<std::byte, kMagicBytes + 4 * kMaxRank> bytes{};
  const std::span<std::byte> all(bytes);
  Result<std::size_t> got = source.read(all.first(kMagicBytes));
  if (!got) return std::move(got).error();
  if (got.value() < kMagicBytes) {
    return idx_error(ErrorCode::format, name, "has " + std::to_string(got.value()) + " bytes; its header alone has 8 or more");
  }
  const Result<int> rank = parse_magic(std::span<const std::byte, kMagicBytes>(bytes.data(), kMagicBytes), name);
  if (!rank) return rank.error();
  const std::span<std::byte> dims = all.subspan(kMagicBytes, 4 * static_cast<std::size_t>(rank.value()));
  got = source.read(dims);
  if (!got) return std::move(got).error();
  if (got.value() < dims.size()) {
    return idx_error(ErrorCode::format, name,
                     "ends inside its header: " + std::to_string(kMagicBytes + got.value()) + " bytes, where rank " +
                         std::to_string(rank.value()) + " needs " + std::to_string(kMagicBytes + dims.size()));
  }
  return parse_shape(dims, name);
}

}  // namespace

Result<ByteTensor> try_decode_idx(std::span<const std::byte> file, const std::string& name) {
  if (file.size() > kMaxIdxBytes)
    return idx_error(ErrorCode::invalid_argument, name,
                     "is larger than the " + std::to_string(kMaxIdxBytes) + " bytes it may have");
  Source source(file, name);
  const Result<Shape> shape = read_header(source, name);
  if (!shape) return shape.error();
  const auto size = static_cast<std::size_t>(shape.value().elements());
  const std::string announced = "announces the shape " + to_string(shape.value()) + ", " + std::to_string(size) + " bytes";
  if (size > kMaxIdxBytes)
    return idx_error(ErrorCode::invalid_argument, name, announced + ", where " + std::to_string(kMaxIdxBytes) + " are allowed");
  if (size > source.most_remaining()) {
    return idx_error(ErrorCode::format, name,
                     announced + ", where at most " + std::to_string(source.most_remaining()) +
                         " can follow: the file is cut short or its header is wrong");
  }

  ByteTensor tensor(shape.value());
  Result<std::size_t> got = source.read(std::as_writable_bytes(tensor.span()));
  if (!got) return std::move(got).error();
  if (got.value() < size) {
    return idx_error(ErrorCode::format, name, announced + ", but " + std::to_string(got.value()) + " follow the header");
  }
  std::byte extra{};
  got = source.read({&extra, 1});
  if (!got) return std::move(got).error();
  if (got.value() != 0) return idx_error(ErrorCode::format, name, announced + ", but does not end after them");
  return tensor;
}

Result<ByteTensor> try_read_idx(const std::string& path) {
  const Result<std::vector<std::byte>> file = read_file(path, kMaxIdxBytes);
  if (!file) return file.error();
  return try_decode_idx(file.value(), path);
}

}  // namespace vitro
