// SPDX-License-Identifier: Apache-2.0
// Compares LeNet-5 with PyTorch's double-precision results: logits and gradients of one batch, and ten steps of training.
#include "../../models/lenet.hpp"
#include "../../models/trainer.hpp"
#include "../golden/golden_file.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace vitro;

const golden::Case& lenet() {
  static const golden::File file("lenet");
  return file.cases().at(0);
}

// LeNet-5 with the weights that the file starts from.
Model initial_model() {
  Model model = models::lenet5();
  for (Parameter& parameter : model.parameters()) {
    Tensor value = lenet().input("initial/" + parameter.name);
    REQUIRE(value.shape() == parameter.value.shape());
    parameter.value = std::move(value);
  }
  return model;
}

// The images and labels of one step, as the file stores them.
Dataset batch(Index step) {
  const BasicTensor<std::uint8_t> images = lenet().bytes("images");
  const LabelTensor labels = lenet().labels("labels");
  const Index size = labels.shape()[1];
  Dataset data{"batch " + std::to_string(step), ByteTensor({size, 28, 28, 1}), LabelTensor({size})};
  std::memcpy(data.images.data(), images.data() + step * data.images.elements(), data.images.span().size_bytes());
  std::memcpy(data.labels.data(), labels.data() + step * size, data.labels.span().size_bytes());
  return data;
}

Index steps() { return lenet().labels("labels").shape()[0]; }
float attribute(const char* name) { return lenet().attrs().at(name).get<float>(); }

// Fails unless the distance is allowed; prints it.
void check(const std::string& name, ConstTensorView ours) {
  const double distance = golden::distance(ours, lenet().reference(name));
  std::printf("golden lenet %-18s distance %.2e\n", name.c_str(), distance);
  INFO(name << " is off by " << distance << " of the reference's largest magnitude");
  CHECK(distance <= golden::kTolerance);
}

void check_trained(const Model& model, const std::vector<float>& losses) {
  Tensor recorded(Shape{static_cast<Index>(losses.size())});
  std::copy(losses.begin(), losses.end(), recorded.data());
  check("losses", recorded);
  for (const Parameter& parameter : model.parameters()) check("final/" + parameter.name, parameter.value);
}

// What a training step has on a tape.
struct Recorded {
  std::vector<Var> parameters;
  Var logits, loss;
};

Recorded record(Tape& tape, Model& model, const Tensor& pixels, const LabelTensor& labels) {
  Recorded result{model.place_parameters(tape), {}, {}};
  result.logits = model.forward(tape.input(pixels.view()), result.parameters);
  result.loss = cross_entropy(result.logits, tape.input(labels.view()));
  tape.backward(result.loss);
  return result;
}

Tensor pixels_of(Context& context, const Dataset& data) {
  Tensor pixels(data.images.shape());
  context.kernels().bytes_to_unit(pixels.elements(), data.images.data(), pixels.data());
  return pixels;
}

}  // namespace

TEST_CASE("LeNet-5's logits and all its gradients agree with PyTorch") {
  Context context;
  Model model = initial_model();
  const Dataset data = batch(0);
  const Tensor pixels = pixels_of(context, data);
  Tape tape(context);
  const Recorded recorded = record(tape, model, pixels, data.labels);

  check("logits", tape.value(recorded.logits));
  REQUIRE(recorded.parameters.size() == 10);
  for (std::size_t i = 0; i < recorded.parameters.size(); ++i) {
    check("grad/" + model.parameters()[i].name, tape.value(tape.gradient(recorded.parameters[i])));
  }
}

TEST_CASE("ten steps of SGD written on the tape agree with PyTorch in every loss and in the final weights") {
  Context context;
  Model model = initial_model();
  std::vector<Tensor> velocities;
  for (const Parameter& parameter : model.parameters()) velocities.emplace_back(parameter.value.shape());
  Tensor hyper(Shape{3});
  hyper.span()[0] = attribute("rate");
  hyper.span()[1] = attribute("momentum");
  hyper.span()[2] = attribute("weight_decay");

  Tape tape(context);
  std::vector<float> losses;
  for (Index i = 0; i < steps(); ++i) {
    const Dataset data = batch(i);
    const Tensor pixels = pixels_of(context, data);
    tape.clear();
    const Recorded recorded = record(tape, model, pixels, data.labels);
    const Var rates = tape.input(hyper.view());
    for (std::size_t p = 0; p < velocities.size(); ++p) {
      sgd_update(recorded.parameters[p], tape.state(velocities[p]), tape.gradient(recorded.parameters[p]), rates);
    }
    losses.push_back(tape.item(recorded.loss));
  }
  check_trained(model, losses);
}

TEST_CASE("ten steps of the trainer agree with PyTorch in every loss and in the final weights") {
  Context context;
  Model model = initial_model();
  TrainOptions options;
  options.epochs = 1;
  options.batch = batch(0).size();
  options.recipe = Recipe{};
  options.recipe.rate = attribute("rate");
  options.recipe.momentum = attribute("momentum");
  options.recipe.weight_decay = attribute("weight_decay");

  // Each batch is a data set of its own, one step long, so that the trainer's shuffling only reorders the batch's rows; the
  // velocity is handed on.
  std::vector<Parameter> velocity;
  std::vector<float> losses;
  for (Index i = 0; i < steps(); ++i) {
    const Dataset data = batch(i);
    Trainer trainer(context, model, data, options);
    if (i > 0) {
      TrainState state;
      state.velocity = velocity;
      const Status restored = trainer.try_restore(std::move(state));
      REQUIRE(restored.ok());
    }
    REQUIRE(trainer.try_step().ok());
    losses.push_back(static_cast<float>(trainer.last_epoch().loss()));
    velocity = trainer.state().velocity;
  }
  check_trained(model, losses);
}
