// SPDX-License-Identifier: Apache-2.0
// The problems that are compared: squares, LeNet-5, ResNet-18.
#include "rows.hpp"

#include "../../core/random.hpp"
#include "../../models/lenet.hpp"

namespace vitro_bench {
namespace {

// Squares; LeNet-5's fully connected layers and convolutions at batch 64 as products; a classifier; ResNet-18's 3x3
// convolutions at 56, 28, 14 and 7 pixels.
constexpr GemmShape kGemms[] = {
    {64, 64, 64},       {128, 128, 128}, {256, 256, 256},  {512, 512, 512},  {1024, 1024, 1024},
    {2048, 2048, 2048}, {64, 120, 256},  {64, 84, 120},    {36864, 6, 25},   {4096, 16, 150},
    {1, 1000, 512},     {3136, 64, 576}, {784, 128, 1152}, {196, 256, 2304}, {49, 512, 4608},
};

struct Layer {
  const char* name;
  ConvShape shape;
};

constexpr Layer kLayers[] = {
    {"LeNet-5 conv1", {.size = 28, .in = 1, .kernel = 5, .out = 6}},
    {"LeNet-5 conv2", {.size = 12, .in = 6, .kernel = 5, .out = 16}},
    {"ResNet-18 conv1", {.size = 224, .in = 3, .kernel = 7, .out = 64, .stride = 2, .pad = 3}},
    {"ResNet-18 56 3x3", {.size = 56, .in = 64, .kernel = 3, .out = 64, .pad = 1}},
    {"ResNet-18 56 3x3/2", {.size = 56, .in = 64, .kernel = 3, .out = 128, .stride = 2, .pad = 1}},
    {"ResNet-18 56 1x1/2", {.size = 56, .in = 64, .kernel = 1, .out = 128, .stride = 2}},
    {"ResNet-18 28 3x3", {.size = 28, .in = 128, .kernel = 3, .out = 128, .pad = 1}},
    {"ResNet-18 28 3x3/2", {.size = 28, .in = 128, .kernel = 3, .out = 256, .stride = 2, .pad = 1}},
    {"ResNet-18 28 1x1/2", {.size = 28, .in = 128, .kernel = 1, .out = 256, .stride = 2}},
    {"ResNet-18 14 3x3", {.size = 14, .in = 256, .kernel = 3, .out = 256, .pad = 1}},
    {"ResNet-18 14 3x3/2", {.size = 14, .in = 256, .kernel = 3, .out = 512, .stride = 2, .pad = 1}},
    {"ResNet-18 14 1x1/2", {.size = 14, .in = 256, .kernel = 1, .out = 512, .stride = 2}},
    {"ResNet-18 7 3x3", {.size = 7, .in = 512, .kernel = 3, .out = 512, .pad = 1}},
};

constexpr ConvShape kSmallConv{.batch = 1, .size = 32, .in = 3, .kernel = 3, .out = 32, .pad = 1};

Row gemm_row(const char* group, Operation operation, const GemmShape& shape) {
  Row row;
  row.group = group;
  row.name = std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
  row.operation = operation;
  row.gemm = shape;
  row.more_threads = true;
  return row;
}

Row conv_row(const char* group, Operation operation, const Layer& layer, Index batch) {
  Row row;
  row.group = group;
  row.name = std::string(layer.name) + ", batch " + std::to_string(batch);
  row.operation = operation;
  row.conv = layer.shape;
  row.conv.batch = batch;
  row.peers = {"onednn", "onnxruntime", "ncnn"};  // OpenCV's and the one by hand have a row of their own
  row.more_threads = batch > 1;
  return row;
}

Index a_count(const Row& row) {
  switch (row.operation) {
    case Operation::gemm:
    case Operation::gemm_packed: return row.gemm.m * row.gemm.k;
    case Operation::conv:
    case Operation::conv_grad_weight: return row.conv.x_count();
    case Operation::conv_grad_input: return row.conv.y_count();
    case Operation::lenet_step:
    case Operation::lenet_scores: return row.lenet_batch * 28 * 28;
  }
  return 0;
}

Index b_count(const Row& row) {
  switch (row.operation) {
    case Operation::gemm:
    case Operation::gemm_packed: return row.gemm.k * row.gemm.n;
    case Operation::conv:
    case Operation::conv_grad_input: return row.conv.w_count();
    case Operation::conv_grad_weight: return row.conv.y_count();
    case Operation::lenet_step:
    case Operation::lenet_scores: return 0;
  }
  return 0;
}

void fill(const Floats& floats, float low, float high, std::uint64_t stream) {
  const auto count = static_cast<Index>(floats.size());
  vitro::fill_uniform(vitro::TensorView(floats.data(), vitro::Shape{count}), low, high, vitro::Philox(1, stream));
}

}  // namespace

double Row::flops() const {
  switch (operation) {
    case Operation::gemm:
    case Operation::gemm_packed: return 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k);
    case Operation::conv:
    case Operation::conv_grad_input:
    case Operation::conv_grad_weight: return 2.0 * static_cast<double>(conv.y_count() * conv.kernel * conv.kernel * conv.in);
    case Operation::lenet_step:
    case Operation::lenet_scores: {
      // A step: forward and both gradients of conv1 (without that of the images), conv2 and the three linear layers.
      const Index conv1 = 24 * 24 * 25 * 6, conv2 = 8 * 8 * 150 * 16, linear = 256 * 120 + 120 * 84 + 84 * 10;
      const bool step = operation == Operation::lenet_step;
      return 2.0 * static_cast<double>(lenet_batch * ((step ? 2 : 1) * conv1 + (step ? 3 : 1) * (conv2 + linear)));
    }
  }
  return 0;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const GemmShape& shape : kGemms) rows.push_back(gemm_row("gemm", Operation::gemm, shape));
  for (const GemmShape& shape : kGemms) rows.push_back(gemm_row("gemm, B packed", Operation::gemm_packed, shape));
  constexpr std::pair<const char*, Operation> kConvs[] = {{"conv2d forward", Operation::conv},
                                                          {"conv2d grad-input", Operation::conv_grad_input},
                                                          {"conv2d grad-weight", Operation::conv_grad_weight}};
  for (const auto& [group, operation] : kConvs) {
    for (const Index batch : {1, 64}) {
      for (const Layer& layer : kLayers) rows.push_back(conv_row(group, operation, layer, batch));
    }
  }
  Row small;
  small.group = "conv2d 32x32x3 to 32, 3x3";
  small.name = "batch 1";
  small.operation = Operation::conv;
  small.conv = kSmallConv;
  rows.push_back(small);
  Row step;
  step.group = "LeNet-5 training step";
  step.name = "batch 64";
  step.operation = Operation::lenet_step;
  step.lenet_batch = 64;
  step.more_threads = true;
  rows.push_back(step);
  Row scores;
  scores.group = "LeNet-5 inference";
  scores.name = "batch 1";
  scores.operation = Operation::lenet_scores;
  scores.lenet_batch = 1;
  rows.push_back(scores);
  return rows;
}

RowData::RowData(const Row& row)
    : a_(a_count(row)), b_(b_count(row)), bias_(row.conv.out), labels_(static_cast<std::size_t>(row.lenet_batch)) {
  const bool images = row.lenet_batch > 0;
  fill(a_, images ? 0.0f : -0.5f, images ? 1.0f : 0.5f, 0);
  fill(b_, -row.b_size, row.b_size, 1);
  fill(bias_, -0.5f, 0.5f, 2);
  problem_.operation = row.operation;
  problem_.gemm = row.gemm;
  problem_.conv = row.conv;
  problem_.a = a_.data(), problem_.b = b_.data(), problem_.bias = bias_.data();
  if (!images) return;
  for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<std::int32_t>(i * 7 % 10);
  problem_.labels = labels_.data();
  problem_.lenet.batch = row.lenet_batch;
  const vitro::Model model = vitro::models::lenet5();
  for (const vitro::Parameter& parameter : model.parameters()) {
    problem_.lenet.parameters.emplace_back(parameter.value.span().begin(), parameter.value.span().end());
  }
}

}  // namespace vitro_bench
