// SPDX-License-Identifier: Apache-2.0
// The evaluation loop: batches in order, forward only.
#include "evaluate.hpp"

#include "../ops/metrics.hpp"

#include <algorithm>

namespace vitro {

double Evaluation::accuracy() const noexcept {
  return samples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(samples);
}

Status check_fits(const Model& model, const Dataset& data) {
  const Shape& images = data.images.shape();
  if (images.rank() != 4 || Shape(images.dims().subspan(1)) != model.input_shape()) {
    return Error(ErrorCode::shape_mismatch, "model \"" + model.name() + "\" takes images of shape " +
                                                to_string(model.input_shape()) + ", the data set \"" + data.name +
                                                "\" has shape " + to_string(images));
  }
  if (model.output_shape().rank() != 1) {
    return Error(ErrorCode::shape_mismatch, "model \"" + model.name() + "\" is not a classifier: its output has shape " +
                                                to_string(model.output_shape()) + " instead of [classes]");
  }
  const auto labels = data.labels.span();
  const auto largest = std::max_element(labels.begin(), labels.end());
  if (largest != labels.end() && *largest >= model.output_shape()[0]) {
    return Error(ErrorCode::shape_mismatch, "model \"" + model.name() + "\" has " + std::to_string(model.output_shape()[0]) +
                                                " classes, but the data set \"" + data.name + "\" has the label " +
                                                std::to_string(*largest) + " in row " +
                                                std::to_string(largest - labels.begin()));
  }
  return {};
}

Result<Evaluation> try_evaluate(Context& context, const Model& model, const Dataset& data, Index batch) {
  if (Status status = check_fits(model, data); !status) return std::move(status).error();
  if (batch < 1)
    return Error(ErrorCode::invalid_argument, "evaluate: batch is " + std::to_string(batch) + "; it must be at least 1");
  Evaluation result;
  result.classes = model.output_shape()[0];
  result.samples = data.size();
  result.confusion.assign(static_cast<std::size_t>(result.classes * result.classes), 0);
  if (result.samples == 0) return result;

  batch = std::min(batch, result.samples);
  const Shape& image = data.images.shape();
  const Index pixels = image.elements() / image[0];
  Tensor images(image.with(0, batch));
  LabelTensor predicted({batch});
  Tape tape(context);
  double loss_sum = 0;
  for (Index begin = 0; begin < result.samples; begin += batch) {
    const Index count = std::min(batch, result.samples - begin);
    context.kernels().bytes_to_unit(count * pixels, data.images.data() + begin * pixels, images.data());
    const LabelView labels(data.labels.data() + begin, Shape({count}));
    tape.clear();
    const Var x = tape.input(ConstTensorView(images.data(), image.with(0, count)));
    const Var scores = model.forward(x, model.place_constants(tape));
    loss_sum += static_cast<double>(tape.item(cross_entropy(scores, tape.input(labels)))) * static_cast<double>(count);
    ops::predict(context, tape.value(scores), BasicView<std::int32_t>(predicted.data(), Shape({count})));
    for (Index i = 0; i < count; ++i) {
      const std::int32_t guess = predicted.data()[i];
      if (guess < 0) continue;
      ++result.confusion[static_cast<std::size_t>(labels(i) * result.classes + guess)];
      result.correct += guess == labels(i) ? 1 : 0;
    }
  }
  result.loss = loss_sum / static_cast<double>(result.samples);
  return result;
}

}  // namespace vitro
