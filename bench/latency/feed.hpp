// SPDX-License-Identifier: Apache-2.0
// The data path of all runners: batches of MNIST, the same ones in the same order for everybody, in one place in memory.
#pragma once

#include "../../data/batch.hpp"
#include "../../ops/context.hpp"

#include <string>

namespace vitro_bench {

// The folder that VITRO_MNIST_DIR names, else data/mnist or data/sample of the current folder; a sentence in place of a folder
// that is not there.
vitro::Result<vitro::MnistData> load_data();

class Feed {
 public:
  // `data` outlives the feed; `batch` images at a time, shuffled as Trainer shuffles with seed 1, or (inference) as they lie.
  Feed(vitro::Context& context, const vitro::Dataset& data, vitro::Index batch, bool shuffled);

  // Makes images() and labels() those of step `step`, in epochs of data.size() / batch steps.
  void fill(vitro::Index step);

  const float* images() const { return images_.data(); }  // [batch, 28, 28, 1] in [0, 1]
  const std::int32_t* labels() const { return labels_.data(); }

 private:
  vitro::Context& context_;
  const vitro::Dataset& data_;
  vitro::Index batch_;
  bool shuffled_;
  vitro::Sampler sampler_;
  std::vector<std::uint32_t> samples_;
  vitro::ByteTensor bytes_;
  vitro::Tensor images_;
  vitro::LabelTensor labels_;
};

}  // namespace vitro_bench
