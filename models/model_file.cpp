// SPDX-License-Identifier: Apache-2.0
// Writing and reading model.json, and joining it with the weights that it names.
#include "model_file.hpp"

#include "../core/text.hpp"
#include "json_reader.hpp"
#include "sealed_json.hpp"
#include "sha256.hpp"

#include <array>

namespace vitro {
namespace {

constexpr std::string_view kFormat = "vitro-model";
constexpr std::int64_t kVersion = 2;
constexpr std::int64_t kMaxAttribute = 65535;  // attributes are stored in 16 bits
constexpr std::int64_t kMaxOutputs = 1 << 24;  // of one layer; more is taken for a damaged file
constexpr std::array<std::string_view, 7> kTypes = {"conv2d",         "linear",  "relu", "max_pool2d",
                                                    "average_pool2d", "flatten", "add"};
constexpr std::array<std::string_view, 3> kDivisors = {"valid", "padded", "window"};
constexpr std::size_t kTagDigits = 16;  // of the hash, in a file's name

struct KindName {
  std::string_view stem, extension;
};
constexpr std::array<KindName, 3> kKinds = {{{"weights", ".bin"}, {"optimizer", ".bin"}, {"training", ".json"}}};

const KindName& name_of(FileKind kind) noexcept { return kKinds[static_cast<std::size_t>(kind)]; }

bool is_lower_hex(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string file_name(FileKind kind, std::string_view sha256) {
  const KindName& name = name_of(kind);
  return std::string(name.stem).append(".").append(sha256.substr(0, kTagDigits)).append(name.extension);
}

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

// The model that the document describes, its weights (at most max_parameters floats) not yet read.
Result<Model> empty_model(const JsonReader& reader, const std::string& origin, Index max_parameters) {
  std::string name;
  Shape input;
  Index count = 0;
  JsonTaker t;
  t.take(reader["name"].string(), name);
  t.take(reader["input"].shape(), input);
  t.take(reader["layers"].size(), count);
  std::vector<Layer> layers;
  for (Index i = 0; i < count && t.ok(); ++i) t.take(LayerReader(reader["layers"][i]).read(), layers.emplace_back());
  if (!t.ok()) return t.status().error();
  Result<Model> model = Model::try_make_empty(std::move(name), input, std::move(layers), max_parameters);
  if (!model) return Error(model.error().code(), quoted(origin) + ": " + model.error().message());
  if (Status status = check_parameters(model.value(), reader["parameters"]); !status) return std::move(status).error();
  const Index parameters = model.value().parameter_count();
  if (Result<std::int64_t> told = reader["parameter_count"].integer(0, PTRDIFF_MAX); !told || told.value() != parameters) {
    if (!told) return std::move(told).error();
    return reader["parameter_count"].error("must be " + std::to_string(parameters) + ", as the layers say");
  }
  return model;
}

Json file_json(const FileReference& file) { return Json::object({{"file", file.file}, {"sha256", file.sha256}}); }

// A name that is not made of the hash is refused, so that no document can send its reader to a file elsewhere.
Result<FileReference> read_file_reference(const JsonReader& reader, FileKind kind) {
  if (Status status = reader.only({"file", "sha256"}); !status) return std::move(status).error();
  FileReference reference;
  JsonTaker t;
  t.take(reader["sha256"].string(), reference.sha256);
  t.take(reader["file"].string(), reference.file);
  if (!t.ok()) return t.status().error();
  if (reference.sha256.size() != 64 || !is_lower_hex(reference.sha256)) {
    return reader["sha256"].error("must be 64 lower-case hexadecimal digits, found " + quoted(reference.sha256, 80));
  }
  if (const std::string expected = file_name(kind, reference.sha256); reference.file != expected) {
    return reader["file"].error("must be " + quoted(expected) + ", which is made of the sha256, found " +
                                quoted(reference.file, 80));
  }
  return reference;
}

}  // namespace

FileReference reference_to(FileKind kind, std::span<const std::byte> bytes) {
  std::string hash = to_hex(sha256(bytes));
  std::string name = file_name(kind, hash);
  return {std::move(name), std::move(hash)};
}

bool is_saved_file(std::string_view name) noexcept {
  for (const KindName& kind : kKinds) {
    if (name.size() != kind.stem.size() + 1 + kTagDigits + kind.extension.size()) continue;
    if (name.starts_with(kind.stem) && name[kind.stem.size()] == '.' && name.ends_with(kind.extension) &&
        is_lower_hex(name.substr(kind.stem.size() + 1, kTagDigits))) {
      return true;
    }
  }
  return false;
}

Status check_contents(const FileReference& reference, std::span<const std::byte> bytes, const std::string& origin) {
  const std::string actual = to_hex(sha256(bytes));
  if (actual == reference.sha256) return {};
  return Error(ErrorCode::corrupt, quoted(origin) + ": has the sha256 " + actual + ", but " + kModelFile + " names a " +
                                       reference.file + " with " + reference.sha256 + ": the two files do not belong together");
}

std::string model_to_json(const Model& model, const SavedFiles& files) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers()) layers.push(layer_json(layer));
  Json parameters = Json::array();
  for (const Parameter& parameter : model.parameters()) {
    parameters.push(Json::object({{"name", parameter.name}, {"shape", shape_json(parameter.value.shape())}}));
  }
  Json json = Json::object({{"format", kFormat},
                            {"version", kVersion},
                            {"name", model.name()},
                            {"input", shape_json(model.input_shape())},
                            {"layers", std::move(layers)},
                            {"parameters", std::move(parameters)},
                            {"parameter_count", model.parameter_count()},
                            {"weights_sha256", model.weights_sha256()},
                            {"weights", file_json(files.weights)}});
  if (files.training) {
    json.set("training", file_json(files.training->training));
    json.set("optimizer", file_json(files.training->optimizer));
  }
  return seal_json(json);
}

