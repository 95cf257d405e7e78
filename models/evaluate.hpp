// SPDX-License-Identifier: Apache-2.0
// Evaluation: how well a classifier does on a data set it is not trained on.
#pragma once

#include "../data/dataset.hpp"
#include "model.hpp"

#include <vector>

namespace vitro {

struct Evaluation {
  Index classes = 0;
  Index samples = 0;
  Index correct = 0;
  double loss = 0;  // mean cross-entropy
  // confusion[actual * classes + predicted] counts samples. One whose scores hold a NaN has no prediction: it counts in
  // `samples` and nowhere else.
  std::vector<Index> confusion;

  double accuracy() const noexcept;  // correct / samples; 0 without samples
};

// Whether the model takes the data set's images and has a score for each of its labels. The error names both shapes.
Status check_fits(const Model& model, const Dataset& data);

// Runs the model over all images, `batch` (>= 1) at a time; the results do not depend on it. Errors: check_fits().
Result<Evaluation> try_evaluate(Context& context, const Model& model, const Dataset& data, Index batch = 256);
#if defined(__cpp_exceptions)
inline Evaluation evaluate(Context& context, const Model& model, const Dataset& data, Index batch = 256) {
  return try_evaluate(context, model, data, batch).value();
}
#endif

}  // namespace vitro
