// SPDX-License-Identifier: Apache-2.0
// A task, a model and options so small that a whole training takes milliseconds.
#pragma once

#include <vitro/core/random.hpp>
#include <vitro/models/trainer.hpp>

namespace vitro_test {

using namespace vitro;

// Images whose brightest quarter is the label.
inline Dataset quarters(Index count, Index size) {
  Dataset data{"quarters", ByteTensor({count, size, size, 1}), LabelTensor({count})};
  const Philox random(5, 1);
  for (Index i = 0; i < count; ++i) {
    const auto label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(i), 4));
    data.labels.data()[i] = label;
    for (Index h = 0; h < size; ++h) {
      for (Index w = 0; w < size; ++w) {
        const bool bright = (h >= size / 2 ? 2 : 0) + (w >= size / 2 ? 1 : 0) == label;
        const Index pixel = (i * size + h) * size + w;
        const std::uint32_t noise = Philox(5, 2).below(static_cast<std::uint64_t>(pixel), 100);
        data.images.data()[pixel] = static_cast<std::uint8_t>(noise + (bright ? 120 : 0));
      }
    }
  }
  return data;
}

inline Model small_model() {
  return Model("small", {8, 8, 1},
               {{"conv", Conv2dLayer{.out_channels = 5, .kernel_h = 3, .kernel_w = 3, .attrs = {}}},
                {"relu", ReluLayer{}},
                {"pool", MaxPool2dLayer{{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}},
                {"flatten", FlattenLayer{}},
                {"fc", LinearLayer{4}}},
               3);
}

inline TrainOptions small_options() {
  TrainOptions options;
  options.epochs = 3;
  options.batch = 24;
  options.recipe.shift = 1;
  return options;
}

}  // namespace vitro_test
