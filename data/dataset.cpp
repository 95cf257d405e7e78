// SPDX-License-Identifier: Apache-2.0
// Finding MNIST's files under their several names, and joining images and labels to a Dataset.
#include "dataset.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace vitro {
namespace {

// A rank that belongs to the other file of the pair is the commonest mistake by far, and gets its own advice.
Error rank_error(const std::string& name, const Shape& shape, const char* what, int right, int other) {
  std::string message = "idx file " + quoted(name) + " has the shape " + to_string(shape) + ", where " + what + " have rank " +
                        std::to_string(right);
  if (shape.rank() == other) message += "; that is the other file's rank: are images and labels exchanged?";
  return Error(ErrorCode::format, std::move(message));
}

Status check_pair(const ByteTensor& images, const std::string& images_name, const ByteTensor& labels,
                  const std::string& labels_name) {
  const Shape& shape = images.shape();
  if (shape.rank() != 3) return rank_error(images_name, shape, "images ([count, rows, columns])", 3, 1);
  if (labels.shape().rank() != 1) return rank_error(labels_name, labels.shape(), "labels ([count])", 1, 3);
  if (shape[0] != labels.shape()[0]) {
    return Error(ErrorCode::shape_mismatch, quoted(images_name) + " has " + std::to_string(shape[0]) + " images, but " +
                                                quoted(labels_name) + " has " + std::to_string(labels.shape()[0]) +
                                                " labels; they must be as many");
  }
  if (images.elements() == 0) {
    return Error(ErrorCode::format,
                 "idx file " + quoted(images_name) + " has the shape " + to_string(shape) + ", in which there is no pixel");
  }
  return {};
}

Result<LabelTensor> to_labels(const ByteTensor& bytes, const std::string& name) {
  LabelTensor labels(bytes.shape());
  const std::span<const std::uint8_t> from = bytes.span();
  for (std::size_t row = 0; row < from.size(); ++row) {
    if (from[row] >= kMnistClasses) {
      return Error(ErrorCode::format, "idx file " + quoted(name) + " has the label " + std::to_string(from[row]) + " in row " +
                                          std::to_string(row) + "; labels are 0 to " + std::to_string(kMnistClasses - 1));
    }
    labels.span()[row] = from[row];
  }
  return labels;
}

// [N, H, W] becomes [N, H, W, 1]: the same bytes.
ByteTensor with_channel(const ByteTensor& images) {
  const Shape& shape = images.shape();
  ByteTensor result({shape[0], shape[1], shape[2], 1});
  std::ranges::copy(images.span(), result.data());
  return result;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Whether nothing has that name. What is there and cannot be examined counts as there: reading it will say why.
bool is_missing(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 && errno == ENOENT;
}

struct FileName {
  const char* plain;
  const char* dotted;
};

Result<std::string> find_file(const std::string& folder, const FileName& name) {
  const std::array<std::string, 4> candidates = {name.plain, name.plain + std::string(".gz"), name.dotted,
                                                 name.dotted + std::string(".gz")};
  std::string names;
  for (const std::string& candidate : candidates) {
    std::string path = folder;
    path.append("/").append(candidate);
    if (!is_missing(path)) return path;
    if (!names.empty()) names += ", ";
    names += candidate;
  }
  return Error(ErrorCode::io, "folder " + quoted(folder) + " has none of the files " + names);
}

Result<Dataset> load_pair(const std::string& folder, const char* name, const FileName& images_file,
                          const FileName& labels_file) {
  const Result<std::string> images_path = find_file(folder, images_file);
  if (!images_path) return images_path.error();
  const Result<std::string> labels_path = find_file(folder, labels_file);
  if (!labels_path) return labels_path.error();
  const Result<std::vector<std::byte>> images = read_file(images_path.value(), kMaxIdxBytes);
  if (!images) return images.error();
  const Result<std::vector<std::byte>> labels = read_file(labels_path.value(), kMaxIdxBytes);
  if (!labels) return labels.error();
  Result<Dataset> data = try_decode_dataset(images.value(), images_path.value(), labels.value(), labels_path.value());
  if (data) data.value().name = std::string(name) + " images of " + folder;
  return data;
}

}  // namespace

Result<Dataset> try_decode_dataset(std::span<const std::byte> images, const std::string& images_name,
                                   std::span<const std::byte> labels, const std::string& labels_name) {
  const Result<ByteTensor> pixels = try_decode_idx(images, images_name);
  if (!pixels) return pixels.error();
  const Result<ByteTensor> classes = try_decode_idx(labels, labels_name);
  if (!classes) return classes.error();
  if (const Status checked = check_pair(pixels.value(), images_name, classes.value(), labels_name); !checked)
    return checked.error();
  Result<LabelTensor> numbers = to_labels(classes.value(), labels_name);
  if (!numbers) return std::move(numbers).error();
  return Dataset{images_name, with_channel(pixels.value()), std::move(numbers).value()};
}

Result<MnistData> try_load_mnist(const std::string& folder) {
  if (!is_folder(folder))
    return Error(ErrorCode::io, quoted(folder) + " is not a folder that can be read; MNIST's four files are looked for in one");
  Result<Dataset> train = load_pair(folder, "train", {"train-images-idx3-ubyte", "train-images.idx3-ubyte"},
                                    {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"});
  if (!train) return std::move(train).error();
  Result<Dataset> test = load_pair(folder, "test", {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
                                   {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"});
  if (!test) return std::move(test).error();
  const Shape& a = train.value().images.shape();
  const Shape& b = test.value().images.shape();
  if (a.with(0, 1) != b.with(0, 1)) {
    return Error(ErrorCode::shape_mismatch, "folder " + quoted(folder) + " has training images " + to_string(a) +
                                                " and test images " + to_string(b) + ", which must agree but for their number");
  }
  return MnistData{std::move(train).value(), std::move(test).value()};
}

Dataset first_images(const Dataset& data, Index count) {
  if (count < 1) fail(ErrorCode::invalid_argument, "first_images needs a count of 1 or more, not " + std::to_string(count));
  const Index kept = std::min(count, data.size());
  Dataset result{data.name, ByteTensor(data.images.shape().with(0, kept)), LabelTensor({kept})};
  std::ranges::copy(data.images.span().first(static_cast<std::size_t>(result.images.elements())), result.images.data());
  std::ranges::copy(data.labels.span().first(static_cast<std::size_t>(kept)), result.labels.data());
  return result;
}

}  // namespace vitro
