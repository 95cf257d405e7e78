// SPDX-License-Identifier: Apache-2.0
// The other order: the application's core/tensor.hpp first, then Vitro's.
#include "core/tensor.hpp"

#include <vitro/core/tensor.hpp>

int own_answer();

int own_answer() { return application::Tensor{}.answer + static_cast<int>(vitro::Tensor(vitro::Shape{2, 3}).elements()); }
