// SPDX-License-Identifier: Apache-2.0
// The epilogue that linear layers and convolutions can end with: + bias, + residual, ReLU.
#pragma once

#include "../core/view.hpp"

#include <optional>

namespace vitro::ops {

// Applied in this order to each finished output element, one IEEE operation each: the bits equal those of running the
// operations one after the other. Null pointers and false leave a stage out.
struct Epilogue {
  const float* bias = nullptr;      // [out channels]
  const float* residual = nullptr;  // dense, of the output's shape; not the output itself
  bool relu = false;                // y < 0 ? +0 : y
};

// The same for the checked functions: contiguous views, bias of shape [out channels], residual of the output's shape.
struct EpilogueViews {
  std::optional<ConstTensorView> bias = std::nullopt;
  std::optional<ConstTensorView> residual = std::nullopt;
  bool relu = false;
};

}  // namespace vitro::ops
