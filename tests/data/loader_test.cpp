// SPDX-License-Identifier: Apache-2.0
// The loader: all policies give the batches that sampler and gathering give, in any order of asking.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>
#include <vitro/core/random.hpp>
#include <vitro/data/loader.hpp>
#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace vitro;
using Catch::Matchers::ContainsSubstring;

namespace {

Dataset drawn_data(Index count) {
  Dataset data{"drawn", ByteTensor({count, 6, 5, 2}), LabelTensor({count})};
  for (Index i = 0; i < data.images.elements(); ++i) {
    data.images.data()[i] = static_cast<std::uint8_t>(Philox(8, 1).below(static_cast<std::uint64_t>(i), 256));
  }
  for (Index i = 0; i < count; ++i) data.labels.data()[i] = static_cast<std::int32_t>(i % 10);
  return data;
}

// Whether the batch is what gather_batch() makes of that step's samples.
bool is_step(const Batch& batch, const Dataset& data, const LoaderOptions& options, Index epoch, Index step) {
  Sampler sampler(data.size(), options.batch, options.seed);
  const auto samples = sampler.batch(epoch, step);
  const auto count = static_cast<Index>(samples.size());
  ByteTensor images(data.images.shape().with(0, count));
  LabelTensor labels({count});
  gather_batch(data, samples, {options.shift, options.seed, epoch}, images, labels);
  return batch.epoch == epoch && batch.step == step && batch.images.shape() == images.shape() &&
         batch.labels.shape() == labels.shape() &&
         std::ranges::equal(images.span(), std::span(batch.images.data(), images.span().size())) &&
         std::ranges::equal(labels.span(), std::span(batch.labels.data(), labels.span().size()));
}

}  // namespace

TEST_CASE("A loader gives the sampler's batches, gathered, under every policy and in any order of asking") {
  const Dataset data = drawn_data(23);
  const LoaderOptions options{
      .batch = 5, .seed = 9, .shift = 2, .policy = GENERATE(InputPolicy::plain, InputPolicy::buffered, InputPolicy::prefetch)};
  Loader loader(data, options);
  REQUIRE(loader.steps() == 5);
  CHECK(loader.count(0) == 5);
  CHECK(loader.count(4) == 3);
  for (Index epoch = 0; epoch < 3; ++epoch) {
    for (Index step = 0; step < 5; ++step) CHECK(is_step(loader.get(epoch, step), data, options, epoch, step));
  }
  for (const auto& [epoch, step] :
       {std::pair<Index, Index>{1, 4}, {1, 4}, {0, 0}, {7, 2}, {7, 3}, {2, 4}, {3, 0}, {0xffffffff, 4}}) {
    CHECK(is_step(loader.get(epoch, step), data, options, epoch, step));
  }
}

TEST_CASE("A buffered batch outlives the next call, and buffers are used again") {
  const Dataset data = drawn_data(40);
  const LoaderOptions options{.batch = 8, .policy = InputPolicy::buffered};
  Loader loader(data, options);
  const Batch first = loader.get(0, 0), second = loader.get(0, 1);
  CHECK(is_step(first, data, options, 0, 0));
  CHECK(is_step(second, data, options, 0, 1));
  CHECK(loader.get(0, 2).images.data() == first.images.data());
  CHECK(loader.get(0, 3).images.data() == second.images.data());
}

#if __has_include(<sys/wait.h>)
TEST_CASE("A forked child may destroy a prefetching loader of its parent's") {
  const Dataset data = drawn_data(40);
  auto loader = std::make_unique<Loader>(data, LoaderOptions{.batch = 8, .policy = InputPolicy::prefetch});
  loader->get(0, 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends the child where it would hang
    loader.reset();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(loader->get(0, 1).step == 1);
}
#endif

TEST_CASE("A batch larger than the data set is the data set") {
  const Dataset data = drawn_data(3);
  Loader loader(data, {.batch = 64, .policy = InputPolicy::prefetch});
  CHECK(loader.steps() == 1);
  CHECK(loader.get(0, 0).labels.elements() == 3);
}

TEST_CASE("What no loader can do is refused by name") {
  const Dataset data = drawn_data(3);
  CHECK_THAT(Loader::check(data, {.batch = 0}).error().message(), ContainsSubstring("batch is 0"));
  CHECK_THAT(Loader::check(data, {.shift = 256}).error().message(), ContainsSubstring("shift is 256"));
  CHECK_THAT(Loader::check(data, {.shift = -1}).error().message(), ContainsSubstring("shift is -1"));
  CHECK_THAT(Loader::check(Dataset{}, {}).error().message(), ContainsSubstring("images is 0"));
}
