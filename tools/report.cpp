// SPDX-License-Identifier: Apache-2.0
// Printing the confusion matrix and writing the report.
#include "report.hpp"

#include "../core/file.hpp"
#include "../models/json.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace vitro::tools {
namespace {

struct Pair {
  Index actual, predicted, count;
};

std::vector<Pair> most_confused(const Evaluation& e, std::size_t limit) {
  std::vector<Pair> pairs;
  for (Index actual = 0; actual < e.classes; ++actual) {
    for (Index predicted = 0; predicted < e.classes; ++predicted) {
      const Index count = e.confusion[static_cast<std::size_t>(actual * e.classes + predicted)];
      if (actual != predicted && count > 0) pairs.push_back({actual, predicted, count});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  if (pairs.size() > limit) pairs.resize(limit);
  return pairs;
}

std::string cell(Index value, int width) {
  const std::string text = std::to_string(value);
  return std::string(static_cast<std::size_t>(std::max(0, width - static_cast<int>(text.size()))), ' ') + text;
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#elif defined(__GNUC__)
  return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#else
  return "unknown";
#endif
}

Json epochs_json(const std::vector<EpochRecord>& epochs) {
  Json list = Json::array();
  for (const EpochRecord& e : epochs) {
    list.push(Json::object(
        {{"loss", e.loss}, {"train_accuracy", e.train_accuracy}, {"test_accuracy", e.test_accuracy}, {"seconds", e.seconds}}));
  }
  return list;
}

Json configuration_json(const Report& report, Index test_images) {
  Json json = Json::object({{"data", report.data_folder}, {"train_images", report.train_images}, {"test_images", test_images}});
  if (report.limit) json.set("limit", *report.limit);
  if (report.options == nullptr) return json;
  const TrainOptions& o = *report.options;
  json.set("epochs", o.epochs);
  json.set("batch", o.batch);
  json.set("seed", o.seed);
  json.set("recipe", o.recipe.name);
  return json;
}

Json confusion_json(const Evaluation& e) {
  Json rows = Json::array();
  for (Index actual = 0; actual < e.classes; ++actual) {
    Json row = Json::array();
    for (Index predicted = 0; predicted < e.classes; ++predicted)
      row.push(e.confusion[static_cast<std::size_t>(actual * e.classes + predicted)]);
    rows.push(std::move(row));
  }
  return rows;
}

}  // namespace

std::string confusion_text(const Evaluation& e) {
  const int width = static_cast<int>(std::to_string(e.samples).size()) + 1;
  std::string text = "Confusion matrix (row: what the image shows, column: what the model says)\n     ";
  for (Index predicted = 0; predicted < e.classes; ++predicted) text += cell(predicted, width);
  text += "\n";
  for (Index actual = 0; actual < e.classes; ++actual) {
    text += "  " + cell(actual, 2) + " ";
    for (Index predicted = 0; predicted < e.classes; ++predicted) {
      text += cell(e.confusion[static_cast<std::size_t>(actual * e.classes + predicted)], width);
    }
    text += "\n";
  }
  if (const Index unclassified = e.samples - std::accumulate(e.confusion.begin(), e.confusion.end(), Index{0});
      unclassified > 0) {
    text += std::to_string(unclassified) + " of " + std::to_string(e.samples) + " images have no class: a score is NaN.\n";
  }
  const std::vector<Pair> pairs = most_confused(e, 5);
  if (pairs.empty()) return text + (e.correct == e.samples ? "No image was taken for another class.\n" : "");
  text += "Most confused:";
  for (const Pair& pair : pairs) {
    text += (&pair == pairs.data() ? " " : ", ") + std::to_string(pair.actual) + " as " + std::to_string(pair.predicted) +
            " (" + std::to_string(pair.count) + ")";
  }
  return text + "\n";
}

Status write_report(const std::string& path, const Report& report, const Evaluation& test) {
  const Json json = Json::object({{"test_accuracy", test.accuracy()},
                                  {"test_loss", test.loss},
                                  {"epochs", epochs_json(report.epochs)},
                                  {"isa", report.isa},
                                  {"threads", report.threads},
                                  {"weights_sha256", report.weights_sha256},
                                  {"configuration", configuration_json(report, test.samples)},
                                  {"confusion", confusion_json(test)},
                                  {"interrupted", report.interrupted},
                                  {"seconds", report.seconds},
                                  {"tape_bytes", report.tape_bytes},
                                  {"version", VITRO_VERSION},
                                  {"compiler", compiler()}});
  const std::string text = json.dump() + "\n";
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace vitro::tools
