// SPDX-License-Identifier: Apache-2.0
// LeNet-5 written against LibTorch's C++ front end, with the layers, loss and optimizer of models::lenet5() and its Trainer.
#pragma once

#include "peer.hpp"

namespace vitro_bench {

class TorchLenet {
 public:
  // Without parameters: those that LibTorch draws from `seed`.
  explicit TorchLenet(std::uint64_t seed);
  // The layouts of LenetShape.
  explicit TorchLenet(const std::vector<std::vector<float>>& parameters);
  ~TorchLenet();

  // In the layouts of LenetShape.
  std::vector<std::vector<float>> parameters() const;

  // Sets rate, momentum and weight decay of the next steps.
  void set_sgd(const Sgd& sgd);
  // What steps learn from: count x 28 x 28 numbers in [0, 1] and their labels, copied.
  void set_images(const float* images, const std::int32_t* labels, Index count);
  // One step over all of these images, or over those that `samples` names; returns the mean loss before the update.
  float step();
  float step(const std::vector<std::int64_t>& samples);

  // The same for an evaluation: how many images are recognised, `batch` at a time.
  void set_test_images(const float* images, const std::int32_t* labels, Index count);
  Index count_correct(Index batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitro_bench
