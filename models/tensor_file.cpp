// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of tensor files, by shifts and not by memcpy so that the host's byte order does not matter.
#include "tensor_file.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"
#include "sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <utility>

namespace vitro {
namespace {

constexpr std::string_view kMagic = "VITROTF\x1A";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kMaxTensors = 65536;
constexpr std::size_t kMaxNameBytes = 255;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{64} << 30;

std::size_t aligned(std::size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

void append_integer(std::uint64_t value, int bytes, std::vector<std::byte>& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t load_integer(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  return value;
}

void store_floats(std::span<const float> from, std::byte* to) {
  for (const float element : from) {
    const auto bits = std::bit_cast<std::uint32_t>(element);
    for (int shift = 0; shift < 32; shift += 8) *to++ = static_cast<std::byte>(bits >> shift);
  }
}

void load_floats(const std::byte* from, std::span<float> to) {
  for (float& element : to) {
    std::uint32_t bits = 0;
    for (int shift = 0; shift < 32; shift += 8) bits |= std::to_integer<std::uint32_t>(*from++) << shift;
    element = std::bit_cast<float>(bits);
  }
}

// Calls use(span) with the view's elements in row-major order.
template <class Use>
void with_elements(ConstTensorView view, const Use& use) {
  const auto count = static_cast<std::size_t>(view.elements());
  if (view.is_contiguous()) {
    use(std::span<const float>(view.data(), count));
  } else {
    const Tensor dense = contiguous(view);
    use(dense.span());
  }
}

// What is wrong with a name, as the end of a sentence; null if nothing is.
const char* name_fault(std::string_view name) {
  if (name.empty()) return "has an empty name";
  if (name.size() > kMaxNameBytes) return "has a name of more than 255 bytes";
  if (!is_utf8(name)) return "has a name that is not UTF-8";
  return nullptr;
}

Status check_names(std::span<const NamedTensorView> tensors) {
  if (tensors.size() > kMaxTensors) {
    return Error(ErrorCode::invalid_argument,
                 "a tensor file holds at most 65536 tensors, not " + std::to_string(tensors.size()));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    const char* fault = name_fault(name);
    if (fault == nullptr && !names.insert(name).second) fault = "has the name of an earlier one";
    if (fault != nullptr) {
      return Error(ErrorCode::invalid_argument, "tensor " + std::to_string(i) + ", " + quoted(name) + ", " + fault);
    }
  }
  return {};
}

// One decoding. Every function returns the first error.
class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, std::string_view origin) : bytes_(bytes), origin_(quoted(origin)) {}

  Result<std::vector<NamedTensor>> run() {
    if (Status status = check_frame(); !status) return status.error();
    const auto count = static_cast<std::size_t>(load_integer(bytes_.subspan(12, 4)));
    if (count > kMaxTensors)
      return error(ErrorCode::format, "its header promises " + std::to_string(count) + " tensors; at most 65536 are allowed");
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < count; ++i) {
      Result<Entry> entry = next_entry(i);
      if (!entry) return entry.error();
      entries.push_back(std::move(entry).value());
    }
    // All sizes are known to fit before the first tensor is allocated.
    std::size_t end = at_;
    for (Entry& entry : entries) {
      if (Status status = place(entry, end); !status) return status.error();
    }
    if (end != payload_end_) {
      return error(ErrorCode::format, "has " + std::to_string(payload_end_ - end) +
                                          " bytes between its last tensor and its checksum; there must be none");
    }
    std::vector<NamedTensor> tensors;
    tensors.reserve(entries.size());
    for (Entry& entry : entries) {
      NamedTensor& named = tensors.emplace_back(NamedTensor{std::move(entry.name), Tensor(entry.shape)});
      load_floats(bytes_.data() + entry.offset, named.tensor.span());
    }
    return tensors;
  }

 private:
  struct Entry {
    std::string name;
    Shape shape;
    std::size_t offset = 0;
  };

  Error error(ErrorCode code, const std::string& what) const { return Error(code, "tensor file " + origin_ + " " + what); }

