// SPDX-License-Identifier: Apache-2.0
// A training that was interrupted, in files beside the model's: how it was set up, where it stands, and the optimizer's memory.
#pragma once

#include "trainer.hpp"

#include <string>
#include <vector>

namespace vitro {

inline constexpr const char* kTrainingFile = "training.json";
inline constexpr const char* kOptimizerFile = "optimizer.bin";

// What was measured after an epoch.
struct EpochRecord {
  double loss = 0;  // mean over the training samples, while they were trained on
  double train_accuracy = 0;
  double test_accuracy = 0;
  double seconds = 0;
};

struct Training {
  TrainOptions options;
  Index samples = 0;  // size of the training set: another one would be another training
  TrainState state;
  std::vector<EpochRecord> history;  // one for each finished epoch
};

// Writes folder/training.json and folder/optimizer.bin (a tensor file of velocities), each aside and renamed. The model is
// saved before, by Model::try_save; its hash is noted here. Errors: io.
Status try_save_training(const std::string& folder, const Model& model, const Training& training);

// Whether the folder has a training.json, sound or not: one that cannot be read must not be taken for none.
bool has_training(const std::string& folder);

// Reads them back for the model that was loaded from the same folder. Errors: io, format, corrupt (the files belong to other
// weights), shape_mismatch. Restoring the state into a Trainer with the same options goes on with the same bits.
Result<Training> try_load_training(const std::string& folder, const Model& model);

}  // namespace vitro
