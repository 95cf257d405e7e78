// SPDX-License-Identifier: Apache-2.0
// Writing and reading model.json and weights.bin.
#include "model_file.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"
#include "json_reader.hpp"

#include <array>

namespace vitro {
namespace {

constexpr std::string_view kFormat = "vitro-model";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMaxAttribute = 65535;  // attributes are stored in 16 bits
constexpr std::int64_t kMaxOutputs = 1 << 24;  // of one layer; more is taken for a damaged file
constexpr std::size_t kMaxWeightsBytes = std::size_t{1} << 36;
constexpr std::array<std::string_view, 7> kTypes = {"conv2d",         "linear",  "relu", "max_pool2d",
                                                    "average_pool2d", "flatten", "add"};
constexpr std::array<std::string_view, 3> kDivisors = {"valid", "padded", "window"};

template <class... T>
Json numbers(T... values) {
  return Json::array({Json(values)...});
}

Json shape_json(const Shape& shape) {
  Json dims = Json::array();
  for (Index dim : shape.dims()) dims.push(dim);
  return dims;
}

void set_pool(Json& layer, const ops::Pool2dAttrs& a) {
  layer.set("kernel", numbers(a.kernel_h, a.kernel_w));
  layer.set("stride", numbers(a.stride_h, a.stride_w));
  layer.set("padding", numbers(a.pad_top, a.pad_left, a.pad_bottom, a.pad_right));
  layer.set("ceil_mode", a.ceil_mode);
}

Json layer_json(const Layer& layer) {
  Json json = Json::object();
  json.set("name", layer.name);
  json.set("type", type_name(layer.kind));
  if (!layer.inputs.empty()) {
    Json inputs = Json::array();
    for (const std::string& input : layer.inputs) inputs.push(input);
    json.set("inputs", std::move(inputs));
  }
  if (const auto* conv = std::get_if<Conv2dLayer>(&layer.kind)) {
    const ops::Conv2dAttrs& a = conv->attrs;
    json.set("out_channels", conv->out_channels);
    json.set("kernel", numbers(conv->kernel_h, conv->kernel_w));
    json.set("stride", numbers(a.stride_h, a.stride_w));
    json.set("dilation", numbers(a.dilation_h, a.dilation_w));
    json.set("padding", numbers(a.pad_top, a.pad_left, a.pad_bottom, a.pad_right));
    json.set("groups", a.groups);
    json.set("bias", conv->bias);
  } else if (const auto* linear = std::get_if<LinearLayer>(&layer.kind)) {
    json.set("out_features", linear->out_features);
    json.set("bias", linear->bias);
  } else if (const auto* max = std::get_if<MaxPool2dLayer>(&layer.kind)) {
    set_pool(json, max->attrs);
  } else if (const auto* average = std::get_if<AveragePool2dLayer>(&layer.kind)) {
    set_pool(json, average->attrs);
    json.set("divisor", kDivisors[static_cast<std::size_t>(average->attrs.divisor)]);
  }
  return json;
}

// Reads one layer's attributes.
class LayerReader {
 public:
  explicit LayerReader(JsonReader reader) : reader_(std::move(reader)) {}

  Result<Layer> read() {
    Layer layer;
    t_.take(reader_["name"].string(), layer.name);
    std::size_t type = 0;
    t_.take(reader_["type"].choice(kTypes), type);
    if (t_.ok() && reader_.has("inputs")) read_inputs(layer.inputs);
    if (!t_.ok()) return t_.status().error();
    switch (type) {
      case 0: layer.kind = conv2d(); break;
      case 1: layer.kind = linear(); break;
      case 2: layer.kind = plain(ReluLayer{}); break;
      case 3: layer.kind = MaxPool2dLayer{pool({"name", "type", "inputs", "kernel", "stride", "padding", "ceil_mode"})}; break;
      case 4: layer.kind = average_pool2d(); break;
      case 5: layer.kind = plain(FlattenLayer{}); break;
      default: layer.kind = plain(AddLayer{}); break;
    }
    if (!t_.ok()) return t_.status().error();
    return layer;
  }

 private:
  // An array of exactly these whole numbers.
  template <class... T>
  void list(std::string_view key, std::int64_t low, T&... targets) {
    Index size = 0;
    t_.take(reader_[key].size(), size);
    if (t_.ok() && size != static_cast<Index>(sizeof...(T))) {
      t_.check(reader_[key].error("must have " + std::to_string(sizeof...(T)) + " elements"));
    }
    Index element = 0;
    (t_.take(reader_[key][element++].integer(low, kMaxAttribute), targets), ...);
  }
  void read_inputs(std::vector<std::string>& inputs) {
    Index size = 0;
    t_.take(reader_["inputs"].size(), size);
    for (Index i = 0; i < size && t_.ok(); ++i) t_.take(reader_["inputs"][i].string(), inputs.emplace_back());
  }

