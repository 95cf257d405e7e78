// SPDX-License-Identifier: Apache-2.0
// Gathers batches as Trainer does.
#include "feed.hpp"

#include <cstdlib>
#include <filesystem>
#include <numeric>

namespace vitro_bench {

using namespace vitro;

Result<MnistData> load_data() {
  const char* const folder = std::getenv("VITRO_MNIST_DIR");
  if (folder != nullptr && *folder != '\0') return try_load_mnist(folder);
  for (const char* const place : {"data/mnist", "data/sample"}) {
    if (std::filesystem::is_directory(place)) return try_load_mnist(place);
  }
  return Error(ErrorCode::io,
               "no data: set VITRO_MNIST_DIR to MNIST's folder, or run this in Vitro's folder, which has a sample");
}

Feed::Feed(Context& context, const Dataset& data, Index batch, bool shuffled)
    : context_(context),
      data_(data),
      batch_(batch),
      shuffled_(shuffled),
      sampler_(data.size(), batch, 1),
      samples_(static_cast<std::size_t>(batch)),
      bytes_(data.images.shape().with(0, batch)),
      images_(bytes_.shape()),
      labels_({batch}) {}

void Feed::fill(Index step) {
  const Index steps = data_.size() / batch_, in_epoch = step % steps;
  std::span<const std::uint32_t> samples = samples_;
  if (shuffled_) {
    samples = sampler_.batch(step / steps, in_epoch);
  } else {
    std::iota(samples_.begin(), samples_.end(), static_cast<std::uint32_t>(in_epoch * batch_));
  }
  gather_batch(data_, samples, {}, BasicView<std::uint8_t>(bytes_.data(), bytes_.shape()),
               BasicView<std::int32_t>(labels_.data(), labels_.shape()));
  context_.kernels().bytes_to_unit(images_.elements(), bytes_.data(), images_.data());
}

}  // namespace vitro_bench
