// SPDX-License-Identifier: Apache-2.0
// LeNet-5 for 28x28 grey images.
#pragma once

#include "model.hpp"

namespace vitro::models {

// [28, 28, 1] -> conv 5x5x6 -> ReLU -> max pool 2x2 -> conv 5x5x16 -> ReLU -> max pool 2x2 -> flatten -> 120 -> ReLU -> 84 ->
// ReLU
// -> 10 scores. After LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998, with
// today's activations and pooling and without padding.
Model lenet5(std::uint64_t seed = 1);

}  // namespace vitro::models
