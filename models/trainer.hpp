// SPDX-License-Identifier: Apache-2.0
// Trainer: stochastic gradient descent with momentum over a data set, one step at a time.
#pragma once

#include "../autograd/plan_cache.hpp"
#include "../autograd/replay.hpp"
#include "../data/loader.hpp"
#include "evaluate.hpp"
#include "metrics_ring.hpp"
#include "recipe.hpp"
#include "train_step.hpp"

#include <memory>
#include <optional>

namespace vitro {

struct TrainOptions {
  Index epochs = 20;       // of the whole training; a schedule may depend on it
  Index batch = 64;        // the last batch of an epoch may be smaller
  std::uint64_t seed = 1;  // of the order of samples and of their shifts
  Recipe recipe = default_recipe();
};

// How the steps are run. Nothing here changes a bit of what comes out.
struct TrainExecution {
  bool captured = true;  // each batch size's step is compiled into a plan and replayed; false: recorded and run anew each time
  CaptureOptions capture = {};
  InputPolicy input = InputPolicy::plain;
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
  // All three must outlive the trainer; nobody else writes the model's weights or moves their memory meanwhile. Fails where
  // try_make() has an error.
  Trainer(Context& context, Model& model, const Dataset& data, const TrainOptions& options,
          const TrainExecution& execution = {});
  // Errors: check_fits(); invalid_argument for epochs or batch under 1, an empty data set, a clip_norm that is negative or NaN,
  // or a model in which no weights lead to the output; Loader::check().
  static Result<std::unique_ptr<Trainer>> try_make(Context& context, Model& model, const Dataset& data,
                                                   const TrainOptions& options, const TrainExecution& execution = {});

  // One batch: forward, backward, update. When it was the epoch's last one, state() moves on to the next epoch and last_epoch()
  // holds the totals. Error non_finite: the loss or a gradient of a step was not finite; the message names the layers where it
  // shows first. It may come some steps late (when state() is asked for, at the epoch's end, at the latest after
  // MetricsRing::kCapacity steps), but neither that step nor one after it has updated anything, and state() is where it was
  // before that step. Requires !finished(). Other errors: those of capturing.
  Status try_step();

  bool finished() const noexcept { return state_.epoch >= options_.epochs; }
  Index steps_per_epoch() const noexcept { return loader_.steps(); }
  const TrainOptions& options() const noexcept { return options_; }
  // The epoch being run or next to run, without looking at what the steps report.
  Index epoch() const noexcept { return state_.epoch; }
  // Reads what the steps have reported. After a step that was not finite, which the next try_step() tells, that step's state.
  const TrainState& state();
  const EpochTotals& last_epoch() const noexcept { return last_epoch_; }
  // The length of the gradient over all parameters in the step last read, before clipping.
  double gradient_norm() const noexcept;
  // Of the last step's tape: nodes and tensor table, and the arena that computed elements lie in.
  std::size_t record_bytes() const noexcept { return record_bytes_; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }

  // Whether weights and velocities are finite, to be asked before they are saved: an update that overflows shows in the next
  // step's numbers only. The error, non_finite, names the first parameter that is not.
  Status check_state() const;

  // Goes on from a state that was saved. Errors: a position outside the training, velocities that are not the model's.
  Status try_restore(TrainState state);

 private:
  // A step that was captured, and where it reads and writes what changes from step to step.
  struct CapturedStep {
    Replay replay;
    const Port *pixels, *labels, *previous_ok, *loss, *correct, *squared_norm, *ok;
    std::size_t record_bytes;
  };

  Result<CapturedStep> capture(Index count);
  Status run_captured(const Batch& batch, StepRecord& record, const std::int32_t* previous_ok);
  void run_eager(const Batch& batch, StepRecord& record, const std::int32_t* previous_ok);
  StepResults record_eager(Tape& tape, const Batch& batch, const std::int32_t* previous_ok);
  void set_hyper(Index epoch, Index step) noexcept;
  void read_reports();
  Status take_error();
  Error explain(const StepRecord& record);

  Context& context_;
  Model& model_;
  TrainOptions options_;
  TrainExecution execution_;
  Loader loader_;
  TrainState state_;
  EpochTotals last_epoch_;
  Tensor hyper_;     // [3]
  Tensor max_norm_;  // []
  MetricsRing reports_;
  float squared_norm_ = 0;
  std::optional<Error> error_;  // found while reading reports, not yet told
  PlanCache<CapturedStep> plans_;
  std::array<Signature, 2> signatures_;  // of a whole batch and of an epoch's last one
  Tape tape_;                            // of eager steps
  std::size_t record_bytes_ = 0, arena_bytes_ = 0;
};

// The whole training in one call. Errors: those of Trainer.
Status try_train(Context& context, Model& model, const Dataset& data, const TrainOptions& options = {});
#if defined(__cpp_exceptions)
inline void train(Context& context, Model& model, const Dataset& data, const TrainOptions& options = {}) {
  try_train(context, model, data, options).value();
}
#endif

}  // namespace vitro
