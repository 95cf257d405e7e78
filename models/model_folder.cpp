// SPDX-License-Identifier: Apache-2.0
// The order of the writes that makes a save whole or not at all, and the two calls of Model that need it.
#include "model_folder.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"

#include <algorithm>

namespace vitro {
namespace {

constexpr std::size_t kMaxFileBytes = sizeof(std::size_t) > 4 ? std::size_t{1} << 36 : SIZE_MAX;

struct NewFile {
  FileReference reference;
  std::span<const std::byte> bytes;
};

// Removes files of a save's names that are not among `kept`. One that cannot be removed does no harm and is left.
void remove_others(const std::string& folder, std::span<const NewFile> kept) {
  const Result<std::vector<std::string>> names = list_folder(folder);
  if (!names) return;
  for (const std::string& name : names.value()) {
    const auto is_this = [&](const NewFile& file) { return file.reference.file == name; };
    if (is_saved_file(name) && std::ranges::none_of(kept, is_this)) static_cast<void>(remove_file(join_path(folder, name)));
  }
}

// Writes what model.json is going to refer to, then model.json. Removes what it made if it fails: a full disk gets no fuller.
Status commit(const std::string& folder, std::span<const NewFile> files, std::string_view model_json) {
  std::vector<std::string> made;
  Status status;
  for (const NewFile& file : files) {
    const std::string path = join_path(folder, file.reference.file);
    const bool was_there = file_exists(path);
    status = write_file(path, file.bytes);
    if (!status) break;
    if (!was_there) made.push_back(path);
  }
  if (status) status = write_file(join_path(folder, kModelFile), std::as_bytes(std::span(model_json)));
  if (status) return status;
  for (const std::string& path : made) static_cast<void>(remove_file(path));
  return status;
}

}  // namespace

std::string join_path(const std::string& folder, std::string_view file) {
  std::string path = folder.empty() ? "." : folder;
  if (path.back() != '/') path += '/';
  return path.append(file);
}

Status try_save_folder(const std::string& folder, const Model& model, const TrainingBytes* training) {
  const Result<std::vector<std::byte>> weights = encode_tensor_file(named_views(model.parameters()));
  if (!weights) return weights.error();
  SavedFiles saved{reference_to(FileKind::weights, weights.value()), std::nullopt};
  std::vector<NewFile> files = {{saved.weights, weights.value()}};
  if (training != nullptr) {
    saved.training = TrainingFiles{reference_to(FileKind::training, training->training),
                                   reference_to(FileKind::optimizer, training->optimizer)};
    files.push_back({saved.training->training, training->training});
    files.push_back({saved.training->optimizer, training->optimizer});
  }
  if (Status status = make_directories(folder); !status) return status;
  const FolderLock lock(folder);
  if (Status status = commit(folder, files, model_to_json(model, saved)); !status) return status;
  remove_others(folder, files);
  return {};
}

Result<ModelDocument> read_model_document(const std::string& folder) {
  std::string path = join_path(folder, kModelFile);
  const Result<std::vector<std::byte>> bytes = read_file(path, Json::kMaxBytes);
  if (!bytes) return bytes.error();
  return read_model_json({reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()}, std::move(path));
}

Result<std::vector<std::byte>> read_saved_file(const std::string& folder, const FileReference& reference) {
  Result<std::vector<std::byte>> bytes = read_file(join_path(folder, reference.file), kMaxFileBytes);
  if (bytes) return bytes;
  return Error(bytes.error().code(),
               bytes.error().message() + "; " + quoted(join_path(folder, kModelFile)) + " needs that file");
}

Status Model::try_save(const std::string& folder) const { return try_save_folder(folder, *this, nullptr); }

Result<Model> Model::try_load(const std::string& folder) {
  for (int attempt = 0;; ++attempt) {
    const Result<ModelDocument> document = read_model_document(folder);
    if (!document) return document.error();
    const FileReference& file = document.value().files.weights;
    const std::string path = join_path(folder, file.file);
    // A training that saves here may have replaced both since model.json was read.
    if (attempt < 3 && !file_exists(path)) continue;
    const Result<std::vector<std::byte>> weights = read_saved_file(folder, file);
    if (!weights) return weights.error();
    return decode_model(document.value(), weights.value(), path);
  }
}

}  // namespace vitro
