// SPDX-License-Identifier: Apache-2.0
// The encoding of Protocol Buffers (varints, and lengths before what is not a number), as far as ONNX's format needs it.
#include "onnx_model.hpp"

#include <bit>
#include <cstring>

namespace vitro_bench {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

std::string OnnxModel::varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
  return text += static_cast<char>(value);
}

std::string OnnxModel::field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}

std::string OnnxModel::field(int number, const std::string& contents) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(contents.size()) + contents;
}

// ValueInfoProto {name 1, type 2}, TypeProto {tensor_type 1}, its {elem_type 1, shape 2}, TensorShapeProto {dim 1 {dim_value
// 1}}.
std::string OnnxModel::value_info(const std::string& name, const Dims& dims) {
  std::string shape;
  for (const std::int64_t dim : dims) shape += field(1, field(1, static_cast<std::uint64_t>(dim)));
  constexpr std::uint64_t kFloat = 1;
  return field(1, name) + field(2, field(1, field(1, kFloat) + field(2, shape)));
}

// TensorProto {dims 1, data_type 2, name 8, raw_data 9}.
void OnnxModel::constant(const std::string& name, const Dims& dims, const std::vector<float>& values) {
  std::string tensor;
  for (const std::int64_t dim : dims) tensor += field(1, static_cast<std::uint64_t>(dim));
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  graph_ += field(5, tensor + field(2, std::uint64_t{1}) + field(8, name) + field(9, raw));
}

// NodeProto {input 1, output 2, op_type 4, attribute 5}, AttributeProto {name 1, ints 8, type 20}.
void OnnxModel::node(const char* operation, const std::vector<std::string>& inputs, const std::string& output,
                     const std::vector<Attribute>& attributes) {
  std::string node;
  for (const std::string& input : inputs) node += field(1, input);
  node += field(2, output) + field(4, std::string(operation));
  for (const Attribute& attribute : attributes) {
    std::string text = field(1, std::string(attribute.name));
    for (const std::int64_t value : attribute.values) text += field(8, static_cast<std::uint64_t>(value));
    constexpr std::uint64_t kInts = 7;
    node += field(5, text + field(20, kInts));
  }
  graph_ += field(1, node);
}

// ModelProto {ir_version 1, graph 7, opset_import 8 {version 2}}; GraphProto's name is field 2.
std::string OnnxModel::bytes() const {
  return field(1, std::uint64_t{7}) + field(7, field(2, std::string("vitro")) + graph_) + field(8, field(2, std::uint64_t{13}));
}

}  // namespace vitro_bench
