// SPDX-License-Identifier: Apache-2.0
// Writing and reading a training: options, position and history as sealed JSON, velocities as a tensor file.
#include "training_file.hpp"

#include "../core/text.hpp"
#include "json_reader.hpp"
#include "model_folder.hpp"
#include "sealed_json.hpp"
#include "xxh64.hpp"

#include <array>
#include <limits>

namespace vitro {
namespace {

constexpr std::string_view kFormat = "vitro-training";
constexpr std::int64_t kVersion = 3;
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
                       {"clip_norm", recipe.clip_norm},
                       {"shift", recipe.shift}});
}

Json record_json(const EpochRecord& record) {
  return Json::object({{"loss", record.loss},
                       {"train_accuracy", record.train_accuracy},
                       {"test_accuracy", record.test_accuracy},
                       {"seconds", record.seconds}});
}

// A number that training can make sense of: in [low, high), so neither infinite nor NaN. `rule` says so in words.
void take_between(JsonTaker& t, const JsonReader& r, float low, float high, const char* rule, float& target) {
  t.take(r.float32(), target);
  if (t.ok() && !(target >= low && target < high)) t.check(r.error(rule));
}

void read_recipe(JsonTaker& t, const JsonReader& r, Recipe& recipe) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr const char* kNotNegative = "must not be negative";
  constexpr const char* kBelowOne = "must be at least 0 and below 1";
  t.check(r.only({"name", "rate", "warmup_epochs", "decay", "momentum", "momentum_drop", "momentum_epochs", "momentum_floor",
                  "weight_decay", "clip_norm", "shift"}));
  t.take(r["name"].string(), recipe.name);
  take_between(t, r["rate"], 0, kInfinity, kNotNegative, recipe.rate);
  t.take(r["warmup_epochs"].integer(0, kMaxCount), recipe.warmup_epochs);
  t.take(r["decay"].choice(kDecays), recipe.decay);
  take_between(t, r["momentum"], 0, 1, kBelowOne, recipe.momentum);
  take_between(t, r["momentum_drop"], 0, kInfinity, kNotNegative, recipe.momentum_drop);
  t.take(r["momentum_epochs"].integer(1, kMaxCount), recipe.momentum_epochs);
  take_between(t, r["momentum_floor"], 0, 1, kBelowOne, recipe.momentum_floor);
  take_between(t, r["weight_decay"], 0, kInfinity, kNotNegative, recipe.weight_decay);
  take_between(t, r["clip_norm"], 0, kInfinity, kNotNegative, recipe.clip_norm);
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

std::string training_json(const Model& model, const Training& training) {
  Json history = Json::array();
  for (const EpochRecord& record : training.history) history.push(record_json(record));
  const TrainState& state = training.state;
  return seal_json(Json::object({{"format", kFormat},
                                 {"version", kVersion},
                                 {"epochs", training.options.epochs},
                                 {"batch", training.options.batch},
                                 {"seed", training.options.seed},
                                 {"recipe", recipe_json(training.options.recipe)},
                                 {"samples", training.samples},
                                 {"data_xxh64", training.data_xxh64},
                                 {"position", Json::object({{"epoch", state.epoch},
                                                            {"step", state.step},
                                                            {"loss_sum", state.totals.loss_sum},
                                                            {"samples", state.totals.samples},
                                                            {"correct", state.totals.correct}})},
                                 {"history", std::move(history)},
                                 {"weights_sha256", model.weights_sha256()}}));
}

