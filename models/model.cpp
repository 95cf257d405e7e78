// SPDX-License-Identifier: Apache-2.0
// Building a model from its layers, and recording it on a tape.
#include "model.hpp"

#include "../core/random.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/layout.hpp"
#include "../ops/linear.hpp"
#include "model_file.hpp"

#include <algorithm>
#include <limits>

namespace vitro {
namespace {

// Calls one of several lambdas by the layer's type.
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

// The shape of a sample in a batch, and back.
Result<Shape> with_batch(const Shape& sample, Index batch) {
  std::array<Index, kMaxRank + 1> dims{batch};
  for (int axis = 0; axis < sample.rank(); ++axis) dims[static_cast<std::size_t>(axis) + 1] = sample[axis];
  return Shape::make({dims.data(), static_cast<std::size_t>(sample.rank()) + 1});
}

Shape without_batch(const Shape& batch) { return Shape(batch.dims().subspan(1)); }

Index last_dim(const Shape& shape) { return shape.rank() == 0 ? 0 : shape[shape.rank() - 1]; }

// The weights' shape for an input of shape x (batch included); rank 0 for a layer without weights.
Result<Shape> weight_shape(const LayerKind& kind, const Shape& x) {
  if (const auto* conv = std::get_if<Conv2dLayer>(&kind)) {
    const Index groups = std::max<Index>(conv->attrs.groups, 1);
    return Shape::make(std::array{conv->kernel_h, conv->kernel_w, last_dim(x) / groups, conv->out_channels});
  }
  if (const auto* linear = std::get_if<LinearLayer>(&kind)) return Shape::make(std::array{last_dim(x), linear->out_features});
  return Shape();
}

// The output's shape for inputs `x` and `other` (AddLayer's second) and weights of shape w.
Result<Shape> infer_output(const LayerKind& kind, const Shape& x, const Shape& other, const Shape& w) {
  return std::visit(Overload{[&](const Conv2dLayer& l) { return ops::conv2d_shape(l.attrs, x, w); },
                             [&](const LinearLayer&) { return ops::linear_shape({}, x, w); },
                             [&](const ReluLayer&) { return Result<Shape>(x); },
                             [&](const MaxPool2dLayer& l) { return ops::max_pool2d_shape(l.attrs, x); },
                             [&](const AveragePool2dLayer& l) { return ops::average_pool2d_shape(l.attrs, x); },
                             [&](const FlattenLayer&) { return ops::flatten_shape({}, x); },
                             [&](const AddLayer&) -> Result<Shape> {
                               if (x == other) return x;
                               return Error(ErrorCode::shape_mismatch, "its inputs have shapes " + to_string(without_batch(x)) +
                                                                           " and " + to_string(without_batch(other)) +
                                                                           ", which must be equal");
                             }},
                    kind);
}

bool wants_bias(const LayerKind& kind) {
  if (const auto* conv = std::get_if<Conv2dLayer>(&kind)) return conv->bias;
  if (const auto* linear = std::get_if<LinearLayer>(&kind)) return linear->bias;
  return false;
}

// Inputs that one output element sums over.
Index fan_in(const Shape& weight) { return weight.elements() / std::max<Index>(last_dim(weight), 1); }

}  // namespace

std::size_t input_count(const LayerKind& kind) noexcept { return std::holds_alternative<AddLayer>(kind) ? 2 : 1; }

const char* type_name(const LayerKind& kind) noexcept {
  return std::visit(Overload{[](const Conv2dLayer&) { return "conv2d"; }, [](const LinearLayer&) { return "linear"; },
                             [](const ReluLayer&) { return "relu"; }, [](const MaxPool2dLayer&) { return "max_pool2d"; },
                             [](const AveragePool2dLayer&) { return "average_pool2d"; },
                             [](const FlattenLayer&) { return "flatten"; }, [](const AddLayer&) { return "add"; }},
                    kind);
}

Model::Model(std::string name, const Shape& input, std::vector<Layer> layers, std::uint64_t seed)
    : Model(try_make(std::move(name), input, std::move(layers), seed).value()) {}

Result<Model> Model::try_make(std::string name, const Shape& input, std::vector<Layer> layers, std::uint64_t seed) {
  Result<Model> model = try_make_empty(std::move(name), input, std::move(layers), std::numeric_limits<Index>::max());
  if (!model) return model;
  std::vector<Parameter>& parameters = model.value().parameters_;
  for (const Resolved& layer : model.value().resolved_) {
    if (!layer.has_weight) continue;
    const Index inputs = std::max<Index>(fan_in(parameters[layer.weight].value.shape()), 1);
    fill_fan_in_uniform(parameters[layer.weight].value, inputs, Philox(seed, layer.weight));
    if (layer.has_bias) fill_fan_in_uniform(parameters[layer.bias].value, inputs, Philox(seed, layer.bias));
  }
  return model;
}

Result<Model> Model::try_make_empty(std::string name, const Shape& input, std::vector<Layer> layers, Index max_parameters) {
  Model model;
  model.name_ = std::move(name);
  model.input_ = input;
  model.layers_ = std::move(layers);
  if (Status status = model.build(max_parameters); !status) return std::move(status).error();
  return model;
}

Status Model::build(Index max_parameters) {
  if (layers_.empty()) return Error(ErrorCode::invalid_argument, "model \"" + name_ + "\" has no layers");
  if (input_.rank() == 0 || input_.rank() == kMaxRank || input_.elements() == 0) {
    return Error(ErrorCode::invalid_argument, "model \"" + name_ + "\": the input of one sample has shape " +
                                                  to_string(input_) + "; it must have 1 to 5 dimensions, none of them 0");
  }
  Result<Shape> input = with_batch(input_, 1);
  if (!input) return std::move(input).error();
  std::vector<Shape> shapes = {input.value()};  // [0] the input, [i + 1] the output of layer i; batch of one
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Status status = add_layer(i, shapes, max_parameters);
    if (!status) {
      return Error(status.error().code(), "model \"" + name_ + "\", layer " + std::to_string(i) + " (" + layers_[i].name +
                                              ", " + type_name(layers_[i].kind) + "): " + status.error().message());
    }
  }
  output_ = without_batch(shapes.back());
  return {};
}

