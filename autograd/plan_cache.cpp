// SPDX-License-Identifier: Apache-2.0
// A signature in words.
#include "plan_cache.hpp"

namespace vitro {

std::string Signature::text() const {
  std::string text = mode_;
  for (const Entry& entry : tensors_) text += std::string(" ") + to_string(entry.type) + to_string(entry.shape);
  return text;
}

}  // namespace vitro
