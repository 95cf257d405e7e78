// SPDX-License-Identifier: Apache-2.0
// What is told at the end of a run: the confusion matrix for people, the report for programs.
#pragma once

#include "../models/training_file.hpp"

#include <optional>
#include <string>

namespace vitro::tools {

// Rows are what the images show, columns what the model said; below it up to five pairs that it confuses most.
std::string confusion_text(const Evaluation& evaluation);

struct Report {
  const TrainOptions* options = nullptr;  // null for --eval
  std::string data_folder;
  Index train_images = 0;
  std::optional<Index> limit;
  std::vector<EpochRecord> epochs;
  std::string isa;
  int threads = 1;
  std::string weights_sha256;
  std::size_t tape_bytes = 0;
  double seconds = 0;
  bool interrupted = false;
};

// Writes the report aside and renames it. Members: test_accuracy (0 to 1), test_loss, epochs (a list of loss, train_accuracy,
// test_accuracy, seconds), isa, threads, weights_sha256, configuration, confusion, interrupted, seconds, tape_bytes, version,
// compiler.
Status write_report(const std::string& path, const Report& report, const Evaluation& test);

}  // namespace vitro::tools
