// SPDX-License-Identifier: Apache-2.0
// The training step, and what is said when numbers stop being finite.
#include "trainer.hpp"

#include "../core/text.hpp"

#include <algorithm>
#include <cmath>

namespace vitro {
namespace {

Status check_options(const Model& model, const Dataset& data, const TrainOptions& options) {
  if (Status status = check_fits(model, data); !status) return status;
  const auto at_least_one = [](const char* what, Index value) -> Status {
    if (value >= 1) return {};
    return Error(ErrorCode::invalid_argument,
                 std::string("training: ") + what + " is " + std::to_string(value) + "; it must be at least 1");
  };
  if (Status status = at_least_one("epochs", options.epochs); !status) return status;
  if (Status status = at_least_one("batch", options.batch); !status) return status;
  if (!(options.recipe.clip_norm >= 0)) {
    return Error(ErrorCode::invalid_argument, "training: the recipe's clip_norm is " + decimal(options.recipe.clip_norm) +
                                                  "; it must be 0 (never) or the longest gradient allowed");
  }
  return at_least_one("the number of images", data.size());
}

// Whether the loss depends on any parameter.
Status check_trainable(Context& context, Model& model) {
  Tape tape(context, TapeMode::record);
  const Var scores = model.forward(tape.placeholder(model.try_batch_shape(1).value()), model.place_parameters(tape));
  if (tape.tensors()[scores.id].needs_gradient) return {};
  return Error(ErrorCode::invalid_argument,
               "training: model \"" + model.name() + "\" has nothing to train: no layer with weights leads to its output");
}

Index first_non_finite(ConstTensorView view) {
  for (Index i = 0; i < view.elements(); ++i) {
    if (!std::isfinite(view.data()[i])) return i;
  }
  return -1;
}

constexpr std::size_t kMostPlans = 4;

// A record at the ring's end that goes again unless the step it is for has run, whatever ended it.
class PushedReport {
 public:
  PushedReport(MetricsRing& ring, const Batch& batch)
      : ring_(ring), record_(ring.push(batch.epoch, batch.step, batch.labels.elements())) {}
  ~PushedReport() {
    if (!kept_) ring_.drop_last();
  }
  PushedReport(const PushedReport&) = delete;
  PushedReport& operator=(const PushedReport&) = delete;

  StepRecord& record() const noexcept { return record_; }
  void keep() noexcept { kept_ = true; }

