// SPDX-License-Identifier: Apache-2.0
// LeNet-5 written against LibTorch's C++ front end.
#include "torch_lenet.hpp"

#include <algorithm>
#include <torch/torch.h>

namespace vitro_bench {
namespace {

namespace nn = torch::nn;

struct Net : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 6, 5)));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 16, 5)));
  nn::Linear fc1 = register_module("fc1", nn::Linear(256, 120));
  nn::Linear fc2 = register_module("fc2", nn::Linear(120, 84));
  nn::Linear fc3 = register_module("fc3", nn::Linear(84, 10));

  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    x = torch::relu(fc1(x.flatten(1)));
    x = torch::relu(fc2(x));
    return fc3(x);
  }
};

torch::Tensor from(const std::vector<float>& values, torch::IntArrayRef shape) {
  return torch::from_blob(const_cast<float*>(values.data()), shape).clone();
}

struct Images {
  Images() = default;
  Images(const float* pixels, const std::int32_t* numbers, Index count)
      : x(torch::from_blob(const_cast<float*>(pixels), {count, 1, 28, 28}).clone()),
        labels(torch::from_blob(const_cast<std::int32_t*>(numbers), {count}, torch::kInt32).to(torch::kInt64)) {}

  torch::Tensor x, labels;
};

std::vector<float> values(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  return {dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel()};
}

}  // namespace

struct TorchLenet::Impl {
  std::shared_ptr<Net> net = std::make_shared<Net>();
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.01)};
  Images images, test;
  std::vector<std::int64_t> labels;  // of a step

  float step(const torch::Tensor& x, const torch::Tensor& y) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss.item<float>();
  }
};

TorchLenet::TorchLenet(std::uint64_t seed) {
  torch::manual_seed(seed);
  impl_ = std::make_unique<Impl>();
}

TorchLenet::TorchLenet(const std::vector<std::vector<float>>& p) : impl_(std::make_unique<Impl>()) {
  const torch::NoGradGuard no_gradients;
  Net& net = *impl_->net;
  const auto conv = [](nn::Conv2d& layer, const std::vector<float>& w, const std::vector<float>& bias, std::int64_t in) {
    const auto out = static_cast<std::int64_t>(bias.size());
    layer->weight.copy_(from(w, {5, 5, in, out}).permute({3, 2, 0, 1}));
    layer->bias.copy_(from(bias, {out}));
  };
  const auto linear = [](nn::Linear& layer, const torch::Tensor& w, const std::vector<float>& bias) {
    layer->weight.copy_(w.t());
    layer->bias.copy_(from(bias, {static_cast<std::int64_t>(bias.size())}));
  };
  conv(net.conv1, p[0], p[1], 1);
  conv(net.conv2, p[2], p[3], 6);
  // The first linear layer reads pixels before channels there and channels before pixels here.
  linear(net.fc1, from(p[4], {4, 4, 16, 120}).permute({2, 0, 1, 3}).reshape({256, 120}), p[5]);
  linear(net.fc2, from(p[6], {120, 84}), p[7]);
  linear(net.fc3, from(p[8], {84, 10}), p[9]);
}

TorchLenet::~TorchLenet() = default;

std::vector<std::vector<float>> TorchLenet::parameters() const {
  const Net& net = *impl_->net;
  const auto conv = [](const nn::Conv2d& layer) { return values(layer->weight.permute({2, 3, 1, 0})); };
  const torch::Tensor fc1 = net.fc1->weight.t().reshape({16, 4, 4, 120}).permute({1, 2, 0, 3});
  return {conv(net.conv1),
          values(net.conv1->bias),
          conv(net.conv2),
          values(net.conv2->bias),
          values(fc1),
          values(net.fc1->bias),
          values(net.fc2->weight.t()),
          values(net.fc2->bias),
          values(net.fc3->weight.t()),
          values(net.fc3->bias)};
}

void TorchLenet::set_sgd(const Sgd& sgd) {
  for (torch::optim::OptimizerParamGroup& group : impl_->optimizer.param_groups()) {
    auto& options = static_cast<torch::optim::SGDOptions&>(group.options());
    options.lr(static_cast<double>(sgd.rate));
    options.momentum(static_cast<double>(sgd.momentum));
    options.weight_decay(static_cast<double>(sgd.weight_decay));
  }
}

void TorchLenet::set_images(const float* images, const std::int32_t* labels, Index count) {
  impl_->images = Images(images, labels, count);
}

void TorchLenet::set_test_images(const float* images, const std::int32_t* labels, Index count) {
  impl_->test = Images(images, labels, count);
}

float TorchLenet::step(const float* images, const std::int32_t* labels, Index count) {
  impl_->labels.assign(labels, labels + count);
  return impl_->step(torch::from_blob(const_cast<float*>(images), {count, 1, 28, 28}),
                     torch::from_blob(impl_->labels.data(), {count}, torch::kInt64));
}

// index_select is the fastest way that LibTorch has to a shuffled batch; its DataLoader makes a tensor of each image first.
float TorchLenet::step(const std::vector<std::int64_t>& samples) {
  const torch::Tensor index =
      torch::from_blob(const_cast<std::int64_t*>(samples.data()), {static_cast<std::int64_t>(samples.size())}, torch::kInt64);
  return impl_->step(impl_->images.x.index_select(0, index), impl_->images.labels.index_select(0, index));
}

void TorchLenet::scores(const float* images, Index count, float* scores) const {
  const c10::InferenceMode inference;
  const torch::Tensor y = impl_->net->forward(torch::from_blob(const_cast<float*>(images), {count, 1, 28, 28}));
  std::copy_n(y.data_ptr<float>(), y.numel(), scores);
}

Index TorchLenet::count_correct(Index batch) {
  const torch::NoGradGuard no_gradients;
  const Images& test = impl_->test;
  Index correct = 0;
  for (Index begin = 0, count = test.x.size(0); begin < count; begin += batch) {
    const Index end = std::min(begin + batch, count);
    const torch::Tensor best = impl_->net->forward(test.x.slice(0, begin, end)).argmax(1);
    correct += best.eq(test.labels.slice(0, begin, end)).sum().item<std::int64_t>();
  }
  return correct;
}

}  // namespace vitro_bench
