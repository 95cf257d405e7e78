// SPDX-License-Identifier: Apache-2.0
// What lenet_train does, written against LibTorch: trains LeNet-5 on idx files with the recipe `seed`, evaluates after every
// epoch, prints the test accuracy. lenet_runs.py times both. Usage: libtorch_lenet DATA [EPOCHS [THREADS]], 20 and 1 by
// default.
#include "../../core/random.hpp"
#include "../../data/dataset.hpp"
#include "../../models/recipe.hpp"
#include "torch_lenet.hpp"

#include <ATen/Parallel.h>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace vitro;

constexpr std::uint64_t kSeed = 1;
constexpr Index kBatch = 64, kTestBatch = 1000;

// All images as floats, once: what one does with LibTorch where the data fits into memory.
std::vector<float> floats(const Dataset& data) {
  std::vector<float> images(static_cast<std::size_t>(data.images.elements()));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(data.images.data()[i]) / 255.0f;
  return images;
}

int run(const char* folder, Index epochs) {
  const MnistData data = load_mnist(folder);
  vitro_bench::TorchLenet net(kSeed);
  net.set_images(floats(data.train).data(), data.train.labels.data(), data.train.size());
  net.set_test_images(floats(data.test).data(), data.test.labels.data(), data.test.size());
  const Recipe recipe = seed_recipe();
  const Index images = data.train.size(), steps = (images + kBatch - 1) / kBatch;
  Index correct = 0;
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::uint32_t> order = permutation(images, Philox(kSeed, static_cast<std::uint64_t>(epoch)));
    double loss = 0;
    for (Index step = 0; step < steps; ++step) {
      const Hyper hyper = hyper_at(recipe, epoch, epochs, step, steps);
      net.set_sgd({hyper.rate, hyper.momentum, hyper.weight_decay});
      const Index begin = step * kBatch, end = std::min(begin + kBatch, images);
      loss += static_cast<double>(net.step(std::vector<std::int64_t>(order.begin() + begin, order.begin() + end)));
    }
    correct = net.count_correct(kTestBatch);
    std::printf("epoch %td: loss %.4f, test accuracy %.2f %%\n", epoch + 1, loss / static_cast<double>(steps),
                100.0 * static_cast<double>(correct) / static_cast<double>(data.test.size()));
    std::fflush(stdout);
  }
  std::printf("Test accuracy: %.2f %% (%td of %td)\n",
              100.0 * static_cast<double>(correct) / static_cast<double>(data.test.size()), correct, data.test.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s DATA [EPOCHS [THREADS]]\n", argv[0]);
    return 2;
  }
  at::set_num_threads(argc > 3 ? std::atoi(argv[3]) : 1);
  try {
    return run(argv[1], argc > 2 ? std::atoi(argv[2]) : 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libtorch_lenet: %s\n", error.what());
    return 1;
  }
}