  // Magic, version, size and checksum.
  Status check_frame() {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), std::min(bytes_.size(), kMagic.size()));
    if (start != kMagic.substr(0, start.size())) {
      return error(ErrorCode::format, "is none: it begins with " + quoted(start) + " instead of " + quoted(kMagic));
    }
    if (bytes_.size() < kHeaderBytes + kDigestBytes) {
      return error(ErrorCode::format, "ends after " + std::to_string(bytes_.size()) + " bytes; the shortest has " +
                                          std::to_string(kHeaderBytes + kDigestBytes));
    }
    const std::uint64_t version = load_integer(bytes_.subspan(8, 4));
    if (version != kVersion) {
      return error(ErrorCode::unsupported, "has format version " + std::to_string(version) + "; this build reads version 1");
    }
    const std::uint64_t size = load_integer(bytes_.subspan(16, 8));
    if (size != bytes_.size()) {
      return error(ErrorCode::format, "has " + std::to_string(bytes_.size()) + " bytes, but its header says " +
                                          std::to_string(size) +
                                          (bytes_.size() < size ? ": it is cut off" : ": something was added"));
    }
    payload_end_ = bytes_.size() - kDigestBytes;
    const Sha256Digest computed = sha256(bytes_.first(payload_end_));
    const std::span<const std::byte> stored = bytes_.subspan(payload_end_);
    if (!std::equal(computed.begin(), computed.end(), stored.begin())) {
      Sha256Digest written{};
      std::copy(stored.begin(), stored.end(), written.begin());
      return error(ErrorCode::corrupt, "is damaged: the SHA-256 of its contents is " + to_hex(computed) +
                                           ", the one at its end " + to_hex(written));
    }
    at_ = kHeaderBytes;
    return {};
  }

  // Takes `size` bytes; false if fewer are left before the checksum.
  bool take(std::size_t size, std::span<const std::byte>& out) {
    if (size > payload_end_ - at_) return false;
    out = bytes_.subspan(at_, size);
    at_ += size;
    return true;
  }

  Result<Entry> next_entry(std::size_t number) {
    const std::string tensor = "tensor " + std::to_string(number);
    const std::string cut_off = "ends inside the entry of " + tensor;
    std::span<const std::byte> field;
    if (!take(8, field)) return error(ErrorCode::format, cut_off);
    const auto name_bytes = static_cast<std::size_t>(load_integer(field.first(4)));
    const auto rank = static_cast<std::size_t>(load_integer(field.subspan(4)));
    if (name_bytes == 0 || name_bytes > kMaxNameBytes) {
      return error(ErrorCode::format, tensor + " has a name of " + std::to_string(name_bytes) + " bytes; 1 to 255 are allowed");
    }
    if (rank > kMaxRank) {
      return error(ErrorCode::format, tensor + " has rank " + std::to_string(rank) + "; at most 6 is allowed");
    }
    std::span<const std::byte> dims_field;
    if (!take(8 * rank, dims_field) || !take(name_bytes, field)) return error(ErrorCode::format, cut_off);
    Entry entry;
    entry.name.assign(reinterpret_cast<const char*>(field.data()), field.size());
    const std::string named = tensor + ", " + quoted(entry.name) + ",";
    if (const char* fault = name_fault(entry.name)) return error(ErrorCode::format, named + " " + fault);
    if (!names_.insert(entry.name).second) return error(ErrorCode::format, named + " has the name of an earlier one");
    std::array<Index, kMaxRank> dims{};
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::uint64_t dim = load_integer(dims_field.subspan(8 * axis, 8));
      if (!std::in_range<Index>(dim))
        return error(ErrorCode::format, named + " has the dimension " + std::to_string(dim) + ", which is too large");
      dims[axis] = static_cast<Index>(dim);
    }
    Result<Shape> shape = Shape::make(std::span<const Index>(dims.data(), rank));
    if (!shape) return error(ErrorCode::format, named + " is impossible: " + shape.error().message());
    entry.shape = shape.value();
    return entry;
  }

  // Finds where the entry's elements are, after what ends at `end`, and moves `end` behind them.
  Status place(Entry& entry, std::size_t& end) {
    entry.offset = aligned(end);
    const std::size_t size = static_cast<std::size_t>(entry.shape.elements()) * sizeof(float);
    const std::string named = quoted(entry.name) + " of shape " + to_string(entry.shape);
    if (entry.offset > payload_end_ || size > payload_end_ - entry.offset) {
      return error(ErrorCode::format, "is too short for tensor " + named + ", which needs " + std::to_string(size) +
                                          " bytes from offset " + std::to_string(entry.offset));
    }
    for (; end < entry.offset; ++end) {
      if (bytes_[end] != std::byte{0}) {
        return error(ErrorCode::format,
                     "has a byte other than 0 at offset " + std::to_string(end) + ", in the gap before tensor " + named);
      }
    }
    end = entry.offset + size;
    return {};
  }

  std::span<const std::byte> bytes_;
  std::string origin_;
  std::size_t payload_end_ = 0;  // where the checksum begins
  std::size_t at_ = 0;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<std::byte>> encode_tensor_file(std::span<const NamedTensorView> tensors) {
  if (Status status = check_names(tensors); !status) return status.error();
  std::size_t size = kHeaderBytes;
  for (const auto& [name, view] : tensors) size += 8 + 8 * static_cast<std::size_t>(view.rank()) + name.size();
  for (const auto& [name, view] : tensors) size = aligned(size) + static_cast<std::size_t>(view.elements()) * sizeof(float);
  size += kDigestBytes;

  std::vector<std::byte> bytes;
  bytes.reserve(size);
  const auto append_text = [&](std::string_view text) {
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  };
  append_text(kMagic);
  append_integer(kVersion, 4, bytes);
  append_integer(tensors.size(), 4, bytes);
  append_integer(size, 8, bytes);
  for (const auto& [name, view] : tensors) {
    append_integer(name.size(), 4, bytes);
    append_integer(static_cast<std::uint64_t>(view.rank()), 4, bytes);
    for (const Index dim : view.shape().dims()) append_integer(static_cast<std::uint64_t>(dim), 8, bytes);
    append_text(name);
  }
  for (const auto& [name, view] : tensors) {
    const std::size_t offset = aligned(bytes.size());
    bytes.resize(offset + static_cast<std::size_t>(view.elements()) * sizeof(float));
    with_elements(view, [&](std::span<const float> elements) { store_floats(elements, bytes.data() + offset); });
  }
  const Sha256Digest digest = sha256(bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

Status write_tensor_file(const std::string& path, std::span<const NamedTensorView> tensors) {
  const Result<std::vector<std::byte>> bytes = encode_tensor_file(tensors);
  if (!bytes) return bytes.error();
  return write_file(path, bytes.value());
}

Result<std::vector<NamedTensor>> decode_tensor_file(std::span<const std::byte> bytes, std::string_view origin) {
  return Decoder(bytes, origin).run();
}

Result<std::vector<NamedTensor>> try_read_tensor_file(const std::string& path) {
  const Result<std::vector<std::byte>> bytes =
      read_file(path, static_cast<std::size_t>(std::min<std::uint64_t>(kMaxFileBytes, SIZE_MAX)));
  if (!bytes) return bytes.error();
  return decode_tensor_file(bytes.value(), path);
}

std::string weights_sha256(std::span<const NamedTensorView> tensors) {
  Sha256 hash;
  std::array<std::byte, 4096> buffer;
  for (const auto& [name, view] : tensors) {
    with_elements(view, [&](std::span<const float> elements) {
      while (!elements.empty()) {
        const std::span<const float> part = elements.first(std::min(elements.size(), buffer.size() / sizeof(float)));
        store_floats(part, buffer.data());
        hash.update(std::span(buffer).first(part.size() * sizeof(float)));
        elements = elements.subspan(part.size());
      }
    });
  }
  return to_hex(hash.finish());
}

}  // namespace vitro
