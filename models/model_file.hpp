// SPDX-License-Identifier: Apache-2.0
// The two forms of a model in files: its structure as JSON, its weights as named tensors.
#pragma once

#include "json.hpp"
#include "model.hpp"
#include "tensor_file.hpp"

namespace vitro {

inline constexpr const char* kModelFile = "model.json";
inline constexpr const char* kWeightsFile = "weights.bin";

// folder + "/" + file, without a doubled slash.
std::string join_path(const std::string& folder, std::string_view file);

// {"format": "vitro-model", "version": 1, "name", "input": [dims], "layers": [{"name", "type", "inputs" (if not the layer
// before),
//   the type's attributes}], "parameters": [{"name", "shape"}], "parameter_count", "weights": {"file", "sha256"}}
// Attributes: conv2d has out_channels, kernel, stride, dilation [h, w each], padding [top, left, bottom, right], groups, bias;
// linear has out_features, bias; the pools have kernel, stride, padding, ceil_mode, average_pool2d also divisor ("valid",
// "padded" or "window").
Json model_to_json(const Model& model);

// Builds the model that the document describes, its weights (at most max_parameters floats) not yet read, and checks that its
// parameters are the ones listed. `sha256` receives the hash that the weights must have. `origin` names the document in errors
// (format; shape_mismatch where layers do not fit each other).
Result<Model> model_from_json(const Json& document, const std::string& origin, Index max_parameters, std::string& sha256);

// Views of parameters (or velocities) as a tensor file takes them; the parameters must outlive them.
std::vector<NamedTensorView> named_views(std::span<const Parameter> parameters);

// Moves the tensors read from `origin` into `parameters`: same number, names, order and shapes, else an error (shape_mismatch
// or format) that names the first one that differs and leaves `parameters` as they are.
Status assign_tensors(std::vector<NamedTensor> tensors, const std::string& origin, std::vector<Parameter>& parameters);

// A model from the bytes of the two files: for who has no file system. `origin_*` name them in errors.
Result<Model> decode_model(std::string_view model_json, const std::string& origin_json, std::span<const std::byte> weights,
                           const std::string& origin_weights);

}  // namespace vitro
