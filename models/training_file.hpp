// SPDX-License-Identifier: Apache-2.0
// A training that was interrupted, in files beside the model's: how it was set up, where it stands, and the optimizer's memory.
#pragma once

#include "trainer.hpp"

#include <optional>
#include <string>
#include <vector>

namespace vitro {

// What was measured after an epoch.
struct EpochRecord {
  double loss = 0;  // mean over the training samples, while they were trained on
  double train_accuracy = 0;
  double test_accuracy = 0;
  double seconds = 0;
};

struct Training {
  TrainOptions options;
  Index samples = 0;       // size of the training set, ...
  std::string data_xxh64;  // ... and its data_xxh64(): another set would be another training
  TrainState state;
  std::vector<EpochRecord> history;  // one for each finished epoch
};

// XXH64 of the pixels, with the XXH64 of the labels (32 bits each, little-endian) as its seed, in 16 hexadecimal digits. Tells
// sets apart that differ by accident; it is no protection against forgery. Not SHA-256, which would take a fifth of the time
// of MNIST's whole epoch.
std::string data_xxh64(const Dataset& data);

// Saves the model and its training in the folder at one stroke: whatever interrupts it, the folder holds the old state or the
// new one. Writes "optimizer" (a tensor file of velocities) and "training" beside what Model::try_save() writes. Errors: io.
Status try_save_training(const std::string& folder, const Model& model, const Training& training);

// The training that was saved together with the model, which was loaded from the same folder; empty where the model was saved
// alone. Errors: io (a file that model.json names is missing: then there is a model, but nothing to go on with), format,
// corrupt, unsupported, shape_mismatch. Restoring the state into a Trainer with the same options goes on with the same bits.
Result<std::optional<Training>> try_load_training(const std::string& folder, const Model& model);

}  // namespace vitro
