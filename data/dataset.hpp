// SPDX-License-Identifier: Apache-2.0
// Data sets of labelled images: MNIST and whatever comes in its format (Fashion-MNIST, KMNIST, the sample in data/sample).
#pragma once

#include "idx.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace vitro {

inline constexpr std::int32_t kMnistClasses = 10;

// Images and what they show. Invariant where made by the functions below: at least one image, as many labels as images, labels
// in 0 .. kMnistClasses - 1.
struct Dataset {
  std::string name;    // for people: "train" or "test" and the folder
  ByteTensor images;   // [N, H, W, C], pixels 0 .. 255
  LabelTensor labels;  // [N]

  Index size() const noexcept { return images.elements() == 0 ? 0 : images.shape()[0]; }
};

struct MnistData {
  Dataset train;
  Dataset test;
};

// The MNIST files of a folder: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte,
// t10k-labels-idx1-ubyte. Each may instead be written with a dot (train-images.idx3-ubyte) and may end in .gz; of several the
// first is taken, in the order plain, plain.gz, dotted, dotted.gz. Images become [N, H, W, 1]. Errors: `io` (no folder, none of
// a file's four names there, unreadable), those of try_read_idx, and those of try_decode_dataset; `shape_mismatch` where
// training and test images differ in size.
Result<MnistData> try_load_mnist(const std::string& folder);

// One data set from the contents of its two files (raw idx or gzip), whose names are for the messages.
// Errors: those of try_decode_idx; `format` (images that are not of rank 3, labels that are not of rank 1, no image, images
// without a pixel, a label above 9: the message gives its row); `shape_mismatch` (counts that differ).
Result<Dataset> try_decode_dataset(std::span<const std::byte> images, const std::string& images_name,
                                   std::span<const std::byte> labels, const std::string& labels_name);

// A deep copy of the first min(count, size()) images and labels. Requires count >= 1; fails with invalid_argument otherwise.
Dataset first_images(const Dataset& data, Index count);

#if defined(__cpp_exceptions)
inline MnistData load_mnist(const std::string& folder) { return try_load_mnist(folder).value(); }
#endif

}  // namespace vitro
