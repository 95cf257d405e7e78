// SPDX-License-Identifier: Apache-2.0
// Training: schedules, the same bits on every kernel table and thread count, interruption and going on, and divergence.
#include "../../models/trainer.hpp"

#include "../support/errors.hpp"
#include "../support/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vitro/core/random.hpp>
#include <vitro/models/lenet.hpp>
#include <vitro/models/training_file.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::error_of;

namespace {

// Images whose brightest quarter is the label.
Dataset quarters(Index count, Index size) {
  Dataset data{"quarters", ByteTensor({count, size, size, 1}), LabelTensor({count})};
  const Philox random(5, 1);
  for (Index i = 0; i < count; ++i) {
    const auto label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(i), 4));
    data.labels.data()[i] = label;
    for (Index h = 0; h < size; ++h) {
      for (Index w = 0; w < size; ++w) {
        const bool bright = (h >= size / 2 ? 2 : 0) + (w >= size / 2 ? 1 : 0) == label;
        const Index pixel = (i * size + h) * size + w;
        const std::uint32_t noise = Philox(5, 2).below(static_cast<std::uint64_t>(pixel), 100);
        data.images.data()[pixel] = static_cast<std::uint8_t>(noise + (bright ? 120 : 0));
      }
    }
  }
  return data;
}

Model small_model() {
  return Model("small", {8, 8, 1},
               {{"conv", Conv2dLayer{.out_channels = 5, .kernel_h = 3, .kernel_w = 3, .attrs = {}}},
                {"relu", ReluLayer{}},
                {"pool", MaxPool2dLayer{{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}},
                {"flatten", FlattenLayer{}},
                {"fc", LinearLayer{4}}},
               3);
}

TrainOptions small_options() {
  TrainOptions options;
  options.epochs = 3;
  options.batch = 24;
  options.recipe.shift = 1;
  return options;
}

std::string trained(const ContextOptions& where, const Dataset& data) {
  Context context(where);
  Model model = small_model();
  train(context, model, data, small_options());
  return model.weights_sha256();
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

TEST_CASE("A training that is interrupted anywhere, saved and taken up ends with the bits of one that was not") {
  const Dataset data = quarters(100, 8);
  const std::string expected = trained({}, data);
  for (int stop : {1, 4, 5, 7, 14}) {
    const vitro_test::TemporaryFolder folder;
    Context context;
    {
      Model model = small_model();
      Trainer trainer(context, model, data, small_options());
      for (int step = 0; step < stop; ++step) trainer.try_step().value();
      model.save(folder.path());
      const std::vector<EpochRecord> history = {{0.25, 0.5, 0.125, 1.5}};
      try_save_training(folder.path(), model, {trainer.options(), data.size(), trainer.state(), history}).value();
    }
    Model model = Model::load(folder.path());
    REQUIRE(has_training(folder.path()));
    Training saved = try_load_training(folder.path(), model).value();
    CHECK(saved.samples == 100);
    REQUIRE(saved.history.size() == 1);
    CHECK(saved.history[0].test_accuracy == 0.125);
    CHECK(saved.options.recipe.shift == 1);
    Trainer trainer(context, model, data, saved.options);
    trainer.try_restore(std::move(saved.state)).value();
    while (!trainer.finished()) trainer.try_step().value();
    CHECK(model.weights_sha256() == expected);
    CHECK(trainer.last_epoch().samples == 100);
  }
}

TEST_CASE("A training state that does not belong to the weights beside it is refused") {
  const vitro_test::TemporaryFolder folder;
  const Dataset data = quarters(50, 8);
  Context context;
  Model model = small_model();
  Trainer trainer(context, model, data, small_options());
  model.save(folder.path());
  try_save_training(folder.path(), model, {trainer.options(), data.size(), trainer.state(), {}}).value();
  REQUIRE(try_load_training(folder.path(), model).ok());
  model.parameters()[0].value.data()[0] += 1.0F;
  const Result<Training> result = try_load_training(folder.path(), model);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::corrupt);
  CHECK_THAT(result.error().message(), ContainsSubstring("remove training.json"));
  TrainState outside = trainer.state();
  outside.step = 3;
  CHECK_THAT(trainer.try_restore(outside).error().message(), ContainsSubstring("step 3"));
  outside.step = 0;
  outside.velocity.pop_back();
  CHECK_THAT(trainer.try_restore(outside).error().message(), ContainsSubstring("velocities"));
}

TEST_CASE("A training state that cannot be read is not taken for none") {
  const vitro_test::TemporaryFolder folder;
  const Model model = small_model();
  model.save(folder.path());
  CHECK_FALSE(has_training(folder.path()));
  std::filesystem::create_directory(folder.path() + "/training.json");
  REQUIRE(has_training(folder.path()));
  CHECK_THAT(try_load_training(folder.path(), model).error().message(), ContainsSubstring("training.json"));
}

TEST_CASE("A step whose numbers are not finite changes nothing and names the layers") {
  const Dataset data = quarters(50, 8);
  Context context;
  Model model = small_model();
  model.parameters()[0].value.data()[3] = std::numeric_limits<float>::quiet_NaN();
  Trainer trainer(context, model, data, small_options());
  const std::string before = model.weights_sha256();
  const Status status = trainer.try_step();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::non_finite);
  CHECK_THAT(status.error().message(), ContainsSubstring("epoch 1, step 1") && ContainsSubstring("the loss is NaN") &&
                                           ContainsSubstring("layer fc") && ContainsSubstring("not finite is conv"));
  CHECK(model.weights_sha256() == before);
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
  TrainOptions options;
  options.batch = 0;
  CHECK_THAT(Trainer::try_make(context, model, quarters(10, 8), options).error().message(), ContainsSubstring("batch is 0"));
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
