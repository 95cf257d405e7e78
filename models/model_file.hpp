// SPDX-License-Identifier: Apache-2.0
// The two forms of a model in files: its structure as JSON, its weights as named tensors. In memory; model_folder.hpp has the
// files.
#pragma once

#include "json.hpp"
#include "model.hpp"
#include "tensor_file.hpp"

#include <optional>

namespace vitro {

inline constexpr const char* kModelFile = "model.json";

// What lies beside model.json. Each is called after its contents, "weights.0123456789abcdef.bin" after the first 16 digits of
// their SHA-256: a new state never writes over the files of the old one, which is whole until model.json is replaced.
enum class FileKind : unsigned char { weights, optimizer, training };

struct FileReference {
  std::string file;    // without folder
  std::string sha256;  // of the file's bytes
};
FileReference reference_to(FileKind kind, std::span<const std::byte> bytes);

// Whether it is the name of a file of one of the three kinds, whatever its hash.
bool is_saved_file(std::string_view name) noexcept;

// Fails (corrupt) if the bytes, read from `origin`, are not those referred to.
Status check_contents(const FileReference& reference, std::span<const std::byte> bytes, const std::string& origin);

struct TrainingFiles {
  FileReference training, optimizer;
};
struct SavedFiles {
  FileReference weights;
  std::optional<TrainingFiles> training;
};

// The text of model.json, sealed (sealed_json.hpp):
// {"format": "vitro-model", "version": 2, "name", "input": [dims], "layers": [{"name", "type", "inputs" (if not the layer
//   before), the type's attributes}], "parameters": [{"name", "shape"}], "parameter_count", "weights_sha256"
//   (Model::weights_sha256), "weights": {"file", "sha256"}, and where a training was saved "training" and "optimizer" likewise}
// Attributes: conv2d has out_channels, kernel, stride, dilation [h, w each], padding [top, left, bottom, right], groups, bias;
// linear has out_features, bias; the pools have kernel, stride, padding, ceil_mode, average_pool2d also divisor ("valid",
// "padded" or "window").
std::string model_to_json(const Model& model, const SavedFiles& files);

// A model.json that is as it was written, and the files that it names.
struct ModelDocument {
  Json json;
  std::string origin;  // what errors call it
  SavedFiles files;
};
// Errors: format, unsupported, corrupt, as open_sealed_json() has them.
Result<ModelDocument> read_model_json(std::string_view text, std::string origin);

// The model that the document describes, from the bytes of its weights file, read from `origin_weights`. Everything that the
// document says of parameters and weights is checked. Errors: format, corrupt, shape_mismatch where layers or tensors do not
// fit.
Result<Model> decode_model(const ModelDocument& document, std::span<const std::byte> weights,
                           const std::string& origin_weights);

// Views of parameters (or velocities) as a tensor file takes them; the parameters must outlive them.
std::vector<NamedTensorView> named_views(std::span<const Parameter> parameters);

// Moves the tensors read from `origin` into `parameters`: same number, names, order and shapes, else an error (shape_mismatch
// or format) that names the first one that differs and leaves `parameters` as they are.
Status assign_tensors(std::vector<NamedTensor> tensors, const std::string& origin, std::vector<Parameter>& parameters);

}  // namespace vitro
