// SPDX-License-Identifier: Apache-2.0
// Reads golden files (an index in JSON beside a little-endian blob, see README.md) and measures distances from their
// references.
#pragma once

#include "../../core/tensor.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

// The largest distance allowed, in units of the reference tensor's largest magnitude.
inline constexpr double kTolerance = 1e-5;

// A tensor that another framework computed in double precision.
struct Reference {
  vitro::Shape shape;
  std::vector<double> values;
};

// One case of a file: an operation, its attributes, its inputs and the references for its outputs. Valid as long as its file.
class Case {
 public:
  Case(const nlohmann::json& entry, const std::vector<char>& blob, std::size_t index)
      : entry_(&entry), blob_(&blob), index_(index) {}

  std::string op() const { return entry_->at("op"); }
  const nlohmann::json& attrs() const { return entry_->at("attrs"); }
  // What a failure is to print: which case of which operation, and its attributes.
  std::string describe() const { return op() + " (case " + std::to_string(index_) + ") " + attrs().dump(); }

  // The tensor of that name, whose type must be the one the function says; throws std::runtime_error otherwise.
  vitro::Tensor input(const std::string& name) const { return read<float, vitro::Tensor>(name, "f32"); }
  vitro::LabelTensor labels(const std::string& name) const { return read<std::int32_t, vitro::LabelTensor>(name, "i32"); }
  vitro::BasicTensor<std::uint8_t> bytes(const std::string& name) const {
    return read<std::uint8_t, vitro::BasicTensor<std::uint8_t>>(name, "u8");
  }
  Reference reference(const std::string& name) const {
    const vitro::Shape shape = shape_of(name, "f64");
    Reference result{shape, std::vector<double>(static_cast<std::size_t>(shape.elements()))};
    fill(name, result.values.data(), result.values.size());
    return result;
  }

 private:
  const nlohmann::json& tensor(const std::string& name) const { return entry_->at("tensors").at(name); }

  vitro::Shape shape_of(const std::string& name, const char* type) const {
    if (tensor(name).at("type") != type) throw std::runtime_error(describe() + ": " + name + " is not of type " + type);
    const std::vector<vitro::Index> dims = tensor(name).at("shape");
    return vitro::Shape(std::span<const vitro::Index>(dims));
  }

  template <class T>
  void fill(const std::string& name, T* values, std::size_t count) const {
    const std::size_t offset = tensor(name).at("offset");
    if (offset > blob_->size() || count * sizeof(T) > blob_->size() - offset) {
      throw std::runtime_error(describe() + ": " + name + " lies outside the blob");
    }
    if (count > 0) std::memcpy(values, blob_->data() + offset, count * sizeof(T));
  }

  template <class T, class Result>
  Result read(const std::string& name, const char* type) const {
    Result result(shape_of(name, type));
    fill(name, result.data(), static_cast<std::size_t>(result.elements()));
    return result;
  }

  const nlohmann::json* entry_;
  const std::vector<char>* blob_;
  std::size_t index_;
};

// The pair NAME.json and its blob in VITRO_GOLDEN_DIR. Throws std::runtime_error where they are missing or do not fit.
class File {
 public:
  explicit File(const std::string& name) {
    const std::string folder = std::string(VITRO_GOLDEN_DIR) + "/";
    std::ifstream index(folder + name + ".json");
    if (!index) throw std::runtime_error("cannot read " + folder + name + ".json");
    index_ = nlohmann::json::parse(index);
    std::ifstream blob(folder + index_.at("blob").get<std::string>(), std::ios::binary);
    blob_.assign(std::istreambuf_iterator<char>(blob), {});
    if (blob_.size() != index_.at("blob_bytes").get<std::size_t>())
      throw std::runtime_error(name + ": the blob has a wrong size");
    std::size_t number = 0;
    for (const nlohmann::json& entry : index_.at("cases")) cases_.emplace_back(entry, blob_, number++);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::vector<Case>& cases() const { return cases_; }

 private:
  nlohmann::json index_;
  std::vector<char> blob_;
  std::vector<Case> cases_;
};

// max |ours - reference| / max |reference|. Infinite where the shapes differ, where an element of ours is NaN, and where ours
// is not zero throughout but the reference is; 0 for empty tensors.
inline double distance(vitro::ConstTensorView ours, const Reference& reference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(ours.shape() == reference.shape)) return kInfinity;
  const vitro::Tensor dense = vitro::contiguous(ours);
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    const double d = std::fabs(static_cast<double>(dense.span()[i]) - reference.values[i]);
    if (std::isnan(d)) return kInfinity;
    difference = d > difference ? d : difference;
    magnitude = std::fabs(reference.values[i]) > magnitude ? std::fabs(reference.values[i]) : magnitude;
  }
  if (difference == 0) return 0;
  return magnitude > 0 ? difference / magnitude : kInfinity;
}

}  // namespace golden