Status Model::add_layer(std::size_t index, std::vector<Shape>& shapes, Index& max_parameters) {
  const Layer& layer = layers_[index];
  const auto position_of = [&](const std::string& name, std::size_t& position) {
    if (name == "input") return position = 0, true;
    for (std::size_t i = 0; i < index; ++i) {
      if (layers_[i].name == name) return position = i + 1, true;
    }
    return false;
  };
  std::size_t position = 0;
  if (layer.name.empty() || position_of(layer.name, position)) {
    return Error(ErrorCode::invalid_argument, "a layer's name must be unique, and neither empty nor \"input\"");
  }

  Resolved resolved;
  for (const std::string& name : layer.inputs) {
    if (!position_of(name, position)) {
      return Error(ErrorCode::invalid_argument, "its input \"" + name + "\" is not an earlier layer");
    }
    resolved.inputs.push_back(position);
  }
  if (resolved.inputs.empty()) resolved.inputs.push_back(index);
  if (resolved.inputs.size() != input_count(layer.kind)) {
    return Error(ErrorCode::invalid_argument, "it has " + std::to_string(resolved.inputs.size()) + " inputs and needs " +
                                                  std::to_string(input_count(layer.kind)));
  }

  const Shape& x = shapes[resolved.inputs.front()];
  Result<Shape> weight = weight_shape(layer.kind, x);
  if (!weight) return std::move(weight).error();
  Result<Shape> output = infer_output(layer.kind, x, shapes[resolved.inputs.back()], weight.value());
  if (!output) return std::move(output).error();
  shapes.push_back(output.value());

  resolved.has_weight = weight.value().rank() > 0;
  if (resolved.has_weight) {
    resolved.has_bias = wants_bias(layer.kind);
    const Shape bias({resolved.has_bias ? last_dim(weight.value()) : 0});
    if (weight.value().elements() > max_parameters - bias.elements()) {
      return Error(ErrorCode::shape_mismatch,
                   "its weights of shape " + to_string(weight.value()) +
                       " are more than the file with the weights holds for it and the layers after it");
    }
    max_parameters -= weight.value().elements() + bias.elements();
    resolved.weight = parameters_.size();
    parameters_.push_back({layer.name + ".weight", Tensor(weight.value())});
    if (resolved.has_bias) {
      resolved.bias = parameters_.size();
      parameters_.push_back({layer.name + ".bias", Tensor(bias)});
    }
  }
  resolved_.push_back(std::move(resolved));
  return {};
}

Result<Shape> Model::try_batch_shape(Index batch) const { return with_batch(input_, batch); }

Index Model::parameter_count() const noexcept {
  Index count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.value.elements();
  return count;
}

std::string Model::weights_sha256() const { return vitro::weights_sha256(named_views(parameters_)); }

std::vector<Var> Model::place_parameters(Tape& tape) {
  std::vector<Var> vars;
  vars.reserve(parameters_.size());
  for (Parameter& parameter : parameters_) vars.push_back(tape.parameter(parameter.value));
  return vars;
}

std::vector<Var> Model::place_constants(Tape& tape) const {
  std::vector<Var> vars;
  vars.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) vars.push_back(tape.constant(parameter.value.view()));
  return vars;
}

Var Model::forward(Var x, std::span<const Var> parameters) const { return forward_layers(x, parameters).back(); }

std::vector<Var> Model::forward_layers(Var x, std::span<const Var> parameters) const {
  if (parameters.size() != parameters_.size()) {
    fail(ErrorCode::invalid_argument, "model \"" + name_ + "\": " + std::to_string(parameters.size()) + " parameters given, " +
                                          std::to_string(parameters_.size()) + " needed");
  }
  if (x.shape().rank() != input_.rank() + 1 || without_batch(x.shape()) != input_) {
    fail(ErrorCode::shape_mismatch,
         "model \"" + name_ + "\" takes a batch of " + to_string(input_) + ", got a tensor of shape " + to_string(x.shape()));
  }
  std::vector<Var> outputs;
  outputs.reserve(layers_.size());
  const auto value_of = [&](std::size_t position) { return position == 0 ? x : outputs[position - 1]; };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Resolved& r = resolved_[i];
    const Var in = value_of(r.inputs.front());
    outputs.push_back(std::visit(
        Overload{[&](const Conv2dLayer& l) {
                   return r.has_bias ? conv2d(in, parameters[r.weight], parameters[r.bias], l.attrs)
                                     : conv2d(in, parameters[r.weight], l.attrs);
                 },
                 [&](const LinearLayer&) {
                   return r.has_bias ? linear(in, parameters[r.weight], parameters[r.bias]) : linear(in, parameters[r.weight]);
                 },
                 [&](const ReluLayer&) { return relu(in); }, [&](const MaxPool2dLayer& l) { return max_pool2d(in, l.attrs); },
                 [&](const AveragePool2dLayer& l) { return average_pool2d(in, l.attrs); },
                 [&](const FlattenLayer&) { return flatten(in); },
                 [&](const AddLayer&) { return add(in, value_of(r.inputs.back())); }},
        layers_[i].kind));
  }
  return outputs;
}

}  // namespace vitro
