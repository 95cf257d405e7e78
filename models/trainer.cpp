// SPDX-License-Identifier: Apache-2.0
// The training step, and what is said when numbers stop being finite.
#include "trainer.hpp"

#include "../ops/metrics.hpp"

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
  return at_least_one("the number of images", data.size());
}

Index first_non_finite(ConstTensorView view) {
  for (Index i = 0; i < view.elements(); ++i) {
    if (!std::isfinite(view.data()[i])) return i;
  }
  return -1;
}

std::string layer_of(const std::string& parameter) { return parameter.substr(0, parameter.rfind('.')); }

}  // namespace

double EpochTotals::loss() const noexcept { return samples == 0 ? 0.0 : loss_sum / static_cast<double>(samples); }

double EpochTotals::accuracy() const noexcept {
  return samples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(samples);
}

Trainer::Trainer(Context& context, Model& model, const Dataset& data, const TrainOptions& options)
    : context_(context),
      model_(model),
      data_(data),
      options_((check_options(model, data, options).value(), options)),
      sampler_(data.size(), std::min(options.batch, data.size()), options.seed),
      bytes_(data.images.shape().with(0, std::min(options.batch, data.size()))),
      images_(bytes_.shape()),
      labels_({bytes_.shape()[0]}),
      hyper_({3}),
      tape_(context) {
  for (const Parameter& parameter : model.parameters())
    state_.velocity.push_back({parameter.name, Tensor(parameter.value.shape())});
}

Result<std::unique_ptr<Trainer>> Trainer::try_make(Context& context, Model& model, const Dataset& data,
                                                   const TrainOptions& options) {
  if (Status status = check_options(model, data, options); !status) return std::move(status).error();
  return std::make_unique<Trainer>(context, model, data, options);
}

Status Trainer::try_step() {
  const Index steps = sampler_.steps();
  const std::span<const std::uint32_t> samples = sampler_.batch(state_.epoch, state_.step);
  const auto count = static_cast<Index>(samples.size());
  const Shape shape = images_.shape().with(0, count);
  const RandomShift shift{options_.recipe.shift, options_.seed, state_.epoch};
  gather_batch(data_, samples, shift, BasicView<std::uint8_t>(bytes_.data(), shape),
               BasicView<std::int32_t>(labels_.data(), Shape({count})));
  context_.kernels().bytes_to_unit(shape.elements(), bytes_.data(), images_.data());
  const Hyper hyper = hyper_at(options_.recipe, state_.epoch, options_.epochs, state_.step, steps);
  std::copy_n(std::array{hyper.rate, hyper.momentum, hyper.weight_decay}.begin(), 3, hyper_.data());

  tape_.clear();
  const std::vector<Var> parameters = model_.place_parameters(tape_);
  const std::vector<Var> layers = model_.forward_layers(tape_.input(ConstTensorView(images_.data(), shape)), parameters);
  const Var labels = tape_.input(LabelView(labels_.data(), Shape({count})));
  const Var loss_var = cross_entropy(layers.back(), labels);
  tape_.backward(loss_var);
  const float loss = tape_.item(loss_var);
  if (Status status = check_finite(loss, layers, parameters); !status) return status;
  const Var hyper_var = tape_.input(hyper_.view());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Var gradient = tape_.gradient(parameters[i]);
    if (gradient.id != kNoTensor) sgd_update(parameters[i], tape_.state(state_.velocity[i].value), gradient, hyper_var);
  }

  state_.totals.loss_sum += static_cast<double>(loss) * static_cast<double>(count);
  state_.totals.samples += count;
  state_.totals.correct += ops::count_correct(tape_.value(layers.back()), tape_.labels(labels));
  if (++state_.step == steps) {
    last_epoch_ = std::exchange(state_.totals, EpochTotals{});
    state_.step = 0;
    ++state_.epoch;
  }
  return {};
}

Status Trainer::check_finite(float loss, std::span<const Var> layers, std::span<const Var> parameters) const {
  // A sum of squares is finite only if all elements are; one that overflows is looked at element by element.
  std::size_t bad = parameters.size();
  Index element = -1;
  for (std::size_t i = parameters.size(); i-- > 0 && element < 0;) {  // from the loss backwards
    const Var gradient = tape_.gradient(parameters[i]);
    if (gradient.id == kNoTensor) continue;
    const ConstTensorView view = tape_.value(gradient);
    if (std::isfinite(context_.kernels().sum_squares(view.elements(), view.data()))) continue;
    element = first_non_finite(view);
    if (element >= 0) bad = i;
  }
  if (std::isfinite(loss) && element < 0) return {};

  std::string message = "training stopped in epoch " + std::to_string(state_.epoch + 1) + ", step " +
                        std::to_string(state_.step + 1) + ": the loss is " +
                        (std::isfinite(loss) ? "finite"
                         : std::isnan(loss)  ? "NaN"
                                             : "infinite");
  if (element >= 0) {
    const std::string& name = model_.parameters()[bad].name;
    message += "; the first gradient that went wrong, going back from the loss, is that of layer " + layer_of(name) + " (" +
               name + ", element " + std::to_string(element) + ")";
  } else {
    message += "; all gradients are finite";
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (first_non_finite(tape_.value(layers[i])) < 0) continue;
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
  if (state.epoch < 0 || past_end || state.step < 0 || state.step >= sampler_.steps()) {
    return Error(ErrorCode::invalid_argument, "training: cannot go on at epoch " + std::to_string(state.epoch) + ", step " +
                                                  std::to_string(state.step) + " of " + std::to_string(options_.epochs) +
                                                  " epochs of " + std::to_string(sampler_.steps()) + " steps");
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