  template <class L>
  LayerKind plain(L layer) {
    t_.check(reader_.only({"name", "type", "inputs"}));
    return layer;
  }
  LayerKind conv2d() {
    t_.check(
        reader_.only({"name", "type", "inputs", "out_channels", "kernel", "stride", "dilation", "padding", "groups", "bias"}));
    Conv2dLayer layer;
    ops::Conv2dAttrs& a = layer.attrs;
    t_.take(reader_["out_channels"].integer(1, kMaxOutputs), layer.out_channels);
    list("kernel", 1, layer.kernel_h, layer.kernel_w);
    list("stride", 1, a.stride_h, a.stride_w);
    list("dilation", 1, a.dilation_h, a.dilation_w);
    list("padding", 0, a.pad_top, a.pad_left, a.pad_bottom, a.pad_right);
    t_.take(reader_["groups"].integer(1, kMaxAttribute), a.groups);
    t_.take(reader_["bias"].boolean(), layer.bias);
    return layer;
  }
  LayerKind linear() {
    t_.check(reader_.only({"name", "type", "inputs", "out_features", "bias"}));
    LinearLayer layer;
    t_.take(reader_["out_features"].integer(1, kMaxOutputs), layer.out_features);
    t_.take(reader_["bias"].boolean(), layer.bias);
    return layer;
  }
  LayerKind average_pool2d() {
    AveragePool2dLayer layer{pool({"name", "type", "inputs", "kernel", "stride", "padding", "ceil_mode", "divisor"})};
    std::size_t divisor = 0;
    t_.take(reader_["divisor"].choice(kDivisors), divisor);
    layer.attrs.divisor = static_cast<ops::AverageDivisor>(divisor);
    return layer;
  }
  ops::Pool2dAttrs pool(std::initializer_list<std::string_view> keys) {
    t_.check(reader_.only(keys));
    ops::Pool2dAttrs a;
    list("kernel", 1, a.kernel_h, a.kernel_w);
    list("stride", 1, a.stride_h, a.stride_w);
    list("padding", 0, a.pad_top, a.pad_left, a.pad_bottom, a.pad_right);
    t_.take(reader_["ceil_mode"].boolean(), a.ceil_mode);
    return a;
  }

  JsonReader reader_;
  JsonTaker t_;
};

Status check_parameters(const Model& model, const JsonReader& list) {
  Result<Index> size = list.size();
  if (!size) return std::move(size).error();
  if (size.value() != static_cast<Index>(model.parameters().size())) {
    return list.error("must have " + std::to_string(model.parameters().size()) +
                      " elements, one for each parameter of the layers");
  }
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const Parameter& parameter = model.parameters()[i];
    const JsonReader entry = list[static_cast<Index>(i)];
    Result<std::string> name = entry["name"].string();
    if (!name) return std::move(name).error();
    Result<Shape> shape = entry["shape"].shape();
    if (!shape) return std::move(shape).error();
    if (name.value() != parameter.name || shape.value() != parameter.value.shape()) {
      return entry.error("must be " + parameter.name + " of shape " + to_string(parameter.value.shape()) +
                         ", as the layers say");
    }
  }
  return {};
}

}  // namespace

std::string join_path(const std::string& folder, std::string_view file) {
  std::string path = folder.empty() ? "." : folder;
  if (path.back() != '/') path += '/';
  return path.append(file);
}

Json model_to_json(const Model& model) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers()) layers.push(layer_json(layer));
  Json parameters = Json::array();
  for (const Parameter& parameter : model.parameters()) {
    parameters.push(Json::object({{"name", parameter.name}, {"shape", shape_json(parameter.value.shape())}}));
  }
  return Json::object({{"format", kFormat},
                       {"version", kVersion},
                       {"name", model.name()},
                       {"input", shape_json(model.input_shape())},
                       {"layers", std::move(layers)},
                       {"parameters", std::move(parameters)},
                       {"parameter_count", model.parameter_count()},
                       {"weights", Json::object({{"file", kWeightsFile}, {"sha256", model.weights_sha256()}})}});
}