 private:
  MetricsRing& ring_;
  StepRecord& record_;
  bool kept_ = false;
};

Signature step_signature(const Dataset& data, Index count) {
  return Signature("train").add(data.images.shape().with(0, count), DType::u8).add({count}, DType::i32);
}

std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

}  // namespace

double EpochTotals::loss() const noexcept { return samples == 0 ? 0.0 : loss_sum / static_cast<double>(samples); }

double EpochTotals::accuracy() const noexcept {
  return samples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(samples);
}

Trainer::Trainer(Context& context, Model& model, const Dataset& data, const TrainOptions& options,
                 const TrainExecution& execution)
    : context_(context),
      model_(model),
      options_((check_options(model, data, options).value(), check_trainable(context, model).value(), options)),
      execution_(execution),
      loader_(data, {options.batch, options.seed, options.recipe.shift, execution.input}),
      hyper_({3}),
      max_norm_(Shape()),
      plans_(kMostPlans),
      signatures_{step_signature(data, loader_.count(0)), step_signature(data, loader_.count(loader_.steps() - 1))},
      tape_(context) {
  max_norm_.data()[0] = options.recipe.clip_norm;
  for (const Parameter& parameter : model.parameters())
    state_.velocity.push_back({parameter.name, Tensor(parameter.value.shape())});
}

Result<std::unique_ptr<Trainer>> Trainer::try_make(Context& context, Model& model, const Dataset& data,
                                                   const TrainOptions& options, const TrainExecution& execution) {
  if (Status status = check_options(model, data, options); !status) return std::move(status).error();
  if (Status status = check_trainable(context, model); !status) return std::move(status).error();
  const LoaderOptions loader{options.batch, options.seed, options.recipe.shift, execution.input};
  if (Status status = Loader::check(data, loader); !status) return std::move(status).error();
  return std::make_unique<Trainer>(context, model, data, options, execution);
}

Status Trainer::try_step() {
  if (error_) return take_error();
  const Batch batch = loader_.get(state_.epoch, state_.step);
  set_hyper(batch.epoch, batch.step);
  const std::int32_t* const previous_ok = reports_.last_ok();
  PushedReport report(reports_, batch);
  if (execution_.captured) {
    if (Status status = run_captured(batch, report.record(), previous_ok); !status) return status;
  } else {
    run_eager(batch, report.record(), previous_ok);
  }
  report.keep();
  const bool last = ++state_.step == loader_.steps();
  if (last || reports_.full()) read_reports();
  if (error_) return take_error();
  if (last) {
    last_epoch_ = std::exchange(state_.totals, EpochTotals{});
    state_.step = 0;
    ++state_.epoch;
  }
  return {};
}

void Trainer::set_hyper(Index epoch, Index step) noexcept {
  const Hyper hyper = hyper_at(options_.recipe, epoch, options_.epochs, step, loader_.steps());
  std::copy_n(std::array{hyper.rate, hyper.momentum, hyper.weight_decay}.begin(), 3, hyper_.data());
}

Status Trainer::run_captured(const Batch& batch, StepRecord& record, const std::int32_t* previous_ok) {
  const Index count = batch.labels.elements();
  const Signature& signature = signatures_[count == loader_.count(0) ? 0 : 1];
  Result<CapturedStep*> step = plans_.try_get(signature, [&] { return capture(count); });
  if (!step) return std::move(step).error();
  CapturedStep& s = *step.value();
  s.replay.set(*s.pixels, batch.images.data());
  s.replay.set(*s.labels, batch.labels.data());
  s.replay.set(*s.previous_ok, previous_ok);
  s.replay.set(*s.loss, &record.metrics.loss);
  s.replay.set(*s.correct, &record.metrics.correct);
  s.replay.set(*s.squared_norm, &record.metrics.squared_norm);
  s.replay.set(*s.ok, &record.metrics.ok);
  s.replay.run();
  record_bytes_ = s.record_bytes;
  arena_bytes_ = s.replay.plan().arena_bytes();
  return {};
}

Result<Trainer::CapturedStep> Trainer::capture(Index count) {
  Tape tape(context_, TapeMode::record);
  const StepInputs inputs{.pixels = tape.placeholder(model_.try_batch_shape(count).value(), DType::u8),
                          .labels = tape.placeholder({count}, DType::i32),
                          .hyper = tape.input(hyper_.view()),
                          .max_norm = options_.recipe.clip_norm > 0 ? tape.input(max_norm_.view()) : Var{},
                          .previous_ok = tape.placeholder({}, DType::i32)};
  const StepResults results = record_train_step(tape, model_, state_.velocity, inputs);
  const Var outputs[] = {results.loss, results.correct, results.squared_norm, results.ok};
  Result<std::shared_ptr<const Plan>> captured = Plan::try_capture(tape, outputs, execution_.capture);
  if (!captured) return std::move(captured).error();
  const Plan& plan = *captured.value();
  Result<Replay> replay = Replay::try_make(captured.value(), context_, PortMemory::given);
  if (!replay) return std::move(replay).error();
  return CapturedStep{std::move(replay).value(),       plan.port(inputs.pixels), plan.port(inputs.labels),
                      plan.port(inputs.previous_ok),   plan.port(results.loss),  plan.port(results.correct),
                      plan.port(results.squared_norm), plan.port(results.ok),    tape.record_bytes()};
}

StepResults Trainer::record_eager(Tape& tape, const Batch& batch, const std::int32_t* previous_ok) {
  tape.clear();
  return record_train_step(tape, model_, state_.velocity,
                           {.pixels = tape.input(batch.images),
                            .labels = tape.input(batch.labels),
                            .hyper = tape.input(hyper_.view()),
                            .max_norm = options_.recipe.clip_norm > 0 ? tape.input(max_norm_.view()) : Var{},
                            .previous_ok = tape.input(LabelView(previous_ok, Shape()))});
}

void Trainer::run_eager(const Batch& batch, StepRecord& record, const std::int32_t* previous_ok) {
  const StepResults results = record_eager(tape_, batch, previous_ok);
  record.metrics = {tape_.item(results.loss), tape_.labels(results.correct).data()[0], tape_.item(results.squared_norm),
                    tape_.labels(results.ok).data()[0]};
  record_bytes_ = tape_.record_bytes();
  arena_bytes_ = tape_.arena_bytes();
}

const TrainState& Trainer::state() {
  read_reports();
  return state_;
}

double Trainer::gradient_norm() const noexcept { return std::sqrt(static_cast<double>(squared_norm_)); }

void Trainer::read_reports() {
  while (!reports_.empty()) {
    const StepRecord record = reports_.pop();
    if (record.metrics.ok == 0) {
      state_.epoch = record.epoch;
      state_.step = record.step;
      reports_.clear();
      error_ = explain(record);
      return;
    }
    squared_norm_ = record.metrics.squared_norm;
    state_.totals.loss_sum += static_cast<double>(record.metrics.loss) * static_cast<double>(record.samples);
    state_.totals.samples += record.samples;
    state_.totals.correct += record.metrics.correct;
  }
}

Status Trainer::take_error() {
  Error error = *std::move(error_);
  error_.reset();
  return error;
}

// The step is run once more, on a tape that keeps every value; it updates nothing this time either.
Error Trainer::explain(const StepRecord& record) {
  const std::int32_t stopped = 0;
  set_hyper(record.epoch, record.step);
  const StepResults results = record_eager(tape_, loader_.get(record.epoch, record.step), &stopped);
  const float loss = tape_.item(results.loss);

  std::string message = "training stopped in epoch " + std::to_string(record.epoch + 1) + ", step " +
                        std::to_string(record.step + 1) + ": the loss is " +
                        (std::isfinite(loss) ? "finite"
                         : std::isnan(loss)  ? "NaN"
                                             : "infinite");
  Index element = -1;
  for (std::size_t i = results.parameters.size(); i-- > 0 && element < 0;) {  // from the loss backwards
    const Var gradient = tape_.gradient(results.parameters[i]);
    element = gradient.id == kNoTensor ? -1 : first_non_finite(tape_.value(gradient));
    if (element < 0) continue;
    const std::string& name = model_.parameters()[i].name;
    message += "; the first gradient that went wrong, going back from the loss, is that of layer " + layer_of(name) + " (" +
               name + ", element " + std::to_string(element) + ")";
  }
  if (element < 0) message += "; all gradients are finite";
  for (std::size_t i = 0; i < results.layers.size(); ++i) {
    if (first_non_finite(tape_.value(results.layers[i])) < 0) continue;
    message += "; the first layer whose output is not finite is " + model_.layers()[i].name;
    break;
  }
  return Error(ErrorCode::non_finite,
               message + ". The weights are those before this step; a lower learning rate usually helps");
}

Status Trainer::check_state() const {
  const auto check = [](const std::vector<Parameter>& tensors, const char* what) -> Status {
    for (const auto& [name, value] : tensors) {
      const Index element = first_non_finite(value);
      if (element < 0) continue;
      return Error(ErrorCode::non_finite, std::string("training: the last update made the ") + what + " " + name +
                                              " infinite or NaN (element " + std::to_string(element) +
                                              "); a lower learning rate usually helps");
    }
    return {};
  };
  if (Status status = check(model_.parameters(), "parameter"); !status) return status;
  return check(state_.velocity, "velocity of");
}

Status Trainer::try_restore(TrainState state) {
  const bool past_end = state.epoch > options_.epochs || (state.epoch == options_.epochs && state.step > 0);
  if (state.epoch < 0 || past_end || state.step < 0 || state.step >= loader_.steps()) {
    return Error(ErrorCode::invalid_argument, "training: cannot go on at epoch " + std::to_string(state.epoch) + ", step " +
                                                  std::to_string(state.step) + " of " + std::to_string(options_.epochs) +
                                                  " epochs of " + std::to_string(loader_.steps()) + " steps");
  }
  const std::vector<Parameter>& parameters = model_.parameters();
  bool same = state.velocity.size() == parameters.size();
  for (std::size_t i = 0; same && i < parameters.size(); ++i) {
    same = state.velocity[i].name == parameters[i].name && state.velocity[i].value.shape() == parameters[i].value.shape();
  }
  if (!same) {
    return Error(ErrorCode::shape_mismatch, "training: the optimizer's velocities are not those of model \"" + model_.name() +
                                                "\": names and shapes must agree");
  }
  plans_.clear();  // they name the old velocities' memory
  reports_.clear();
  error_.reset();
  state_ = std::move(state);
  return {};
}

Status try_train(Context& context, Model& model, const Dataset& data, const TrainOptions& options) {
  Result<std::unique_ptr<Trainer>> trainer = Trainer::try_make(context, model, data, options);
  if (!trainer) return std::move(trainer).error();
  while (!trainer.value()->finished()) {
    if (Status status = trainer.value()->try_step(); !status) return status;
  }
  return {};
}

}  // namespace vitro
