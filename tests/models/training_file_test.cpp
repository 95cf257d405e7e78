// SPDX-License-Identifier: Apache-2.0
// A training in files: going on to the same bits, damage to any file, what is missing, and what is not this training's.
#include "../../models/training_file.hpp"

#include "../support/temporary_folder.hpp"
#include "small_training.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vitro/core/file.hpp>
#include <vitro/models/model_folder.hpp>
#include <vitro/models/sealed_json.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::quarters;
using vitro_test::small_model;
using vitro_test::small_options;

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

SavedFiles files_of(const std::string& folder) { return read_model_document(folder).value().files; }

// A model of four parameters, saved with a training of it.
void save_tiny(const std::string& folder, float first_weight = 0.5F, Index step = 2) {
  Model model("tiny", {2}, {{"fc", LinearLayer{1}}}, 1);
  model.parameters()[0].value.data()[0] = first_weight;
  Training training;
  training.samples = 10;
  training.data_xxh64 = "0123456789abcdef";
  training.state = {1, step, {0.5, 4, 3}, {}};
  training.history = {{0.25, 0.5, 0.125, 1.5}};
  for (const Parameter& parameter : model.parameters()) {
    training.state.velocity.push_back({parameter.name, Tensor(parameter.value.shape())});
  }
  training.state.velocity[0].value.data()[1] = first_weight * 2;
  try_save_training(folder, model, training).value();
}

// The error that loading model and training meets; empty if there is none.
std::string complaint(const std::string& folder) {
  const Result<Model> model = Model::try_load(folder);
  if (!model) return model.error().message();
  const Result<std::optional<Training>> training = try_load_training(folder, model.value());
  return training ? std::string() : training.error().message();
}

// The training file with one text replaced, sealed again and named by model.json: only its values can be wrong.
void forge_training(const std::string& folder, const std::string& from, const std::string& to) {
  const SavedFiles old = files_of(folder);
  std::string text = read(join_path(folder, old.training->training.file));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  std::vector<Json::Member> members = Json::parse(text.replace(at, from.size(), to), "forged").value().members();
  members.pop_back();
  text = seal_json(Json::object(std::move(members)));
  const std::string optimizer = read(join_path(folder, old.training->optimizer.file));
  const TrainingBytes bytes{std::as_bytes(std::span(text)), std::as_bytes(std::span(optimizer))};
  try_save_folder(folder, Model::load(folder), &bytes).value();
}

}  // namespace

TEST_CASE("A training that is interrupted anywhere, saved and taken up ends with the bits and counts of one that was not") {
  const Dataset data = quarters(100, 8);
  Context context;
  Model whole_model = small_model();
  Trainer whole(context, whole_model, data, small_options());
  while (!whole.finished()) whole.try_step().value();
  for (int stop : {1, 4, 5, 7, 14}) {
    const vitro_test::TemporaryFolder folder;
    {
      Model model = small_model();
      Trainer trainer(context, model, data, small_options());
      for (int step = 0; step < stop; ++step) trainer.try_step().value();
      try_save_training(folder.path(), model,
                        {trainer.options(), data.size(), data_xxh64(data), trainer.state(), {{0.25, 0.5, 0.125, 1.5}}})
          .value();
    }
    Model model = Model::load(folder.path());
    std::optional<Training> saved = try_load_training(folder.path(), model).value();
    REQUIRE(saved.has_value());
    CHECK(saved->samples == 100);
    CHECK(saved->data_xxh64 == data_xxh64(data));
    REQUIRE(saved->history.size() == 1);
    CHECK(saved->history[0].test_accuracy == 0.125);
    CHECK(saved->options.recipe.shift == 1);
    Trainer trainer(context, model, data, saved->options);
    trainer.try_restore(std::move(saved->state)).value();
    while (!trainer.finished()) trainer.try_step().value();
    CHECK(model.weights_sha256() == whole_model.weights_sha256());
    CHECK(trainer.last_epoch().samples == 100);
    CHECK(trainer.last_epoch().correct == whole.last_epoch().correct);
    CHECK(trainer.last_epoch().loss_sum == whole.last_epoch().loss_sum);
  }
}

TEST_CASE("Every truncation and every flipped bit of every file of a saved training is found") {
  const vitro_test::TemporaryFolder folder;
  save_tiny(folder.path());
  REQUIRE(complaint(folder.path()).empty());
  int files = 0;
  for (const std::string& name : list_folder(folder.path()).value()) {
    const std::string path = join_path(folder.path(), name);
    const std::string good = read(path);
    ++files;
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
      write(path, bad);
      INFO(name << ", bit " << bit);
      REQUIRE_FALSE(complaint(folder.path()).empty());
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
      write(path, std::string_view(good).substr(0, size));
      INFO(name << ", " << size << " bytes");
      REQUIRE_FALSE(complaint(folder.path()).empty());
    }
    write(path, good + "\n");
    CHECK_FALSE(complaint(folder.path()).empty());
    write(path, good);
  }
  CHECK(files == 4);
  CHECK(complaint(folder.path()).empty());
}

TEST_CASE("A file of another training under the right name is found, although it is sound in itself") {
  const vitro_test::TemporaryFolder folder, other, later;
  save_tiny(folder.path());
  save_tiny(other.path(), 0.75F);
  save_tiny(later.path(), 0.5F, 3);
  const SavedFiles files = files_of(folder.path()), others = files_of(other.path());
  const auto with = [&](const FileReference& here, const FileReference& there, const std::string& from) {
    const std::string path = join_path(folder.path(), here.file), good = read(path);
    write(path, read(join_path(from, there.file)));
    const std::string message = complaint(folder.path());
    write(path, good);
    return message;
  };
  CHECK_THAT(with(files.weights, others.weights, other.path()), ContainsSubstring("do not belong together"));
  CHECK_THAT(with(files.training->optimizer, others.training->optimizer, other.path()),
             ContainsSubstring("do not belong together"));
  CHECK_THAT(with(files.training->training, others.training->training, other.path()),
             ContainsSubstring("belongs to other weights"));
  CHECK_THAT(with(files.training->training, files_of(later.path()).training->training, later.path()),
             ContainsSubstring("do not belong together"));
}

