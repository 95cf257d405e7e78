// SPDX-License-Identifier: Apache-2.0
// A residual network and LeNet-5 trained for 200 steps: captured as on the tape, on every instruction set and 1 to 4 threads.
#include "../ops/support.hpp"
#include "small_training.hpp"

#include <vitro/autograd/replay.hpp>
#include <vitro/models/lenet.hpp>
#include <vitro/models/train_step.hpp>

using namespace vitro;
using namespace vitro_test;

namespace {

constexpr Index kSteps = 200;

// conv - relu - conv - add - relu, twice, behind a first convolution.
Model residual_network() {
  const auto conv = [](Index channels) {
    return Conv2dLayer{.out_channels = channels,
                       .kernel_h = 3,
                       .kernel_w = 3,
                       .attrs = {.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}};
  };
  std::vector<Layer> layers = {{"stem", conv(4)}};
  std::string before = "stem";
  for (const std::string block : {"a", "b"}) {
    layers.push_back({block + ".conv1", conv(4)});
    layers.push_back({block + ".relu1", ReluLayer{}});
    layers.push_back({block + ".conv2", conv(4)});
    layers.push_back({block + ".add", AddLayer{}, {block + ".conv2", before}});
    layers.push_back({block + ".relu2", ReluLayer{}});
    before = block + ".relu2";
  }
  layers.push_back({"pool", MaxPool2dLayer{{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}});
  layers.push_back({"flatten", FlattenLayer{}});
  layers.push_back({"fc", LinearLayer{4}});
  return Model("residual", {8, 8, 1}, layers, 2);
}

// A training with the memory that its step reads, and what it leaves.
struct Training {
  Model model;
  Dataset data;
  Index batch;
  std::vector<Parameter> velocity;
  Tensor hyper{{3}}, max_norm{Shape()};
  LabelTensor previous_ok{Shape()};
  ByteTensor pixels;
  LabelTensor labels{{batch}};
  std::vector<float> losses = {};

  Training(Model m, Index samples_per_batch)
      : model(std::move(m)),
        data(quarters(8 * samples_per_batch, model.input_shape()[0])),
        batch(samples_per_batch),
        velocity(model.parameters()),
        pixels({batch, model.input_shape()[0], model.input_shape()[1], 1}) {
    for (Parameter& v : velocity) std::fill_n(v.value.data(), v.value.elements(), 0.0F);
    max_norm.data()[0] = 1.0F;  // clips now and then
    previous_ok.data()[0] = 1;
  }

  StepResults record(Tape& tape) {
    const StepInputs inputs{.pixels = tape.input(BasicView<const std::uint8_t>(pixels)),
                            .labels = tape.input(labels.view()),
                            .hyper = tape.input(hyper.view()),
                            .max_norm = tape.input(max_norm.view()),
                            .previous_ok = tape.input(previous_ok.view())};
    return record_train_step(tape, model, velocity, inputs);
  }
  void begin_step(Index step) {
    Recipe recipe = seed_recipe();
    recipe.rate = 0.05F;
    recipe.warmup_epochs = 1;
    recipe.momentum_epochs = 1;
    recipe.momentum_drop = 0.05F;
    const Hyper h = hyper_at(recipe, step / 20, kSteps / 20, step % 20, 20);
    hyper.data()[0] = h.rate, hyper.data()[1] = h.momentum, hyper.data()[2] = 1e-3F;
    const Index first = step % 8 * batch;
    std::copy_n(data.images.data() + first * pixels.elements() / batch, pixels.elements(), pixels.data());
    std::copy_n(data.labels.data() + first, batch, labels.data());
  }
  bool same(const Training& other) const {
    bool equal = losses == other.losses && model.weights_sha256() == other.model.weights_sha256();
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      const Tensor &a = velocity[i].value, &b = other.velocity[i].value;
      equal = equal && std::equal(a.data(), a.data() + a.elements(), b.data());
    }
    return equal;
  }
};

Training run_eagerly(const Model& model, Index batch, Context& context) {
  Training training(model, batch);
  Tape tape(context);
  for (Index step = 0; step < kSteps; ++step) {
    tape.clear();
    training.begin_step(step);
    training.losses.push_back(tape.item(training.record(tape).loss));
  }
  return training;
}

Training run_captured(const Model& model, Index batch, Context& context, const CaptureOptions& options) {
  Training training(model, batch);
  Tape tape(context, TapeMode::record);
  const Var loss = training.record(tape).loss;
  Replay replay(Plan::capture(tape, std::vector<Var>{loss}, options), context);
  for (Index step = 0; step < kSteps; ++step) {
    training.begin_step(step);
    replay.run();
    training.losses.push_back(*replay.try_value(loss).value().data());
  }
  return training;
}

void compare(const Model& model, Index batch) {
  Context best;
  const Training expected = run_eagerly(model, batch, best);
  CHECK(expected.losses.back() < 0.8F * expected.losses.front());
  for (const auto& context : make_contexts()) {
    if (context->threads() > 4) continue;
    for (const bool fuse : {true, false}) {
      for (const bool reuse : {true, false}) {
        INFO(name_of(*context) << ", fuse " << fuse << ", reuse " << reuse);
        CHECK(run_captured(model, batch, *context, {.fuse = fuse, .reuse_memory = reuse}).same(expected));
      }
    }
  }
}

}  // namespace

TEST_CASE("A residual network trains to the same bits captured as on the tape") { compare(residual_network(), 3); }
TEST_CASE("LeNet-5 trains to the same bits captured as on the tape") { compare(models::lenet5(), 2); }

TEST_CASE("The residual network's sums join the convolutions in front of them") {
  Context context;
  Model model = residual_network();
  Tape tape(context, TapeMode::record);
  const Var scores = model.forward(tape.placeholder({1, 8, 8, 1}), model.place_constants(tape));
  const auto plan = Plan::capture(tape, std::vector<Var>{scores});
  CHECK(plan->steps() == 7);  // 5 convolutions, pool, linear
  CHECK(plan->describe().find("conv2d + add + relu") != std::string::npos);
}
