// SPDX-License-Identifier: Apache-2.0
// Writing and reading training.json and optimizer.bin.
#include "training_file.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"
#include "json_reader.hpp"
#include "model_file.hpp"

#include <array>

namespace vitro {
namespace {

constexpr std::string_view kFormat = "vitro-training";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 32;
constexpr std::array<std::string_view, 2> kDecays = {"none", "cosine"};

Json recipe_json(const Recipe& recipe) {
  return Json::object({{"name", recipe.name},
                       {"rate", recipe.rate},
                       {"warmup_epochs", recipe.warmup_epochs},
                       {"decay", kDecays[static_cast<std::size_t>(recipe.decay)]},
                       {"momentum", recipe.momentum},
                       {"momentum_drop", recipe.momentum_drop},
                       {"momentum_epochs", recipe.momentum_epochs},
                       {"momentum_floor", recipe.momentum_floor},
                       {"weight_decay", recipe.weight_decay},
                       {"shift", recipe.shift}});
}

Json record_json(const EpochRecord& record) {
  return Json::object({{"loss", record.loss},
                       {"train_accuracy", record.train_accuracy},
                       {"test_accuracy", record.test_accuracy},
                       {"seconds", record.seconds}});
}

void read_recipe(JsonTaker& t, const JsonReader& r, Recipe& recipe) {
  t.check(r.only({"name", "rate", "warmup_epochs", "decay", "momentum", "momentum_drop", "momentum_epochs", "momentum_floor",
                  "weight_decay", "shift"}));
  t.take(r["name"].string(), recipe.name);
  t.take(r["rate"].float32(), recipe.rate);
  t.take(r["warmup_epochs"].integer(0, kMaxCount), recipe.warmup_epochs);
  t.take(r["decay"].choice(kDecays), recipe.decay);
  t.take(r["momentum"].float32(), recipe.momentum);
  t.take(r["momentum_drop"].float32(), recipe.momentum_drop);
  t.take(r["momentum_epochs"].integer(1, kMaxCount), recipe.momentum_epochs);
  t.take(r["momentum_floor"].float32(), recipe.momentum_floor);
  t.take(r["weight_decay"].float32(), recipe.weight_decay);
  t.take(r["shift"].integer(0, 255), recipe.shift);
}

void read_history(JsonTaker& t, const JsonReader& r, std::vector<EpochRecord>& history) {
  Index size = 0;
  t.take(r.size(), size);
  for (Index i = 0; i < size && t.ok(); ++i) {
    EpochRecord& record = history.emplace_back();
    t.take(r[i]["loss"].float64(), record.loss);
    t.take(r[i]["train_accuracy"].float64(), record.train_accuracy);
    t.take(r[i]["test_accuracy"].float64(), record.test_accuracy);
    t.take(r[i]["seconds"].float64(), record.seconds);
  }
}

Json training_json(const Model& model, const Training& training) {
  Json history = Json::array();
  for (const EpochRecord& record : training.history) history.push(record_json(record));
  const TrainState& state = training.state;
  return Json::object(
      {{"format", kFormat},
       {"version", kVersion},
       {"epochs", training.options.epochs},
       {"batch", training.options.batch},
       {"seed", training.options.seed},
       {"recipe", recipe_json(training.options.recipe)},
       {"samples", training.samples},
       {"position", Json::object({{"epoch", state.epoch},
                                  {"step", state.step},
                                  {"loss_sum", state.totals.loss_sum},
                                  {"samples", state.totals.samples},
                                  {"correct", state.totals.correct}})},
       {"history", std::move(history)},
       {"weights_sha256", model.weights_sha256()},
       {"velocity", Json::object({{"file", kOptimizerFile}, {"sha256", weights_sha256(named_views(state.velocity))}})}});
}

}  // namespace

Status try_save_training(const std::string& folder, const Model& model, const Training& training) {
  Status written = write_tensor_file(join_path(folder, kOptimizerFile), named_views(training.state.velocity));
  if (!written) return written;
  const std::string text = training_json(model, training).dump() + "\n";
  return write_file(join_path(folder, kTrainingFile), std::as_bytes(std::span(text)));
}

bool has_training(const std::string& folder) { return file_exists(join_path(folder, kTrainingFile)); }

Result<Training> try_load_training(const std::string& folder, const Model& model) {
  const std::string path = join_path(folder, kTrainingFile);
  Result<std::vector<std::byte>> text = read_file(path, Json::kMaxBytes);
  if (!text) return std::move(text).error();
  Result<Json> document = Json::parse({reinterpret_cast<const char*>(text.value().data()), text.value().size()}, path);
  if (!document) return std::move(document).error();

  const JsonReader r(document.value(), path);
  Training training;
  std::string weights_hash;
  std::string velocity_hash;
  std::int64_t checked = 0;  // a value that is only tested
  JsonTaker t;
  t.take(r["format"].choice(std::array{kFormat}), checked);
  t.take(r["version"].integer(kVersion, kVersion), checked);
  t.check(r.only({"format", "version", "epochs", "batch", "seed", "recipe", "samples", "position", "history", "weights_sha256",
                  "velocity"}));
  t.take(r["epochs"].integer(1, kMaxCount - 1), training.options.epochs);
  t.take(r["batch"].integer(1, kMaxCount), training.options.batch);
  t.take(r["seed"].unsigned_integer(), training.options.seed);
  read_recipe(t, r["recipe"], training.options.recipe);
  t.take(r["samples"].integer(1, kMaxCount), training.samples);
  const JsonReader position = r["position"];
  t.take(position["epoch"].integer(0, kMaxCount), training.state.epoch);
  t.take(position["step"].integer(0, kMaxCount), training.state.step);
  t.take(position["loss_sum"].float64(), training.state.totals.loss_sum);
  t.take(position["samples"].integer(0, kMaxCount), training.state.totals.samples);
  t.take(position["correct"].integer(0, kMaxCount), training.state.totals.correct);
  read_history(t, r["history"], training.history);
  t.take(r["weights_sha256"].string(), weights_hash);
  t.take(r["velocity"]["sha256"].string(), velocity_hash);
  if (!t.ok()) return t.status().error();
  if (weights_hash != model.weights_sha256()) {
    return Error(ErrorCode::corrupt, quoted(path) + ": belongs to other weights than those in " +
                                         quoted(join_path(folder, kWeightsFile)) +
                                         "; remove training.json to start a new training from the weights");
  }

  const std::string optimizer_path = join_path(folder, kOptimizerFile);
  Result<std::vector<NamedTensor>> tensors = try_read_tensor_file(optimizer_path);
  if (!tensors) return std::move(tensors).error();
  for (const Parameter& parameter : model.parameters()) {
    training.state.velocity.push_back({parameter.name, Tensor(parameter.value.shape())});
  }
  if (Status status = assign_tensors(std::move(tensors).value(), optimizer_path, training.state.velocity); !status) {
    return std::move(status).error();
  }
  if (weights_sha256(named_views(training.state.velocity)) != velocity_hash) {
    return Error(ErrorCode::corrupt, quoted(path) + ": belongs to another " + kOptimizerFile +
                                         "; remove training.json to start a new "
                                         "training from the weights");
  }
  return training;
}

}  // namespace vitro
