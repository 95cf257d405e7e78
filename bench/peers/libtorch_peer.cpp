// SPDX-License-Identifier: Apache-2.0
// LibTorch: LeNet-5's training step and inference.
#include "torch_lenet.hpp"

#include <ATen/Parallel.h>
#include <torch/version.h>

namespace vitro_bench {
namespace {

class TorchStep final : public Job {
 public:
  explicit TorchStep(const Problem& p) : p_(p), before_(p.lenet.parameters), net_(before_) { net_.set_sgd(p.lenet.sgd); }
  void run() override { loss_ = net_.step(p_.a, p_.labels, p_.lenet.batch); }
  std::vector<float> result() override { return change(net_.parameters(), before_); }
  float loss() const override { return loss_; }

 private:
  Problem p_;
  std::vector<std::vector<float>> before_;
  TorchLenet net_;
  float loss_ = 0;
};

class TorchScores final : public Job {
 public:
  explicit TorchScores(const Problem& p)
      : p_(p), net_(p.lenet.parameters), scores_(static_cast<std::size_t>(p.lenet.batch * 10)) {}
  void run() override { net_.scores(p_.a, p_.lenet.batch, scores_.data()); }
  std::vector<float> result() override { return scores_; }

 private:
  Problem p_;
  TorchLenet net_;
  std::vector<float> scores_;
};

class LibtorchPeer final : public Peer {
 public:
  const char* name() const override { return "libtorch"; }
  std::string version() const override { return TORCH_VERSION; }
  bool set_threads(int count) override {
    at::set_num_threads(count);
    return true;
  }
  std::unique_ptr<Job> make(const Problem& p) override {
    if (p.operation == Operation::lenet_step) return std::make_unique<TorchStep>(p);
    if (p.operation == Operation::lenet_scores) return std::make_unique<TorchScores>(p);
    return nullptr;
  }
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::LibtorchPeer)
