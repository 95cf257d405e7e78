// SPDX-License-Identifier: Apache-2.0
// A whole training step as nodes: forward, loss, backward, whether all is finite, clipping, update.
#pragma once

#include "model.hpp"

namespace vitro {

// What a step is given, on its tape.
struct StepInputs {
  Var pixels;       // u8[N, H, W, C]
  Var labels;       // i32[N], each a class
  Var hyper;        // [3]: rate, momentum, weight decay
  Var max_norm;     // []: the longest gradient, over all parameters; without a tape: gradients are not clipped
  Var previous_ok;  // i32[]: 0 where an earlier step was not finite; then this one updates nothing either
};

// What it computes beside new weights and velocities.
struct StepResults {
  std::vector<Var> layers;      // the output of each layer
  std::vector<Var> parameters;  // as placed on the tape
  Var loss;                     // []: the mean over the batch
  Var correct;                  // i32[]: samples whose largest score is that of their label
  Var squared_norm;             // []: the sum of the squares of all gradients, before clipping
  Var ok;                       // i32[]: 1 where previous_ok was 1 and the loss and all gradients are finite
};

// Records the step; on a tape that runs, runs it. `velocity` is the optimizer's state, of the model's parameters' shapes. Where
// the result `ok` is 0, weights and velocities stay as they are.
StepResults record_train_step(Tape& tape, Model& model, std::span<Parameter> velocity, const StepInputs& inputs);

}  // namespace vitro
