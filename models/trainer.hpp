// SPDX-License-Identifier: Apache-2.0
// Trainer: stochastic gradient descent with momentum over a data set, one step at a time.
#pragma once

#include "../data/batch.hpp"
#include "evaluate.hpp"
#include "recipe.hpp"

#include <memory>

namespace vitro {

struct TrainOptions {
  Index epochs = 20;       // of the whole training; a schedule may depend on it
  Index batch = 64;        // the last batch of an epoch may be smaller
  std::uint64_t seed = 1;  // of the order of samples and of their shifts
  Recipe recipe = default_recipe();
};

// Sums over the steps of one epoch so far, before each step's update.
struct EpochTotals {
  double loss_sum = 0;  // of the samples' losses
  Index samples = 0;
  Index correct = 0;

  double loss() const noexcept;      // mean of the samples' losses; 0 without samples
  double accuracy() const noexcept;  // correct / samples; 0 without samples
};

// Where a training stands: what, beside the weights, decides how it goes on. Orders and shifts are functions of (seed, epoch),
// so a training that is restored goes on with the same bits as one that never stopped.
struct TrainState {
  Index epoch = 0;  // being run or next to run, from 0
  Index step = 0;   // next step in that epoch
  EpochTotals totals;
  std::vector<Parameter> velocity;  // named and shaped like the model's parameters
};

class Trainer {
 public:
  // All three must outlive the trainer; nobody else writes the model's weights meanwhile. Fails where try_make() has an error.
  Trainer(Context& context, Model& model, const Dataset& data, const TrainOptions& options);
  // Errors: check_fits(); invalid_argument for epochs or batch under 1 or an empty data set.
  static Result<std::unique_ptr<Trainer>> try_make(Context& context, Model& model, const Dataset& data,
                                                   const TrainOptions& options);

  // One batch: forward, backward, update. When it was the epoch's last one, state() moves on to the next epoch and last_epoch()
  // holds the totals. Error non_finite: the loss or a gradient is not finite; nothing was updated, and the message names the
  // layers where it shows first. Requires !finished().
  Status try_step();

  bool finished() const noexcept { return state_.epoch >= options_.epochs; }
  Index steps_per_epoch() const noexcept { return sampler_.steps(); }
  const TrainOptions& options() const noexcept { return options_; }
  const TrainState& state() const noexcept { return state_; }
  const EpochTotals& last_epoch() const noexcept { return last_epoch_; }
  // Of the last step's tape: nodes and tensor table, and computed elements.
  std::size_t record_bytes() const noexcept { return tape_.record_bytes(); }
  std::size_t arena_bytes() const noexcept { return tape_.arena_bytes(); }

  // Whether weights and velocities are finite, to be asked before they are saved: an update that overflows shows in the next
  // step's numbers only. The error, non_finite, names the first parameter that is not.
  Status check_state() const;

  // Goes on from a state that was saved. Errors: a position outside the training, velocities that are not the model's.
  Status try_restore(TrainState state);

 private:
  Status check_finite(float loss, std::span<const Var> layers, std::span<const Var> parameters) const;

  Context& context_;
  Model& model_;
  const Dataset& data_;
  TrainOptions options_;
  Sampler sampler_;
  TrainState state_;
  EpochTotals last_epoch_;
  ByteTensor bytes_;    // [batch, H, W, C]
  Tensor images_;       // the same as floats in [0, 1]
  LabelTensor labels_;  // [batch]
  Tensor hyper_;        // [3]
  Tape tape_;
};

// The whole training in one call. Errors: those of Trainer.
Status try_train(Context& context, Model& model, const Dataset& data, const TrainOptions& options = {});
#if defined(__cpp_exceptions)
inline void train(Context& context, Model& model, const Dataset& data, const TrainOptions& options = {}) {
  try_train(context, model, data, options).value();
}
#endif

}  // namespace vitro