TEST_CASE("A training's file that is missing is named, and the model is there without it") {
  for (const bool optimizer : {false, true}) {
    const vitro_test::TemporaryFolder folder;
    save_tiny(folder.path());
    const TrainingFiles files = *files_of(folder.path()).training;
    const std::string path = join_path(folder.path(), optimizer ? files.optimizer.file : files.training.file);
    fs::remove(path);
    const Model model = Model::load(folder.path());
    const Error error = try_load_training(folder.path(), model).error();
    CHECK(error.code() == ErrorCode::io);
    CHECK_THAT(error.message(), ContainsSubstring(path) && ContainsSubstring("model.json"));
    fs::create_directory(path);
    CHECK_THAT(try_load_training(folder.path(), model).error().message(), ContainsSubstring(path));
  }
}

TEST_CASE("A model that is saved alone has no training, and one that was there before goes") {
  const vitro_test::TemporaryFolder folder;
  save_tiny(folder.path());
  write(folder.path() + "/training.txt", "mine");
  write(folder.path() + "/weights.0123456789abcdef.bin.txt", "mine");
  write(folder.path() + "/weights.0123456789ABCDEF.bin", "mine");
  write(folder.path() + "/weights.0123456789abcdef.bin", "left by a save that was killed");
  const Model model("tiny", {2}, {{"fc", LinearLayer{1}}}, 2);
  model.save(folder.path());
  CHECK_FALSE(try_load_training(folder.path(), model).value().has_value());
  CHECK(list_folder(folder.path()).value().size() == 5);  // model.json, the weights, and three that are not ours
  CHECK(fs::exists(folder.path() + "/weights.0123456789ABCDEF.bin"));
}

TEST_CASE("A training that does not belong to the model at hand is refused") {
  const vitro_test::TemporaryFolder folder;
  save_tiny(folder.path());
  Model model = Model::load(folder.path());
  REQUIRE(try_load_training(folder.path(), model).ok());
  model.parameters()[0].value.data()[0] += 1.0F;
  const Error error = try_load_training(folder.path(), model).error();
  CHECK(error.code() == ErrorCode::corrupt);
  CHECK_THAT(error.message(), ContainsSubstring("belongs to other weights"));
}

TEST_CASE("Values that no training can have are refused by name") {
  const auto message = [](const std::string& from, const std::string& to) {
    const vitro_test::TemporaryFolder folder;
    save_tiny(folder.path());
    forge_training(folder.path(), from, to);
    return complaint(folder.path());
  };
  CHECK(message("\"rate\": 0.05", "\"rate\": 0.06").empty());
  CHECK_THAT(message("\"rate\": 0.05", "\"rate\": -0.05"), ContainsSubstring("recipe.rate must not be negative"));
  CHECK_THAT(message("\"rate\": 0.05", "\"rate\": 1e39"), ContainsSubstring("recipe.rate"));
  CHECK_THAT(message("\"momentum\": 0.9", "\"momentum\": 1"),
             ContainsSubstring("recipe.momentum must be at least 0 and below 1"));
  CHECK_THAT(message("\"momentum_floor\": 0", "\"momentum_floor\": 2"), ContainsSubstring("recipe.momentum_floor"));
  CHECK_THAT(message("\"momentum_drop\": 0", "\"momentum_drop\": -1"), ContainsSubstring("recipe.momentum_drop"));
  CHECK_THAT(message("\"weight_decay\": 5e-04", "\"weight_decay\": -1"), ContainsSubstring("recipe.weight_decay"));
  CHECK_THAT(message("\"clip_norm\": 0", "\"clip_norm\": -1"), ContainsSubstring("recipe.clip_norm"));
  CHECK_THAT(message("\"shift\": 2", "\"shift\": 256"), ContainsSubstring("recipe.shift"));
  CHECK_THAT(message("\"batch\": 64", "\"batch\": 0"), ContainsSubstring("batch"));
  CHECK_THAT(message("\"correct\": 3", "\"correct\": 5"), ContainsSubstring("position.correct"));
  CHECK_THAT(message("\"samples\": 4", "\"samples\": 11"), ContainsSubstring("position.samples"));
  CHECK_THAT(message("\"version\": 3", "\"version\": 2"), ContainsSubstring("version 2"));
  CHECK_THAT(message("\"seed\": 1", "\"sead\": 1"), ContainsSubstring("sead"));
}

TEST_CASE("The hash of a data set sees a pixel, a label and the number of images") {
  const Dataset data = quarters(20, 8);
  const std::string hash = data_xxh64(data);
  CHECK(hash.size() == 16);
  CHECK(data_xxh64(quarters(20, 8)) == hash);
  CHECK(data_xxh64(quarters(19, 8)) != hash);
  Dataset changed = data;
  changed.images.data()[1000] ^= 128;
  CHECK(data_xxh64(changed) != hash);
  changed.images.data()[1001] ^= 128;
  CHECK(data_xxh64(changed) != hash);
  changed = data;
  changed.labels.data()[19] ^= 1;
  CHECK(data_xxh64(changed) != hash);
}
