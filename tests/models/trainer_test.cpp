// SPDX-License-Identifier: Apache-2.0
// Training: schedules, the same bits on every kernel table and thread count, what is counted, and divergence.
#include "../../models/trainer.hpp"

#include "small_training.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <vitro/models/lenet.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::quarters;
using vitro_test::small_model;
using vitro_test::small_options;

namespace {

std::string trained(const ContextOptions& where, const Dataset& data) {
  Context context(where);
  Model model = small_model();
  train(context, model, data, small_options());
  return model.weights_sha256();
}

struct Expected {
  double loss = 0;
  Index correct = 0;
};

// From the model's scores for one sample at a time, in double.
Expected naive_evaluation(const Model& model, const Dataset& data) {
  Context context;
  Expected result;
  for (Index i = 0; i < data.size(); ++i) {
    Tensor image({1, 8, 8, 1});
    for (Index p = 0; p < 64; ++p) image.data()[p] = static_cast<float>(data.images.data()[i * 64 + p]) / 255.0F;
    Tape tape(context);
    const ConstTensorView scores = tape.value(model.forward(tape.input(image.view()), model.place_constants(tape)));
    const auto label = static_cast<Index>(data.labels.data()[i]);
    double sum = 0;
    Index best = 0;
    for (Index c = 0; c < 4; ++c) {
      sum += std::exp(static_cast<double>(scores(0, c)));
      if (scores(0, c) > scores(0, best)) best = c;
    }
    result.loss += (std::log(sum) - static_cast<double>(scores(0, label))) / static_cast<double>(data.size());
    result.correct += best == label ? 1 : 0;
  }
  return result;
}

}  // namespace

TEST_CASE("The seed recipe warms up over 5 epochs and lowers momentum every 10") {
  const Recipe r = seed_recipe();
  CHECK(hyper_at(r, 0, 20, 0, 100).rate == 0.01F / 500);
  CHECK(hyper_at(r, 2, 20, 49, 100).rate == 0.005F);
  CHECK(hyper_at(r, 4, 20, 99, 100).rate == 0.01F);
  CHECK(hyper_at(r, 19, 20, 99, 100).rate == 0.01F);
  CHECK(hyper_at(r, 9, 20, 0, 100).momentum == 0.9F);
  CHECK(hyper_at(r, 10, 20, 0, 100).momentum == 0.89F);
  CHECK(hyper_at(r, 390, 500, 0, 100).momentum == 0.51F);
  CHECK(hyper_at(r, 499, 500, 0, 100).momentum == 0.5F);
  CHECK(hyper_at(r, 3, 20, 5, 100).weight_decay == 0.0F);
}

TEST_CASE("The default recipe's rate is half a cosine after one epoch of warm-up") {
  const Recipe r = default_recipe();
  CHECK(hyper_at(r, 0, 20, 99, 100).rate == 0.05F);
  for (Index epoch = 1; epoch < 20; ++epoch) {
    for (Index step : {0, 37, 99}) {
      const double t = static_cast<double>((epoch - 1) * 100 + step) / 1900.0;
      const double expected = 0.05 * (1.0 + std::cos(3.14159265358979323846 * t)) / 2.0;
      CHECK(std::abs(static_cast<double>(hyper_at(r, epoch, 20, step, 100).rate) - expected) < 1e-8);
    }
  }
  CHECK_THAT(try_recipe("sead").error().message(), ContainsSubstring("\"default\" and \"seed\""));
}

TEST_CASE("Training learns, and evaluation counts every image once") {
  Context context;
  const Dataset data = quarters(300, 8);
  Model model = small_model();
  const Evaluation before = evaluate(context, model, data);
  train(context, model, data, small_options());
  const Evaluation after = evaluate(context, model, data, 7);
  CHECK(before.accuracy() < 0.7);
  CHECK(after.accuracy() > 0.95);
  CHECK(after.loss < before.loss);
  Index total = 0, diagonal = 0;
  for (Index i = 0; i < 16; ++i) total += after.confusion[static_cast<std::size_t>(i)];
  for (Index i = 0; i < 4; ++i) diagonal += after.confusion[static_cast<std::size_t>(5 * i)];
  CHECK(total == 300);
  CHECK(diagonal == after.correct);
  const Evaluation again = evaluate(context, model, data, 300);
  CHECK(again.confusion == after.confusion);
}

