// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on Vitro's eager tape, written by hand.
#include "vitro_lenet.hpp"

#include "../../autograd/functions.hpp"
#include "../../models/lenet.hpp"

#include <algorithm>

namespace vitro_bench {
namespace {

using namespace vitro;

Model lenet_with(const Problem& p) {
  Model model = models::lenet5();
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    Tensor& value = model.parameters()[i].value;
    std::copy_n(p.lenet.parameters[i].data(), value.elements(), value.data());
  }
  return model;
}

// What Trainer does with a batch that is there already.
class LenetStep final : public Job {
 public:
  LenetStep(std::shared_ptr<Context> context, const Problem& p)
      : context_(std::move(context)), p_(p), model_(lenet_with(p)), hyper_({3}), tape_(*context_) {
    for (const Parameter& parameter : model_.parameters()) velocities_.emplace_back(parameter.value.shape());
    std::copy_n(std::array{p.lenet.sgd.rate, p.lenet.sgd.momentum, p.lenet.sgd.weight_decay}.data(), 3, hyper_.data());
  }

  void run() override {
    const vitro::Index batch = p_.lenet.batch;
    tape_.clear();
    const std::vector<Var> parameters = model_.place_parameters(tape_);
    const Var logits = model_.forward(tape_.input(ConstTensorView(p_.a, Shape{batch, 28, 28, 1})), parameters);
    const Var loss = cross_entropy(logits, tape_.input(LabelView(p_.labels, Shape{batch})));
    tape_.backward(loss);
    const Var hyper = tape_.input(hyper_.view());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      sgd_update(parameters[i], tape_.state(velocities_[i]), tape_.gradient(parameters[i]), hyper);
    }
    loss_ = tape_.item(loss);  // as a training loop does
  }

  std::vector<float> result() override {
    std::vector<std::vector<float>> now;
    for (const Parameter& parameter : model_.parameters()) {
      now.emplace_back(parameter.value.span().begin(), parameter.value.span().end());
    }
    return change(now, p_.lenet.parameters);
  }
  float loss() const override { return loss_; }

 private:
  std::shared_ptr<Context> context_;
  Problem p_;
  Model model_;
  std::vector<Tensor> velocities_;
  Tensor hyper_;
  Tape tape_;
  float loss_ = 0;
};

class LenetScores final : public Job {
 public:
  LenetScores(std::shared_ptr<Context> context, const Problem& p)
      : context_(std::move(context)), p_(p), model_(lenet_with(p)), tape_(*context_) {}

  void run() override {
    tape_.clear();
    const Var images = tape_.input(ConstTensorView(p_.a, Shape{p_.lenet.batch, 28, 28, 1}));
    scores_ = tape_.value(model_.forward(images, model_.place_constants(tape_))).data();
  }
  std::vector<float> result() override { return {scores_, scores_ + p_.lenet.batch * 10}; }

 private:
  std::shared_ptr<Context> context_;
  Problem p_;
  Model model_;
  Tape tape_;
  const float* scores_ = nullptr;
};

}  // namespace

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem) {
  return std::make_unique<LenetStep>(context, problem);
}

std::unique_ptr<Job> make_lenet_scores(const std::shared_ptr<vitro::Context>& context, const Problem& problem) {
  return std::make_unique<LenetScores>(context, problem);
}

}  // namespace vitro_bench