Result<ModelDocument> read_model_json(std::string_view text, std::string origin) {
  Result<Json> json = open_sealed_json(text, origin, kFormat, kVersion);
  if (!json) return std::move(json).error();
  ModelDocument document{std::move(json).value(), std::move(origin), {}};
  const JsonReader reader(document.json, document.origin);
  JsonTaker t;
  t.check(reader.only({"format", "version", "name", "input", "layers", "parameters", "parameter_count", "weights_sha256",
                       "weights", "training", "optimizer"}));
  t.take(read_file_reference(reader["weights"], FileKind::weights), document.files.weights);
  if (t.ok() && (reader.has("training") || reader.has("optimizer"))) {
    TrainingFiles files;
    t.take(read_file_reference(reader["training"], FileKind::training), files.training);
    t.take(read_file_reference(reader["optimizer"], FileKind::optimizer), files.optimizer);
    document.files.training = std::move(files);
  }
  if (!t.ok()) return t.status().error();
  return document;
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

Result<Model> decode_model(const ModelDocument& document, std::span<const std::byte> weights,
                           const std::string& origin_weights) {
  Result<std::vector<NamedTensor>> tensors = decode_tensor_file(weights, origin_weights);
  if (!tensors) return std::move(tensors).error();
  const JsonReader reader(document.json, document.origin);
  Result<Model> model = empty_model(reader, document.origin, static_cast<Index>(weights.size() / sizeof(float)));
  if (!model) return model;
  if (Status status = assign_tensors(std::move(tensors).value(), origin_weights, model.value().parameters()); !status) {
    return std::move(status).error();
  }
  if (Status status = check_contents(document.files.weights, weights, origin_weights); !status)
    return std::move(status).error();
  const Result<std::string> hash = reader["weights_sha256"].string();
  if (!hash) return hash.error();
  if (hash.value() != model.value().weights_sha256()) {
    return reader["weights_sha256"].error("must be " + model.value().weights_sha256() + ", the hash of the weights in " +
                                          quoted(origin_weights));
  }
  return model;
}

}  // namespace vitro
