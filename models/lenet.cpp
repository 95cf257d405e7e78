// SPDX-License-Identifier: Apache-2.0
// LeNet-5's layers.
#include "lenet.hpp"

namespace vitro::models {

Model lenet5(std::uint64_t seed) {
  const ops::Pool2dAttrs halve{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const auto conv5x5 = [](Index channels) {
    return Conv2dLayer{.out_channels = channels, .kernel_h = 5, .kernel_w = 5, .attrs = {}};
  };
  return Model("lenet5", {28, 28, 1},
               {{"conv1", conv5x5(6)},
                {"relu1", ReluLayer{}},
                {"pool1", MaxPool2dLayer{halve}},
                {"conv2", conv5x5(16)},
                {"relu2", ReluLayer{}},
                {"pool2", MaxPool2dLayer{halve}},
                {"flatten", FlattenLayer{}},
                {"fc1", LinearLayer{120}},
                {"relu3", ReluLayer{}},
                {"fc2", LinearLayer{84}},
                {"relu4", ReluLayer{}},
                {"fc3", LinearLayer{10}}},
               seed);
}

}  // namespace vitro::models
