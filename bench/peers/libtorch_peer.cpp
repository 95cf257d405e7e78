// SPDX-License-Identifier: Apache-2.0
// LibTorch: the training step of LeNet-5.
#include "torch_lenet.hpp"

#include <ATen/Parallel.h>
#include <torch/version.h>

namespace vitro_bench {
namespace {

class TorchStep final : public Job {
 public:
  explicit TorchStep(const Problem& p) : before_(p.lenet.parameters), net_(before_) {
    net_.set_sgd(kLenetSgd);
    net_.set_images(p.a, p.labels, p.lenet.batch);
  }
  void run() override { loss_ = net_.step(); }
  std::vector<float> result() override { return change(net_.parameters(), before_); }

 private:
  std::vector<std::vector<float>> before_;
  TorchLenet net_;
  float loss_ = 0;
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
    return p.operation == Operation::lenet_step ? std::make_unique<TorchStep>(p) : nullptr;
  }
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::LibtorchPeer)
