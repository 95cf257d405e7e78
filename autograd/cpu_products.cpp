// SPDX-License-Identifier: Apache-2.0
// Linear layers and convolutions: alone, with the nodes that their epilogue can take over, and with weights packed before.
#include "../ops/linear.hpp"
#include "../ops/pool2d.hpp"
#include "cpu_binder.hpp"

namespace vitro {
namespace {

// What a product ends with: + bias, + residual, ReLU, in this order and each at most once.
struct Ending {
  TensorId bias, residual = kNoTensor, y;
  bool relu = false;
};

bool extend(Ending& ending, const Node& node, const TensorTable& tensors) {
  if (const auto* n = std::get_if<AddBias>(&node)) {
    if (ending.bias != kNoTensor || ending.residual != kNoTensor || ending.relu || n->x != ending.y) return false;
    ending.bias = n->bias;
    ending.y = n->y;
    return true;
  }
  if (const auto* n = std::get_if<Add>(&node)) {
    if (ending.residual != kNoTensor || ending.relu || (n->a == ending.y) == (n->b == ending.y)) return false;
    const TensorId other = n->a == ending.y ? n->b : n->a;
    if (tensors.shape(other) != tensors.shape(ending.y)) return false;  // either of them may broadcast
    ending.residual = other;
    ending.y = n->y;
    return true;
  }
  const auto* n = std::get_if<Relu>(&node);
  if (n == nullptr || ending.relu || n->x != ending.y) return false;
  ending.relu = true;
  ending.y = n->y;
  return true;
}

std::optional<Ending> ending_of(TensorId bias, TensorId y, std::span<const Node> rest, const TensorTable& tensors) {
  Ending ending{.bias = bias, .y = y};
  for (const Node& node : rest) {
    if (!extend(ending, node, tensors)) return std::nullopt;
  }
  return ending;
}

template <class P>
struct Product {
  P problem;
  bool relu;
};

// Of a call on x, w, bias, residual, y.
template <class Call>
ops::Epilogue epilogue_of(const Call& c, const Execution& e) noexcept {
  return {c.template at_or_null<const float>(2, e), c.template at_or_null<const float>(3, e), c.problem.relu};
}

// A convolution whose result only a max pooling reads: by blocks of images, which are pooled while they are in the caches, and
// whose memory the next block takes. LeNet-5's step at batch 64 took 0.97 of the time.
struct PooledConv2d {
  ops::Conv2dProblem conv;
  ops::Pool2dAttrs pool;
  bool relu;
  Index pool_oh, pool_ow;
  Index images;        // of a block; the last one may have fewer
  std::size_t result;  // where in the shared scratch a block's convolution lies

  ops::Conv2dProblem conv_of(Index n) const noexcept {
    ops::Conv2dProblem block = conv;
    block.n = n;
    return block;
  }
  ops::Pool2dProblem pool_of(Index n) const noexcept { return {n, conv.oh, conv.ow, conv.oc, pool_oh, pool_ow, pool}; }
};

// On x, w, bias, y, argmax.
template <auto run_conv>
void run_pooled(const Call<PooledConv2d, 5>& c, const Execution& e) noexcept {
  const PooledConv2d& p = c.problem;
  float* const result = reinterpret_cast<float*>(e.context->shared_scratch() + p.result);
  const ops::Epilogue epilogue{c.at_or_null<const float>(2, e), nullptr, p.relu};
  std::byte* const argmax = c.at_or_null<std::byte>(4, e);
  for (Index image = 0; image < p.conv.n; image += p.images) {
    const Index images = std::min(p.images, p.conv.n - image);
    const ops::Pool2dProblem pool = p.pool_of(images);
    const Index to = image * p.pool_oh * p.pool_ow * p.conv.oc;
    run_conv(*e.context, p.conv_of(images), c.at(0, e) + image * p.conv.h * p.conv.w * p.conv.c, c.at(1, e), epilogue, result);
    ops::run_max_pool2d(*e.context, pool, result, c.at(3, e) + to,
                        argmax == nullptr ? nullptr : argmax + to * pool.argmax_bytes());
  }
}

// So that a thread's share stays in its second-level cache, and that packing the filters, once a block, takes little of its
// time.
Index images_of_block(const ops::Conv2dProblem& p, int threads) noexcept {
  constexpr Index kShareFloats = 1 << 15, kFewestPixels = 2048;
  const Index pixels = std::max<Index>(p.oh * p.ow, 1), floats = std::max<Index>(pixels * p.oc, 1);
  return std::max({kShareFloats * threads / floats, kFewestPixels / pixels, Index{threads}, Index{1}});
}

}  // namespace

bool ends_product(const Node& head, std::span<const Node> rest, const TensorTable& tensors) {
  if (const auto* n = std::get_if<Linear>(&head)) return ending_of(n->bias, n->y, rest, tensors).has_value();
  if (const auto* n = std::get_if<Conv2d>(&head)) return ending_of(n->bias, n->y, rest, tensors).has_value();
  return false;
}

bool ends_in_pool(const Node& head, std::span<const Node> rest, const TensorTable& tensors) {
  const auto* const n = std::get_if<Conv2d>(&head);
  const auto* const pool = rest.empty() ? nullptr : std::get_if<MaxPool2d>(&rest.back());
  if (n == nullptr || pool == nullptr) return false;
  const std::optional<Ending> end = ending_of(n->bias, n->y, rest.first(rest.size() - 1), tensors);
  return end && end->residual == kNoTensor && end->y == pool->x;
}

BoundStep bind_pooled(const Conv2d& n, std::span<const Node> rest, const Binder& b) {
  const auto& pool = *std::get_if<MaxPool2d>(&rest.back());
  const Ending end = *ending_of(n.bias, n.y, rest.first(rest.size() - 1), b.tensors());
  const ops::Conv2dProblem conv = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.w)).value();
  const ops::Pool2dProblem pooled = ops::max_pool2d_problem(pool.attrs, b.shape(pool.x)).value();
  const bool packed = b.info(n.w).packed;  // for all images at once
  const Index images = packed ? std::max<Index>(conv.n, 1) : images_of_block(conv, b.context().threads());
  PooledConv2d problem{conv, pool.attrs, end.relu, pooled.oh, pooled.ow, std::min(images, std::max<Index>(conv.n, 1)), 0};
  ScratchSize scratch = ops::pool2d_scratch(b.context(), pooled);
  for (const Index count : {problem.images, conv.n % problem.images}) {
    const ops::Conv2dProblem block = problem.conv_of(count);
    const ScratchSize size = packed ? ops::conv2d_packed_scratch(b.context(), block) : ops::conv2d_scratch(b.context(), block);
    scratch.shared_bytes = std::max(scratch.shared_bytes, size.shared_bytes);
    scratch.thread_bytes = std::max(scratch.thread_bytes, size.thread_bytes);
  }
  problem.result = aligned_up(scratch.shared_bytes);
  scratch.shared_bytes =
      problem.result + static_cast<std::size_t>(problem.images * conv.oh * conv.ow * conv.oc) * sizeof(float);
  constexpr auto run = [](const auto& c, const Execution& e) noexcept { run_pooled<ops::run_conv2d>(c, e); };
  constexpr auto run_packed = [](const auto& c, const Execution& e) noexcept { run_pooled<ops::run_conv2d_packed>(c, e); };
  return packed ? b.step(run_packed, problem, scratch, n.x, n.w, end.bias, pool.y, pool.argmax)
                : b.step(run, problem, scratch, n.x, n.w, end.bias, pool.y, pool.argmax);
}

