// SPDX-License-Identifier: Apache-2.0
// Internal: a saved model as a folder, replaced at one stroke: whoever loads it finds the old state or the new one, whole,
// whatever was interrupted.
#pragma once

#include "model_file.hpp"

namespace vitro {

// folder + "/" + file, without a doubled slash.
std::string join_path(const std::string& folder, std::string_view file);

// What is saved beside a model that is being trained: the bytes of the two files.
struct TrainingBytes {
  std::span<const std::byte> training, optimizer;
};

// Makes the folder if needed and writes the model, and `training` unless null. First the files that are called after their
// contents; then model.json is renamed into place, which is the moment at which the new state counts; then the files of these
// names that it does not refer to are removed, and nothing else. Every step is on the disk before the next one begins. After
// an error the old state is still there. Programs that save in one folder at the same time wait for each other. Errors: io.
Status try_save_folder(const std::string& folder, const Model& model, const TrainingBytes* training);

// model.json of the folder.
Result<ModelDocument> read_model_document(const std::string& folder);

// The bytes of a file that the folder's model.json refers to; check_contents() is the caller's. Errors: io, and they name both.
Result<std::vector<std::byte>> read_saved_file(const std::string& folder, const FileReference& reference);

}  // namespace vitro
