// SPDX-License-Identifier: Apache-2.0
// TensorTable: what a tape knows of its tensors - shape, element type, role, and where the elements lie.
#pragma once

#include "../core/shape.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitro {

// Names a tensor inside one tape. Nodes hold ids, never pointers.
enum class TensorId : std::uint32_t {};
inline constexpr TensorId kNoTensor{0xFFFFFFFFU};  // an optional operand that is absent

enum class DType : std::uint8_t { f32, i32, u8 };
constexpr std::size_t size_of(DType type) noexcept { return type == DType::u8 ? 1 : 4; }
const char* to_string(DType type) noexcept;
// Of a dense tensor's elements.
inline std::size_t bytes_of(const Shape& shape, DType type) noexcept {
  return static_cast<std::size_t>(shape.elements()) * size_of(type);
}

enum class Role : std::uint8_t {
  input,      // the caller's memory, only read
  constant,   // the same, and it never changes: a plan may copy it and keep it in another layout
  parameter,  // the caller's memory, updated in place by optimizer nodes
  computed,   // written by a node, in the tape's memory
};

// Memory named by base and byte offset; the bases are given when a step runs, so a recorded step does not fix addresses.
struct Place {
  std::uint64_t offset = 0;
  std::uint32_t base = 0;
};

inline constexpr Place kNowhere{0, 0xFFFFFFFFU};  // of a tensor that is absent or that a step keeps to itself
constexpr bool is_nowhere(Place place) noexcept { return place.base == kNowhere.base; }

struct TensorInfo {
  Shape shape;
  Place place;
  DType type = DType::f32;
  Role role = Role::computed;
  bool needs_gradient = false;  // a parameter or wanted input, or computed from one
  bool packed = false;          // lies there as Backend::packing() lays it out
};

// Dense row-major tensors, numbered in the order in which they were added.
class TensorTable {
 public:
  // Fails with overflow after 2^32 - 2 tensors.
  TensorId add(const TensorInfo& info);
  // Requires an id that add() returned since the last clear().
  const TensorInfo& operator[](TensorId id) const noexcept { return infos_[static_cast<std::uint32_t>(id)]; }
  TensorInfo& operator[](TensorId id) noexcept { return infos_[static_cast<std::uint32_t>(id)]; }
  const Shape& shape(TensorId id) const noexcept { return (*this)[id].shape; }

  bool contains(TensorId id) const noexcept { return static_cast<std::uint32_t>(id) < infos_.size(); }
  std::size_t size() const noexcept { return infos_.size(); }
  std::span<const TensorInfo> infos() const noexcept { return infos_; }
  // Forgets all tensors, keeps the memory of the table.
  void clear() noexcept { infos_.clear(); }

 private:
  std::vector<TensorInfo> infos_;
};

// "%7" and "%7 f32[64, 10]", as errors and listings name a tensor.
std::string to_string(TensorId id);
std::string describe(TensorId id, const TensorTable& tensors);

}  // namespace vitro
