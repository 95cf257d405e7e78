// SPDX-License-Identifier: Apache-2.0
// Recording the training step.
#include "train_step.hpp"

namespace vitro {

StepResults record_train_step(Tape& tape, Model& model, std::span<Parameter> velocity, const StepInputs& inputs) {
  StepResults results;
  results.parameters = model.place_parameters(tape);
  results.layers = model.forward_layers(bytes_to_unit(inputs.pixels), results.parameters);
  const Var scores = results.layers.back();
  results.loss = cross_entropy(scores, inputs.labels);
  results.correct = count_correct(scores, inputs.labels);
  tape.backward(results.loss);

  // The loss first: its own square stands for it in all_finite, but not in the gradient's norm.
  results.ok = all_finite(results.loss, sum_squares(results.loss), inputs.previous_ok);
  std::vector<Var> gradients;
  for (const Var parameter : results.parameters) {
    const Var gradient = tape.gradient(parameter);
    gradients.push_back(gradient);
    if (gradient.id == kNoTensor) continue;
    results.squared_norm =
        results.squared_norm.tape == nullptr ? sum_squares(gradient) : sum_squares(gradient, results.squared_norm);
    results.ok = all_finite(gradient, results.squared_norm, results.ok);
  }
  if (inputs.max_norm.tape != nullptr) {
    const Var factor = clip_factor(results.squared_norm, inputs.max_norm);
    for (Var& gradient : gradients) {
      if (gradient.id != kNoTensor) gradient = mul(gradient, factor);
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {  // side by side, so that they can become one step
    if (gradients[i].id == kNoTensor) continue;
    sgd_update(results.parameters[i], tape.state(velocity[i].value), gradients[i], inputs.hyper, results.ok);
  }
  return results;
}

}  // namespace vitro