TEST_CASE("Training ends with the same bits on every kernel table and from 1 to 7 threads") {
  const Dataset data = quarters(100, 8);
  const std::string expected = trained({Isa::scalar, 1}, data);
  for (int threads = 1; threads <= 7; ++threads) CHECK(trained({std::nullopt, threads}, data) == expected);
  for (Isa isa : {Isa::scalar, Isa::blocked, Isa::avx2, Isa::avx512}) {
    if (Context::try_make({isa, 1}).ok()) CHECK(trained({isa, 3}, data) == expected);
  }
}

TEST_CASE("A training cannot go on from outside of itself or with another model's velocities") {
  const Dataset data = quarters(50, 8);
  Context context;
  Model model = small_model();
  Trainer trainer(context, model, data, small_options());
  TrainState outside = trainer.state();
  outside.step = 3;
  CHECK_THAT(trainer.try_restore(outside).error().message(), ContainsSubstring("step 3"));
  outside.epoch = 3;
  outside.step = 1;
  CHECK_THAT(trainer.try_restore(outside).error().message(), ContainsSubstring("epoch 3, step 1"));
  outside.step = 0;
  outside.velocity.pop_back();
  CHECK_THAT(trainer.try_restore(outside).error().message(), ContainsSubstring("velocities"));
}

TEST_CASE("An epoch's loss and accuracy count every sample once, also those of a batch that is not full") {
  const Dataset data = quarters(50, 8);  // batches of 24, 24 and 2
  Context context;
  Model model = small_model();
  TrainOptions options = small_options();
  options.recipe.rate = 0;
  options.recipe.shift = 0;
  Trainer trainer(context, model, data, options);
  for (int step = 0; step < 3; ++step) trainer.try_step().value();
  const Expected expected = naive_evaluation(model, data);
  CHECK(std::abs(trainer.last_epoch().loss() - expected.loss) < 1e-6);
  CHECK(trainer.last_epoch().correct == expected.correct);
  for (Index batch : {7, 24, 50}) {
    const Evaluation test = evaluate(context, model, data, batch);
    CHECK(std::abs(test.loss - expected.loss) < 1e-6);
    CHECK(test.correct == expected.correct);
  }
}

TEST_CASE("The confusion matrix has a row for what is there and a column for what the model says") {
  const Dataset data = quarters(60, 8);
  std::vector<Index> counts(4);
  for (std::int32_t label : data.labels.span()) ++counts[static_cast<std::size_t>(label)];
  Model model = small_model();
  for (Parameter& parameter : model.parameters()) std::fill_n(parameter.value.data(), parameter.value.elements(), 0.0F);
  model.parameters().back().value.data()[2] = 1.0F;  // the bias of class 2: always that
  Context context;
  const Evaluation test = evaluate(context, model, data);
  for (std::size_t actual = 0; actual < 4; ++actual) {
    for (std::size_t predicted = 0; predicted < 4; ++predicted) {
      CHECK(test.confusion[actual * 4 + predicted] == (predicted == 2 ? counts[actual] : 0));
    }
  }
}

TEST_CASE("An update that overflows is found before the state is saved") {
  const Dataset data = quarters(50, 8);
  Context context;
  Model model = small_model();
  Trainer trainer(context, model, data, small_options());
  REQUIRE(trainer.check_state().ok());
  model.parameters()[1].value.data()[2] = std::numeric_limits<float>::infinity();
  const Status status = trainer.check_state();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::non_finite);
  CHECK_THAT(status.error().message(), ContainsSubstring("parameter conv.bias") && ContainsSubstring("element 2"));
  model.parameters()[1].value.data()[2] = 0;
  TrainState state = trainer.state();
  state.velocity[2].value.data()[5] = std::numeric_limits<float>::quiet_NaN();
  trainer.try_restore(std::move(state)).value();
  CHECK_THAT(trainer.check_state().error().message(), ContainsSubstring("velocity of fc.weight"));
}

TEST_CASE("A step whose numbers are not finite changes nothing and names the layers") {
  const Dataset data = quarters(50, 8);
  for (const bool captured : {true, false}) {
    Context context;
    Model model = small_model();
    model.parameters()[0].value.data()[3] = std::numeric_limits<float>::quiet_NaN();
    Trainer trainer(context, model, data, small_options(), {.captured = captured});
    const std::string before = model.weights_sha256();
    Status status = trainer.try_step();
    CHECK(trainer.state().step == 0);  // asking reads what the step has reported
    if (status) status = trainer.try_step();
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::non_finite);
    CHECK_THAT(status.error().message(), ContainsSubstring("epoch 1, step 1") && ContainsSubstring("the loss is NaN") &&
                                             ContainsSubstring("layer fc") && ContainsSubstring("not finite is conv"));
    CHECK(model.weights_sha256() == before);
  }
}