Result<Model> model_from_json(const Json& document, const std::string& origin, Index max_parameters, std::string& sha256) {
  const JsonReader reader(document, origin);
  if (Result<std::size_t> format = reader["format"].choice(std::array{kFormat}); !format) return std::move(format).error();
  if (Result<std::int64_t> version = reader["version"].integer(kVersion, kVersion); !version) return std::move(version).error();
  if (Status status = reader.only({"format", "version", "name", "input", "layers", "parameters", "parameter_count", "weights"});
      !status) {
    return std::move(status).error();
  }
  Result<std::string> name = reader["name"].string();
  if (!name) return std::move(name).error();
  Result<Shape> input = reader["input"].shape();
  if (!input) return std::move(input).error();
  Result<Index> count = reader["layers"].size();
  if (!count) return std::move(count).error();
  std::vector<Layer> layers;
  for (Index i = 0; i < count.value(); ++i) {
    Result<Layer> layer = LayerReader(reader["layers"][i]).read();
    if (!layer) return std::move(layer).error();
    layers.push_back(std::move(layer).value());
  }
  Result<Model> model = Model::try_make_empty(std::move(name).value(), input.value(), std::move(layers), max_parameters);
  if (!model) return Error(model.error().code(), quoted(origin) + ": " + model.error().message());
  if (Status status = check_parameters(model.value(), reader["parameters"]); !status) return std::move(status).error();
  Result<std::string> hash = reader["weights"]["sha256"].string();
  if (!hash) return std::move(hash).error();
  sha256 = std::move(hash).value();
  return model;
}

std::vector<NamedTensorView> named_views(std::span<const Parameter> parameters) {
  std::vector<NamedTensorView> views;
  for (const Parameter& parameter : parameters) views.push_back({parameter.name, parameter.value});
  return views;
}

Status assign_tensors(std::vector<NamedTensor> tensors, const std::string& origin, std::vector<Parameter>& parameters) {
  if (tensors.size() != parameters.size()) {
    return Error(ErrorCode::format, quoted(origin) + ": has " + std::to_string(tensors.size()) + " tensors; the model has " +
                                        std::to_string(parameters.size()) + " parameters");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name != parameters[i].name || tensors[i].tensor.shape() != parameters[i].value.shape()) {
      return Error(ErrorCode::shape_mismatch,
                   quoted(origin) + ": tensor " + std::to_string(i) + " is " + quoted(tensors[i].name) + " of shape " +
                       to_string(tensors[i].tensor.shape()) + "; the model needs " + quoted(parameters[i].name) + " of shape " +
                       to_string(parameters[i].value.shape()));
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) parameters[i].value = std::move(tensors[i].tensor);
  return {};
}

Result<Model> decode_model(std::string_view model_json, const std::string& origin_json, std::span<const std::byte> weights,
                           const std::string& origin_weights) {
  Result<Json> document = Json::parse(model_json, origin_json);
  if (!document) return std::move(document).error();
  Result<std::vector<NamedTensor>> tensors = decode_tensor_file(weights, origin_weights);
  if (!tensors) return std::move(tensors).error();
  const auto max_parameters = static_cast<Index>(weights.size() / sizeof(float));
  std::string sha256;
  Result<Model> model = model_from_json(document.value(), origin_json, max_parameters, sha256);
  if (!model) return model;
  if (Status status = assign_tensors(std::move(tensors).value(), origin_weights, model.value().parameters()); !status) {
    return std::move(status).error();
  }
  if (const std::string actual = model.value().weights_sha256(); actual != sha256) {
    return Error(ErrorCode::corrupt, quoted(origin_json) + ": weights.sha256 is " + quoted(sha256, 80) +
                                         ", but the weights in " + quoted(origin_weights) + " have " + actual +
                                         ": the two files do not belong together");
  }
  return model;
}

Status Model::try_save(const std::string& folder) const {
  if (Status status = make_directories(folder); !status) return status;
  // The weights first: a model.json without its weights would be the worse half.
  if (Status status = write_tensor_file(join_path(folder, kWeightsFile), named_views(parameters_)); !status) return status;
  const std::string text = model_to_json(*this).dump() + "\n";
  return write_file(join_path(folder, kModelFile), std::as_bytes(std::span(text)));
}

Result<Model> Model::try_load(const std::string& folder) {
  const std::string json_path = join_path(folder, kModelFile);
  const std::string weights_path = join_path(folder, kWeightsFile);
  Result<std::vector<std::byte>> text = read_file(json_path, Json::kMaxBytes);
  if (!text) return std::move(text).error();
  Result<std::vector<std::byte>> weights = read_file(weights_path, kMaxWeightsBytes);
  if (!weights) return std::move(weights).error();
  return decode_model({reinterpret_cast<const char*>(text.value().data()), text.value().size()}, json_path, weights.value(),
                      weights_path);
}

}  // namespace vitro
