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
  // One step over count x 28 x 28 numbers in [0, 1] and their labels; returns the mean loss before the update.
  float step(const float* images, const std::int32_t* labels, Index count);
  // Copies the images of a whole training; then one step over those of them that `samples` names.
  void set_images(const float* images, const std::int32_t* labels, Index count);
  float step(const std::vector<std::int64_t>& samples);

  // scores[count, 10], as one would infer: no graph is recorded.
  void scores(const float* images, Index count, float* scores) const;

  // The same for an evaluation: how many images are recognised, `batch` at a time.
  void set_test_images(const float* images, const std::int32_t* labels, Index count);
  Index count_correct(Index batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitro_bench