BoundStep bind_product(const Linear& n, std::span<const Node> rest, const Binder& b) {
  const Ending end = *ending_of(n.bias, n.y, rest, b.tensors());
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.x), b.shape(n.w)).value();
  const bool packed = b.info(n.w).packed;
  const ScratchSize scratch =
      packed ? ops::linear_packed_scratch(b.context(), problem) : ops::linear_scratch(b.context(), problem);
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  constexpr auto run_packed = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear_packed(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  const Product<ops::LinearProblem> product{problem, end.relu};
  return packed ? b.step(run_packed, product, scratch, n.x, n.w, end.bias, end.residual, end.y)
                : b.step(run, product, scratch, n.x, n.w, end.bias, end.residual, end.y);
}

BoundStep bind_product(const Conv2d& n, std::span<const Node> rest, const Binder& b) {
  const Ending end = *ending_of(n.bias, n.y, rest, b.tensors());
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.w)).value();
  const bool packed = b.info(n.w).packed;
  const ScratchSize scratch =
      packed ? ops::conv2d_packed_scratch(b.context(), problem) : ops::conv2d_scratch(b.context(), problem);
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  constexpr auto run_packed = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d_packed(*e.context, c.problem.problem, c.at(0, e), c.at(1, e), epilogue_of(c, e), c.at(4, e));
  };
  const Product<ops::Conv2dProblem> product{problem, end.relu};
  return packed ? b.step(run_packed, product, scratch, n.x, n.w, end.bias, end.residual, end.y)
                : b.step(run, product, scratch, n.x, n.w, end.bias, end.residual, end.y);
}

std::optional<Packing> pack_product(const Node& node, const Binder& b) {
  const auto make = [](TensorId w, std::size_t bytes, const auto& pack, const auto& problem) {
    return Packing{
        w, bytes, {Step::make(pack, Call<std::decay_t<decltype(problem)>, 2>{problem, {Packing::kFrom, Packing::kTo}}), {}}};
  };
  if (const auto* n = std::get_if<Linear>(&node)) {
    const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n->x), b.shape(n->w)).value();
    constexpr auto pack = [](const auto& c, const Execution& e) noexcept {
      ops::pack_linear(*e.context, c.problem, c.at(0, e), c.at(1, e));
    };
    return make(n->w, ops::linear_packed_bytes(b.context(), problem), pack, problem);
  }
  if (const auto* n = std::get_if<Conv2d>(&node)) {
    const ops::Conv2dProblem problem = ops::conv2d_problem(n->attrs, b.shape(n->x), b.shape(n->w)).value();
    constexpr auto pack = [](const auto& c, const Execution& e) noexcept {
      ops::pack_conv2d(*e.context, c.problem, c.at(0, e), c.at(1, e));
    };
    return make(n->w, ops::conv2d_packed_bytes(b.context(), problem), pack, problem);
  }
  return std::nullopt;
}

}  // namespace vitro