Result<Training> parse_training(std::string_view text, const std::string& path, const Model& model) {
  const Result<Json> document = open_sealed_json(text, path, kFormat, kVersion);
  if (!document) return document.error();
  const JsonReader r(document.value(), path);
  Training training;
  std::string weights_hash;
  JsonTaker t;
  t.check(r.only({"format", "version", "epochs", "batch", "seed", "recipe", "samples", "data_xxh64", "position", "history",
                  "weights_sha256"}));
  t.take(r["epochs"].integer(1, kMaxCount - 1), training.options.epochs);
  t.take(r["batch"].integer(1, kMaxCount), training.options.batch);
  t.take(r["seed"].unsigned_integer(), training.options.seed);
  read_recipe(t, r["recipe"], training.options.recipe);
  t.take(r["samples"].integer(1, kMaxCount), training.samples);
  t.take(r["data_xxh64"].string(), training.data_xxh64);
  const JsonReader position = r["position"];
  t.check(position.only({"epoch", "step", "loss_sum", "samples", "correct"}));
  t.take(position["epoch"].integer(0, kMaxCount), training.state.epoch);
  t.take(position["step"].integer(0, kMaxCount), training.state.step);
  t.take(position["loss_sum"].float64(), training.state.totals.loss_sum);
  t.take(position["samples"].integer(0, training.samples), training.state.totals.samples);
  t.take(position["correct"].integer(0, training.state.totals.samples), training.state.totals.correct);
  read_history(t, r["history"], training.history);
  t.take(r["weights_sha256"].string(), weights_hash);
  if (!t.ok()) return t.status().error();
  if (weights_hash != model.weights_sha256()) {
    return Error(ErrorCode::corrupt, quoted(path) + ": belongs to other weights (" + weights_hash + ") than those of model \"" +
                                         model.name() + "\"");
  }
  return training;
}

// Fills the velocities, which are named and shaped like the model's parameters.
Status read_velocity(std::span<const std::byte> bytes, const std::string& path, const Model& model,
                     std::vector<Parameter>& velocity) {
  Result<std::vector<NamedTensor>> tensors = decode_tensor_file(bytes, path);
  if (!tensors) return std::move(tensors).error();
  for (const Parameter& parameter : model.parameters()) velocity.push_back({parameter.name, Tensor(parameter.value.shape())});
  return assign_tensors(std::move(tensors).value(), path, velocity);
}

}  // namespace

std::string data_xxh64(const Dataset& data) {
  std::vector<std::byte> labels;
  labels.reserve(data.labels.span().size() * 4);
  for (const std::int32_t label : data.labels.span()) {
    for (int shift = 0; shift < 32; shift += 8)
      labels.push_back(static_cast<std::byte>(static_cast<std::uint32_t>(label) >> shift));
  }
  const std::uint64_t hash = xxh64(std::as_bytes(data.images.span()), xxh64(labels, 0));
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15];
  return digits;
}

Status try_save_training(const std::string& folder, const Model& model, const Training& training) {
  const Result<std::vector<std::byte>> velocity = encode_tensor_file(named_views(training.state.velocity));
  if (!velocity) return velocity.error();
  const std::string text = training_json(model, training);
  const TrainingBytes bytes{std::as_bytes(std::span(text)), velocity.value()};
  return try_save_folder(folder, model, &bytes);
}

Result<std::optional<Training>> try_load_training(const std::string& folder, const Model& model) {
  const Result<ModelDocument> document = read_model_document(folder);
  if (!document) return document.error();
  if (!document.value().files.training) return std::optional<Training>();
  const TrainingFiles& files = *document.value().files.training;

  const Result<std::vector<std::byte>> text = read_saved_file(folder, files.training);
  if (!text) return text.error();
  const Result<std::vector<std::byte>> optimizer = read_saved_file(folder, files.optimizer);
  if (!optimizer) return optimizer.error();
  const std::string path = join_path(folder, files.training.file);
  const std::string optimizer_path = join_path(folder, files.optimizer.file);
  Result<Training> training =
      parse_training({reinterpret_cast<const char*>(text.value().data()), text.value().size()}, path, model);
  if (!training) return std::move(training).error();
  if (Status status = check_contents(files.training, text.value(), path); !status) return std::move(status).error();
  if (Status status = read_velocity(optimizer.value(), optimizer_path, model, training.value().state.velocity); !status) {
    return std::move(status).error();
  }
  if (Status status = check_contents(files.optimizer, optimizer.value(), optimizer_path); !status) {
    return std::move(status).error();
  }
  return std::optional<Training>(std::move(training).value());
}

}  // namespace vitro
