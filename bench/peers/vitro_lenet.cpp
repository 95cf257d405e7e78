// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on Vitro's tape, run at once or captured.
#include "vitro_lenet.hpp"

#include "../../autograd/replay.hpp"
#include "../../models/lenet.hpp"
#include "../../models/session.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace vitro_bench {
namespace {

using namespace vitro;
using vitro::Index;

Model lenet_with(const Problem& p) {
  Model model = models::lenet5();
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    Tensor& value = model.parameters()[i].value;
    std::copy_n(p.lenet.parameters[i].data(), value.elements(), value.data());
  }
  return model;
}

// What both modes of a training step share: weights, velocities, and the step as one writes it.
class LenetStep : public Job {
 public:
  LenetStep(std::shared_ptr<Context> context, const Problem& p)
      : context_(std::move(context)), p_(p), model_(lenet_with(p)), hyper_({3}) {
    for (const Parameter& parameter : model_.parameters()) velocities_.emplace_back(parameter.value.shape());
    std::copy_n(std::array{p.lenet.sgd.rate, p.lenet.sgd.momentum, p.lenet.sgd.weight_decay}.data(), 3, hyper_.data());
  }

  std::vector<float> result() override {
    std::vector<std::vector<float>> now;
    for (const Parameter& parameter : model_.parameters()) {
      now.emplace_back(parameter.value.span().begin(), parameter.value.span().end());
    }
    return change(now, p_.lenet.parameters);
  }
  float loss() const override { return loss_; }

 protected:
  Context& context() const { return *context_; }

  Var record(Tape& tape) {
    const Index batch = p_.lenet.batch;
    const std::vector<Var> parameters = model_.place_parameters(tape);
    const Var logits = model_.forward(tape.input(ConstTensorView(p_.a, Shape{batch, 28, 28, 1})), parameters);
    const Var loss = cross_entropy(logits, tape.input(LabelView(p_.labels, Shape{batch})));
    tape.backward(loss);
    const Var hyper = tape.input(hyper_.view());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      sgd_update(parameters[i], tape.state(velocities_[i]), tape.gradient(parameters[i]), hyper);
    }
    return loss;
  }

  float loss_ = 0;

 private:
  std::shared_ptr<Context> context_;
  Problem p_;
  Model model_;
  std::vector<Tensor> velocities_;
  Tensor hyper_;
};

class EagerStep final : public LenetStep {
 public:
  EagerStep(const std::shared_ptr<Context>& context, const Problem& p) : LenetStep(context, p), tape_(*context) {}
  void run() override {
    tape_.clear();
    loss_ = tape_.item(record(tape_));  // as a training loop does
  }

 private:
  Tape tape_;
};

class CapturedStep final : public LenetStep {
 public:
  CapturedStep(const std::shared_ptr<Context>& context, const Problem& p) : LenetStep(context, p) {
    Tape tape(*context, TapeMode::record);
    const Var loss = record(tape);
    replay_.emplace(Plan::capture(tape, {&loss, 1}), *context);
    loss_memory_ = static_cast<const float*>(replay_->memory(*replay_->plan().port(loss)));
  }
  void run() override {
    replay_->run();
    loss_ = *loss_memory_;
  }

 private:
  std::optional<Replay> replay_;
  const float* loss_memory_ = nullptr;
};

class EagerScores final : public Job {
 public:
  EagerScores(std::shared_ptr<Context> context, const Problem& p)
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

class SessionScores final : public Job {
 public:
  SessionScores(const Context& context, const Problem& p) : p_(p), scores_({p.lenet.batch, 10}) {
    const ContextOptions options{.isa = context.kernels().isa, .threads = context.threads()};
    session_ = Session::try_make(lenet_with(p), {.batch = p.lenet.batch, .context = options}).value();
  }
  void run() override { session_->run(p_.a, scores_.data()); }
  std::vector<float> result() override { return {scores_.data(), scores_.data() + scores_.elements()}; }

 private:
  Problem p_;
  Tensor scores_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem, Mode mode) {
  if (mode == Mode::captured) return std::make_unique<CapturedStep>(context, problem);
  return std::make_unique<EagerStep>(context, problem);
}

std::unique_ptr<Job> make_lenet_scores(const std::shared_ptr<vitro::Context>& context, const Problem& problem, Mode mode) {
  if (mode == Mode::captured) return std::make_unique<SessionScores>(*context, problem);
  return std::make_unique<EagerScores>(context, problem);
}

}  // namespace vitro_bench
