// SPDX-License-Identifier: Apache-2.0
// Adding tensors to the table, and how they are named in messages.
#include "tensor_table.hpp"

namespace vitro {

const char* to_string(DType type) noexcept {
  switch (type) {
    case DType::f32: return "f32";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "unknown";
}

TensorId TensorTable::add(const TensorInfo& info) {
  if (infos_.size() >= static_cast<std::uint32_t>(kNoTensor)) {
    fail(ErrorCode::overflow, "a tape cannot hold more than " + std::to_string(infos_.size()) + " tensors");
  }
  infos_.push_back(info);
  return TensorId{static_cast<std::uint32_t>(infos_.size() - 1)};
}

std::string to_string(TensorId id) {
  return id == kNoTensor ? std::string("none") : "%" + std::to_string(static_cast<std::uint32_t>(id));
}

std::string describe(TensorId id, const TensorTable& tensors) {
  if (id == kNoTensor) return "none";
  if (!tensors.contains(id)) return to_string(id) + " (not in this tape)";
  return to_string(id) + " " + to_string(tensors[id].type) + to_string(tensors[id].shape);
}

}  // namespace vitro