TEST_CASE("A step that goes wrong in the middle of an epoch is told late, but nothing is updated from it on") {
  const Dataset data = quarters(300, 8);
  TrainOptions options = small_options();
  options.batch = 5;  // 60 steps an epoch
  Context context;
  Model model = small_model();
  Trainer trainer(context, model, data, options);
  for (int step = 0; step < 7; ++step) trainer.try_step().value();
  const TrainState good = trainer.state();
  const float weight = std::exchange(model.parameters()[2].value.data()[1], std::numeric_limits<float>::infinity());
  const std::string before = model.weights_sha256();
  Status status;
  int steps = 0;
  while (status && ++steps < 100) status = trainer.try_step();
  REQUIRE_FALSE(status.ok());
  CHECK(steps == 53);  // the rest of the epoch
  CHECK_THAT(status.error().message(), ContainsSubstring("epoch 1, step 8"));
  CHECK(model.weights_sha256() == before);
  CHECK(trainer.state().step == 7);
  CHECK(trainer.state().totals.loss_sum == good.totals.loss_sum);
  CHECK(trainer.state().totals.samples == 35);
  for (std::size_t i = 0; i < good.velocity.size(); ++i) {
    CHECK(std::ranges::equal(trainer.state().velocity[i].value.span(), good.velocity[i].value.span()));
  }
  // Mended, it goes on as if nothing had been.
  model.parameters()[2].value.data()[1] = weight;
  while (!trainer.finished()) trainer.try_step().value();
  Model same = small_model();
  train(context, same, data, options);
  CHECK(model.weights_sha256() == same.weights_sha256());
}

TEST_CASE("Captured or not, fused or not, and however batches are gathered, a training has the same bits") {
  const Dataset data = quarters(100, 8);
  TrainOptions options = small_options();
  options.recipe.momentum_drop = 0.1F;
  options.recipe.momentum_epochs = 1;
  options.recipe.clip_norm = GENERATE(0.0F, 0.5F);
  const auto outcome = [&](const TrainExecution& execution) {
    Context context;
    Model model = small_model();
    Trainer trainer(context, model, data, options, execution);
    while (!trainer.finished()) trainer.try_step().value();
    return model.weights_sha256() + " " + std::to_string(trainer.last_epoch().loss_sum);
  };
  const std::string expected = outcome({.captured = false});
  for (const bool fuse : {true, false}) {
    for (const bool reuse : {true, false}) CHECK(outcome({.capture = {fuse, reuse}}) == expected);
  }
  CHECK(outcome({.input = InputPolicy::buffered}) == expected);
  CHECK(outcome({.input = InputPolicy::prefetch}) == expected);
  CHECK(outcome({.captured = false, .input = InputPolicy::prefetch}) == expected);
}

TEST_CASE("A gradient longer than the clipping norm is brought to that length, a shorter one left alone") {
  const Dataset data = quarters(24, 8);
  TrainOptions options = small_options();
  options.recipe = Recipe{.name = "plain", .rate = 1.0F, .momentum = 0.0F};
  const auto step = [&](float clip_norm) {  // what one step adds to the weights, and the gradient's length before clipping
    options.recipe.clip_norm = clip_norm;
    Context context;
    Model model = small_model();
    const Model start = model;
    Trainer trainer(context, model, data, options);
    trainer.try_step().value();
    double squares = 0;
    for (std::size_t i = 0; i < start.parameters().size(); ++i) {
      for (Index j = 0; j < start.parameters()[i].value.elements(); ++j) {
        const double change = static_cast<double>(model.parameters()[i].value.data()[j]) -
                              static_cast<double>(start.parameters()[i].value.data()[j]);
        squares += change * change;
      }
    }
    trainer.state();
    return std::pair(std::sqrt(squares), trainer.gradient_norm());
  };
  const auto [length, norm] = step(0);
  CHECK(std::abs(length - norm) < 1e-5 * norm);
  const auto limit = static_cast<float>(norm / 3);
  CHECK(std::abs(step(limit).first - norm / 3) < 1e-5 * norm);
  CHECK(step(limit).second == norm);
  CHECK(step(static_cast<float>(norm * 1.01)).first == length);
}

