// SPDX-License-Identifier: Apache-2.0
// Aligned allocation over the standard's aligned operator new, in its non-throwing form.
#include "storage.hpp"

#include "error.hpp"

#include <cstring>
#include <new>
#include <string>

namespace vitro {

void* allocate_bytes(std::size_t bytes) {
  const std::size_t rounded = bytes == 0 ? kAlignment : aligned_up(bytes);
  void* memory = rounded < bytes ? nullptr : ::operator new (rounded, std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) {
    fail(ErrorCode::out_of_memory, "the system refused " + std::to_string(bytes) + " bytes of memory");
  }
  return std::memset(memory, 0, rounded);
}

void free_bytes(void* memory) noexcept { ::operator delete (memory, std::align_val_t{kAlignment}); }

}  // namespace vitro
