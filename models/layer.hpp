// SPDX-License-Identifier: Apache-2.0
// Layer descriptors: what a model is made of, without weights.
#pragma once

#include "../ops/conv2d.hpp"
#include "../ops/pool2d.hpp"

#include <string>
#include <variant>
#include <vector>

namespace vitro {

// Filters [kernel_h, kernel_w, in / groups, out_channels]; the input's channels are found when the model is built.
struct Conv2dLayer {
  Index out_channels = 1, kernel_h = 1, kernel_w = 1;
  ops::Conv2dAttrs attrs = {};
  bool bias = true;
};

// Weights [in, out_features]; the input must have rank 2 (see FlattenLayer).
struct LinearLayer {
  Index out_features = 1;
  bool bias = true;
};

struct ReluLayer {};

struct MaxPool2dLayer {
  ops::Pool2dAttrs attrs;
};

struct AveragePool2dLayer {
  ops::Pool2dAttrs attrs;
};

// [N, H, W, C] -> [N, H * W * C], in the order h, w, c.
struct FlattenLayer {};

// The sum of two layers' outputs (a residual connection).
struct AddLayer {};

using LayerKind = std::variant<Conv2dLayer, LinearLayer, ReluLayer, MaxPool2dLayer, AveragePool2dLayer, FlattenLayer, AddLayer>;

// One vertex of the model's graph. `inputs` names earlier layers, or "input" for the model's own; empty means the layer before
// this one (the input for the first). AddLayer takes two, every other layer one.
struct Layer {
  std::string name;  // unique, not empty, not "input"
  LayerKind kind;
  std::vector<std::string> inputs = {};
};

// The number of inputs a layer takes, and its type as errors and files name it ("conv2d", ...).
std::size_t input_count(const LayerKind& kind) noexcept;
const char* type_name(const LayerKind& kind) noexcept;

}  // namespace vitro
