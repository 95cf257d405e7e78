// SPDX-License-Identifier: Apache-2.0
// The evaluation loop: batches in order, forward only.
#include "evaluate.hpp"

#include "../autograd/replay.hpp"
#include "../ops/metrics.hpp"

#include <algorithm>
#include <optional>

namespace vitro {
namespace {

// The network and its loss for batches of one size, captured; it reads the data set where it lies.
class Scorer {
 public:
  static Result<Scorer> try_make(Context& context, const Model& model, const Dataset& data, Index count) {
    Tape tape(context, TapeMode::record);
    const Shape images = data.images.shape().with(0, count);
    const Var pixels = tape.placeholder(images, DType::u8), labels = tape.placeholder({count}, DType::i32);
    const Var scores = model.forward(bytes_to_unit(pixels), model.place_constants(tape));
    const Var outputs[] = {scores, cross_entropy(scores, labels)};
    Result<std::shared_ptr<const Plan>> plan = Plan::try_capture(tape, outputs);
    if (!plan) return std::move(plan).error();
    Result<Replay> replay = Replay::try_make(plan.value(), context);
    if (!replay) return std::move(replay).error();
    const Plan& p = *plan.value();
    return Scorer(std::move(replay).value(), {p.port(pixels), p.port(labels), p.port(outputs[0]), p.port(outputs[1])}, count);
  }

  Index count() const noexcept { return count_; }
  // The mean loss of samples [begin, begin + count()).
  float run(const Dataset& data, Index begin) noexcept {
    const Index pixels = data.images.elements() / data.size();
    replay_.set(*ports_.pixels, data.images.data() + begin * pixels);
    replay_.set(*ports_.labels, data.labels.data() + begin);
    replay_.run();
    return *static_cast<const float*>(replay_.memory(*ports_.loss));
  }
  ConstTensorView scores() const noexcept {
    return {static_cast<const float*>(replay_.memory(*ports_.scores)), ports_.scores->shape};
  }

 private:
  struct Ports {
    const Port *pixels, *labels, *scores, *loss;
  };
  Scorer(Replay replay, const Ports& ports, Index count) : replay_(std::move(replay)), ports_(ports), count_(count) {}

  Replay replay_;
  Ports ports_;
  Index count_;
};

}  // namespace

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
  if (static_cast<Index>(labels.size()) != data.size()) {
    return Error(ErrorCode::shape_mismatch, "the data set \"" + data.name + "\" has " + std::to_string(data.size()) +
                                                " images and " + std::to_string(labels.size()) + " labels");
  }
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [&](std::int32_t label) { return label < 0 || label >= model.output_shape()[0]; });
  if (bad != labels.end()) {
    return Error(ErrorCode::shape_mismatch, "model \"" + model.name() + "\" has " + std::to_string(model.output_shape()[0]) +
                                                " classes, but the data set \"" + data.name + "\" has the label " +
                                                std::to_string(*bad) + " in row " + std::to_string(bad - labels.begin()));
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
  LabelTensor predicted({batch});
  double loss_sum = 0;
  std::optional<Scorer> scorer;
  for (Index begin = 0; begin < result.samples; begin += batch) {
    const Index count = std::min(batch, result.samples - begin);
    if (!scorer || scorer->count() != count) {
      Result<Scorer> made = Scorer::try_make(context, model, data, count);
      if (!made) return std::move(made).error();
      scorer.emplace(std::move(made).value());
    }
    const LabelView labels(data.labels.data() + begin, Shape({count}));
    loss_sum += static_cast<double>(scorer->run(data, begin)) * static_cast<double>(count);
    ops::predict(context, scorer->scores(), BasicView<std::int32_t>(predicted.data(), Shape({count})));
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
