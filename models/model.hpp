// SPDX-License-Identifier: Apache-2.0
// Model: a graph of layers with its weights; describes itself, records itself on a tape, saves and loads itself.
#pragma once

#include "../autograd/functions.hpp"
#include "layer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitro {

struct Parameter {
  std::string name;  // "<layer>.weight" or "<layer>.bias"
  Tensor value;
};

// Copying copies the weights. Parameters stand in the order in which the layers are declared, weight before bias.
class Model {
 public:
  // `input` is the shape of one sample, without the batch: [H, W, C] or [features]. Weights are drawn from U(-1/sqrt(fan_in),
  // 1/sqrt(fan_in)) by Philox(seed, index of the parameter). Fails with the first layer that does not fit, by name.
  Model(std::string name, const Shape& input, std::vector<Layer> layers, std::uint64_t seed);
  // The same for a description that comes from outside.
  static Result<Model> try_make(std::string name, const Shape& input, std::vector<Layer> layers, std::uint64_t seed);
  // The same with weights of +0, to be filled from a file that has `max_parameters` floats: layers that need more are an error,
  // found before their memory is asked for.
  static Result<Model> try_make_empty(std::string name, const Shape& input, std::vector<Layer> layers, Index max_parameters);

  const std::string& name() const noexcept { return name_; }
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  const Shape& input_shape() const noexcept { return input_; }  // of one sample
  // Of a batch: [batch, ...]. Errors: a negative batch, overflow.
  Result<Shape> try_batch_shape(Index batch) const;
  const Shape& output_shape() const noexcept { return output_; }  // of one sample: [classes] for a classifier
  std::vector<Parameter>& parameters() noexcept { return parameters_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  Index parameter_count() const noexcept;  // floats in all parameters

  // Hex SHA-256 over all parameters' elements, little-endian, in declared order.
  std::string weights_sha256() const;

  // The parameters on a tape: for training (they get gradients, and optimizer nodes may write them) or as constants.
  std::vector<Var> place_parameters(Tape& tape);
  std::vector<Var> place_constants(Tape& tape) const;
  // Records the network on x [N, input...] and returns its output [N, output...]; `parameters` from one of the two above.
  // Fails if x does not fit.
  Var forward(Var x, std::span<const Var> parameters) const;
  // The same, but returns every layer's output, in order; the last is the network's.
  std::vector<Var> forward_layers(Var x, std::span<const Var> parameters) const;

  // Writes folder/model.json (for people: structure, shapes, hash of the weights) and the weights beside it (tensor_file.hpp),
  // whose name model.json gives; makes the folder if needed. Replaces at one stroke what was saved there, a training's state
  // included: whatever interrupts it, the folder holds the old model or the new one. Errors: io.
  Status try_save(const std::string& folder) const;
  // Reads them back; the structure, every shape and every bit must agree. Errors: io, format, unsupported (saved by another
  // version), corrupt, shape_mismatch; they name the file and what would be right.
  static Result<Model> try_load(const std::string& folder);
#if defined(__cpp_exceptions)
  void save(const std::string& folder) const { try_save(folder).value(); }
  static Model load(const std::string& folder) { return try_load(folder).value(); }
#endif

 private:
  Model() = default;
  Status build(Index max_parameters);
  Status add_layer(std::size_t index, std::vector<Shape>& shapes, Index& max_parameters);

  // A layer with its names resolved: where its inputs come from (0: the model's input, i + 1: layer i) and which parameters it
  // has.
  struct Resolved {
    std::vector<std::size_t> inputs;
    std::size_t weight = 0, bias = 0;  // indices into parameters_
    bool has_weight = false, has_bias = false;
  };

  std::string name_;
  Shape input_, output_;
  std::vector<Layer> layers_;
  std::vector<Resolved> resolved_;
  std::vector<Parameter> parameters_;
};

}  // namespace vitro