TEST_CASE("A training that is restored in the middle goes on with plans of its own") {
  const Dataset data = quarters(100, 8);
  Context context;
  Model model = small_model(), same = small_model();
  train(context, same, data, small_options());
  Trainer trainer(context, model, data, small_options());
  for (int step = 0; step < 7; ++step) trainer.try_step().value();
  TrainState state = trainer.state();
  const Model saved = model;
  for (int step = 0; step < 3; ++step) trainer.try_step().value();
  for (std::size_t i = 0; i < saved.parameters().size(); ++i) {
    std::ranges::copy(saved.parameters()[i].value.span(), model.parameters()[i].value.data());
  }
  trainer.try_restore(std::move(state)).value();
  while (!trainer.finished()) trainer.try_step().value();
  CHECK(model.weights_sha256() == same.weights_sha256());
}

TEST_CASE("Data that does not fit the model is refused with both shapes") {
  Context context;
  Model model = small_model();
  const Dataset large = quarters(10, 9);
  CHECK_THAT(Trainer::try_make(context, model, large, {}).error().message(),
             ContainsSubstring("[8, 8, 1]") && ContainsSubstring("[10, 9, 9, 1]"));
  Dataset data = quarters(10, 8);
  data.labels.data()[7] = 4;
  CHECK_THAT(try_evaluate(context, model, data).error().message(), ContainsSubstring("label 4 in row 7"));
  data.labels.data()[7] = -1;
  CHECK_THAT(try_evaluate(context, model, data).error().message(), ContainsSubstring("label -1 in row 7"));
  CHECK_THAT(Trainer::try_make(context, model, data, {}).error().message(), ContainsSubstring("label -1 in row 7"));
  data.labels = LabelTensor({9});
  CHECK_THAT(try_evaluate(context, model, data).error().message(), ContainsSubstring("10 images and 9 labels"));
  TrainOptions options;
  options.batch = 0;
  CHECK_THAT(Trainer::try_make(context, model, quarters(10, 8), options).error().message(), ContainsSubstring("batch is 0"));
}

TEST_CASE("A training that nothing can come of is refused") {
  Context context;
  Model flat("flat", {2, 2, 1}, {{"flatten", FlattenLayer{}}}, 1);
  const Dataset data = quarters(10, 2);
  CHECK_THAT(Trainer::try_make(context, flat, data, {}).error().message(), ContainsSubstring("\"flat\" has nothing to train"));
  Model dead("dead", {2, 2, 1},
             {{"flatten", FlattenLayer{}}, {"fc", LinearLayer{4}, {"flatten"}}, {"relu", ReluLayer{}, {"flatten"}}}, 1);
  CHECK_THAT(Trainer::try_make(context, dead, data, {}).error().message(), ContainsSubstring("nothing to train"));
  Model model = small_model();
  TrainOptions options;
  for (const float norm : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    options.recipe.clip_norm = norm;
    CHECK_THAT(Trainer::try_make(context, model, quarters(10, 8), options).error().message(), ContainsSubstring("clip_norm"));
  }
}

TEST_CASE("An epoch of more steps than the ring holds, unasked, has the totals of one that is asked after every step") {
  const Dataset data = quarters(300, 8);
  TrainOptions options = small_options();
  options.epochs = 1;
  options.batch = 2;  // 150 steps
  const auto totals = [&](bool ask) {
    Context context;
    Model model = small_model();
    Trainer trainer(context, model, data, options);
    while (!trainer.finished()) {
      trainer.try_step().value();
      if (ask) trainer.state();
    }
    return trainer.last_epoch();
  };
  const EpochTotals asked = totals(true), unasked = totals(false);
  CHECK(unasked.samples == 300);
  CHECK(unasked.correct == asked.correct);
  CHECK(unasked.loss_sum == asked.loss_sum);
}

TEST_CASE("A training step of LeNet-5 at batch 64 leaves a tape under 16 KB") {
  Context context;
  Model model = models::lenet5();
  const Dataset data = quarters(64, 28);
  Trainer trainer(context, model, data, {});
  trainer.try_step().value();
  UNSCOPED_INFO("tape: " << trainer.record_bytes() << " bytes, arena: " << trainer.arena_bytes());
  CHECK(trainer.record_bytes() < 16 * 1024);
  CHECK(trainer.record_bytes() > 1024);
}
