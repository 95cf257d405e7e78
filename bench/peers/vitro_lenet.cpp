// SPDX-License-Identifier: Apache-2.0
// Vitro's training step of LeNet-5: what Trainer does with a batch that is there already.
#include "vitro_lenet.hpp"

#include "../../autograd/functions.hpp"
#include "../../models/lenet.hpp"

#include <algorithm>

namespace vitro_bench {
namespace {

using namespace vitro;

class LenetStep final : public Job {
 public:
  LenetStep(std::shared_ptr<Context> context, const Problem& p)
      : context_(std::move(context)), p_(p), model_(models::lenet5()), hyper_({3}), tape_(*context_) {
    for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
      Tensor& value = model_.parameters()[i].value;
      std::copy_n(p.lenet.parameters[i].data(), value.elements(), value.data());
      velocities_.emplace_back(value.shape());
    }
    std::copy_n(std::array{kLenetSgd.rate, kLenetSgd.momentum, kLenetSgd.weight_decay}.data(), 3, hyper_.data());
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

 private:
  std::shared_ptr<Context> context_;
  Problem p_;
  Model model_;
  std::vector<Tensor> velocities_;
  Tensor hyper_;
  Tape tape_;
  float loss_ = 0;
};

}  // namespace

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem) {
  return std::make_unique<LenetStep>(context, problem);
}

}  // namespace vitro_bench
