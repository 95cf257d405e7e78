// SPDX-License-Identifier: Apache-2.0
// Writes a network in ONNX's file format into memory, so that the peer that reads it gets the very weights of the comparison.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vitro_bench {

// Float tensors and attributes that are lists of integers: all that the networks here need. The fields and their numbers are
// those of onnx.proto3 (ONNX 1.8 and later; operator set 13).
class OnnxModel {
 public:
  using Dims = std::vector<std::int64_t>;
  struct Attribute {
    const char* name;
    Dims values;
  };

  void input(const std::string& name, const Dims& dims) { graph_ += field(11, value_info(name, dims)); }
  void output(const std::string& name, const Dims& dims) { graph_ += field(12, value_info(name, dims)); }
  void constant(const std::string& name, const Dims& dims, const std::vector<float>& values);
  void node(const char* operation, const std::vector<std::string>& inputs, const std::string& output,
            const std::vector<Attribute>& attributes = {});

  // The file's bytes.
  std::string bytes() const;

 private:
  static std::string varint(std::uint64_t value);
  static std::string field(int number, std::uint64_t value);          // of an integer
  static std::string field(int number, const std::string& contents);  // of a string, bytes or a message
  static std::string value_info(const std::string& name, const Dims& dims);

  std::string graph_;
};

}  // namespace vitro_bench
